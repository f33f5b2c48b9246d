//! Has the servers on one store hold a caller to its limits together: each tells the others what is used of it, and counts what they tell.
//!
//! What is told is late by one look, may be lost, and leaves out little changes: a limit that several servers count may be
//! passed by what they let through meanwhile.

use std::collections::{HashMap, HashSet};
use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval};

use super::Quotas;
use crate::fleet::Fleet;
use crate::store::Store;
use crate::store::fleet::{Hint, ServerId};

/// Subjects that are told of at once; the others come next time.
const AT_ONCE: usize = 1000;

/// Tells the other servers what is used of this one, and counts what they tell, for as long as it is polled.
pub(crate) async fn share(quotas: &Quotas, store: &Arc<dyn Store>, fleet: &Fleet) -> Infallible {
    let Some(mut hints) = store.hints().filter(|_| fleet.is_shared()) else { return pending().await };
    let mut ticks = interval(fleet.options().poll);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut company = HashSet::new();
    let mut heard = HashMap::<ServerId, Instant>::new();
    loop {
        tokio::select! {
            hint = hints.recv() => match hint {
                Ok(Hint::Used(used)) if Some(used.server) != fleet.me() => {
                    heard.insert(used.server, Instant::now());
                    quotas.hear(&used);
                }
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return pending().await,
            },
            _ = ticks.tick() => {
                let Some(me) = fleet.me() else { continue };
                let others = fleet.others();
                // One that has just joined is heard before it is known.
                let lives = |server: &ServerId, at: &mut Instant| {
                    others.contains(server) || at.elapsed() < fleet.options().lifetime
                };
                let dead: HashSet<_> = heard.extract_if(|server, at| !lives(server, at)).map(|(id, _)| id).collect();
                if !dead.is_empty() {
                    quotas.forget(&dead);
                }
                if !others.is_subset(&company) {
                    quotas.tell_anew();
                }
                company = others;
                quotas.untold(me, AT_ONCE).into_iter().for_each(|used| store.tell(used));
            }
        }
    }
}
