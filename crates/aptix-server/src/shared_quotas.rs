//! Has the servers on one store hold a caller to its limits together: each tells the others what is used of it, and counts what they tell.
//!
//! What is told is late by one look, may be lost, and leaves out little changes. So a limit may be passed by what several servers let
//! through meanwhile. It is told again in a lifetime of a server, and counts for two: what was lost, or is of a server that
//! died, matters no longer than that.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use tokio::sync::broadcast::error::RecvError;
use tokio::time::{Instant, MissedTickBehavior, interval};

use crate::fleet::Fleet;
use crate::quota::Quotas;
use crate::store::Store;

/// Subjects that are told of at once; the others come next time.
const AT_ONCE: usize = 4000;

/// Tells the other servers what is used of this one, and counts what they tell, for as long as it is polled.
pub(crate) async fn share(quotas: &Quotas, store: &Arc<dyn Store>, fleet: &Fleet) -> Infallible {
    let Some(mut told) = store.told().filter(|_| fleet.is_shared()) else { return pending().await };
    let lifetime = fleet.options().lifetime;
    let mut ticks = interval(fleet.options().poll);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut anew = Instant::now();
    loop {
        tokio::select! {
            used = told.recv() => match used {
                Ok(used) if Some(used.server) != fleet.me().map(|me| me.0) => quotas.hear(&used),
                Ok(_) | Err(RecvError::Lagged(_)) => {}
                Err(RecvError::Closed) => return pending().await,
            },
            _ = ticks.tick() => {
                if anew.elapsed() >= lifetime {
                    anew = Instant::now();
                    quotas.tell_anew();
                }
                let Some(me) = fleet.me() else { continue };
                let untold = quotas.untold(me.0, AT_ONCE, Instant::now().checked_sub(2 * lifetime));
                untold.into_iter().for_each(|used| store.tell(used));
            }
        }
    }
}
