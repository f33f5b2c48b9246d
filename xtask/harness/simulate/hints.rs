//! How hints travel between servers on one store: a server receives those of the others, unless they are lost, and not its own.

use std::sync::Mutex;
use std::time::Duration;

use aptix_server::store::fleet::{Hint, Hints};
use tokio::sync::broadcast::Sender;
use tokio::task::JoinSet;

use crate::clock::pass;
use crate::history::{Fate, SERVERS};
use crate::random::Random;
use crate::workers::with;

/// Hints that a server may be behind.
const BEHIND: usize = 64;
/// The longest way of a late hint, in milliseconds: longer than servers wait between two looks.
const LATE: usize = 6_000;

/// The hints of a store, and the ears of its servers.
pub(crate) struct HintChannel {
    /// Those of calls that were answered, which were not sent yet.
    caused: Mutex<Hints>,
    ears: [Sender<Hint>; SERVERS],
    fate: Mutex<Fate>,
    late: Mutex<JoinSet<()>>,
    random: Mutex<Random>,
}

impl HintChannel {
    pub(crate) fn new(caused: Hints, random: Random) -> Self {
        Self {
            caused: Mutex::new(caused),
            ears: std::array::from_fn(|_| Sender::new(BEHIND)),
            fate: Mutex::new(Fate::Prompt),
            late: Mutex::default(),
            random: Mutex::new(random),
        }
    }

    /// What happens to hints from now on.
    pub(crate) fn set_fate(&self, fate: Fate) {
        with(&self.fate, |current| *current = fate);
    }

    /// What a server receives from now on.
    pub(crate) fn listen(&self, server: usize) -> Hints {
        self.ears[server].subscribe()
    }

    /// Sends what a call of this server caused to those of the others that receive hints.
    pub(crate) fn send(&self, server: usize, receives: impl Fn(usize) -> bool) {
        let fate = with(&self.fate, |fate| *fate);
        while let Ok(hint) = with(&self.caused, Hints::try_recv) {
            let others = self.ears.iter().enumerate().filter(|(other, _)| *other != server && receives(*other));
            for (_, ear) in others {
                self.deliver(ear, hint.clone(), fate);
            }
        }
    }

    fn deliver(&self, ear: &Sender<Hint>, hint: Hint, fate: Fate) {
        let luck = with(&self.random, |random| random.below(4));
        let sent = |hint| drop(ear.send(hint));
        match fate {
            Fate::Prompt => sent(hint),
            Fate::Lost if luck > 0 => {}
            Fate::Doubled if luck > 0 => {
                sent(hint.clone());
                sent(hint);
            }
            Fate::Late if luck > 0 => {
                let (ear, millis) = (ear.clone(), with(&self.random, |random| random.below(LATE)));
                with(&self.late, |late| {
                    late.spawn(async move {
                        pass(Duration::from_millis(millis as u64)).await;
                        drop(ear.send(hint));
                    })
                });
            }
            Fate::Lost | Fate::Doubled | Fate::Late => sent(hint),
        }
    }
}
