//! Calls that write take turns: by when they arrived, and prepared edits by when they were prepared, then by id (WS-MOD 3.2).
//! Every batch is committed by itself, and a session's clipboards have one order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use tokio::sync::oneshot;

/// The order of turns: the earlier time, then the lower id, then the earlier arrival.
type Order = (UnixMillis, Uuid, u64);

/// The calls that wait, and whether one has the turn.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    busy: bool,
    waiting: BTreeMap<Order, oneshot::Sender<Turn>>,
    /// Calls that have waited so far.
    arrived: u64,
}

/// A turn; the next one begins when it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Turns);

impl Turns {
    /// Waits for a turn. Dropping the future gives it up.
    pub(super) async fn take(&self, created: UnixMillis, id: Uuid) -> Turn {
        let waits = {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !queue.busy {
                queue.busy = true;
                return Turn(self.clone());
            }
            let (called, waits) = oneshot::channel();
            queue.arrived += 1;
            let order = (created, id, queue.arrived);
            queue.waiting.insert(order, called);
            waits
        };
        // The turn is passed on when it is dropped, also by a panic.
        waits.await.unwrap_or_else(|_| Turn(self.clone()))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        let next = {
            let mut queue = self.0.0.lock().unwrap_or_else(PoisonError::into_inner);
            let next = queue.waiting.pop_first();
            queue.busy = next.is_some();
            next
        };
        if let Some((_, called)) = next {
            // If it does not wait any more, its turn comes back, is dropped, and is passed to the next.
            let _ = called.send(Self(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WS-MOD-3.2.1: by time of creation, then by id; a call that gave up delays no other.
    #[tokio::test]
    async fn turns_go_by_creation_then_by_id() {
        let turns = Turns::default();
        let first = turns.take(UnixMillis(50), Uuid::nil()).await;
        let (sender, mut receiver) = tokio::sync::mpsc::channel(4);
        let mut waiting = tokio::task::JoinSet::new();
        for (created, id) in [(30, 3), (20, 9), (30, 1), (40, 0)] {
            let (turns, sender) = (turns.clone(), sender.clone());
            waiting.spawn(async move {
                let turn = turns.take(UnixMillis(created), Uuid::from_u128(id)).await;
                sender.send((created, id)).await.unwrap();
                drop(turn);
            });
            tokio::task::yield_now().await;
        }
        let gone = turns.take(UnixMillis(1), Uuid::nil());
        tokio::select! {
            biased;
            _ = gone => panic!("another call has the turn"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        while waiting.join_next().await.is_some() {}
        drop(sender);
        let mut order = Vec::new();
        while let Some(next) = receiver.recv().await {
            order.push(next);
        }
        assert_eq!(order, [(20, 9), (30, 1), (30, 3), (40, 0)]);
        drop(turns.take(UnixMillis(60), Uuid::nil()).await);
    }
}
