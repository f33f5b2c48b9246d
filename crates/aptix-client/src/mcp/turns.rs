//! Calls that write take turns: by when they came, and prepared edits by when they were prepared, then by id (WS-MOD 3.2).
//! Every batch is committed by itself, and a session's clipboards have one order.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use tokio::sync::oneshot;

/// Who goes first: the earlier one, then the lower id, then who came first.
type Order = (UnixMillis, Uuid, u64);

/// Those who wait, and whether somebody is at it.
#[derive(Clone, Debug, Default)]
pub(super) struct Turns(Arc<Mutex<Queue>>);

#[derive(Debug, Default)]
struct Queue {
    busy: bool,
    waiting: BTreeMap<Order, oneshot::Sender<Turn>>,
    came: u64,
}

/// A turn; the next one begins when it is dropped.
#[derive(Debug)]
pub(super) struct Turn(Turns);

impl Turns {
    /// Waits for a turn. Who stops waiting loses it.
    pub(super) async fn take(&self, created: UnixMillis, id: Uuid) -> Turn {
        let waits = {
            let mut queue = self.0.lock().unwrap_or_else(PoisonError::into_inner);
            if !queue.busy {
                queue.busy = true;
                return Turn(self.clone());
            }
            let (called, waits) = oneshot::channel();
            queue.came += 1;
            let came = queue.came;
            queue.waiting.insert((created, id, came), called);
            waits
        };
        // Whoever has the turn gives it on, even when it panics.
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
            // Should it not wait any more, its turn comes back, is dropped, and goes to the one after it.
            let _ = called.send(Self(self.0.clone()));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// WS-MOD-3.2.1: by time of creation, then by id; who gave up holds up nobody.
    #[tokio::test]
    async fn turns_go_by_creation_then_by_id() {
        let turns = Turns::default();
        let first = turns.take(UnixMillis(50), Uuid::nil()).await;
        let (told, mut heard) = tokio::sync::mpsc::channel(4);
        let mut waiting = tokio::task::JoinSet::new();
        for (created, id) in [(30, 3), (20, 9), (30, 1), (40, 0)] {
            let (turns, told) = (turns.clone(), told.clone());
            waiting.spawn(async move {
                let turn = turns.take(UnixMillis(created), Uuid::from_u128(id)).await;
                told.send((created, id)).await.unwrap();
                drop(turn);
            });
            tokio::task::yield_now().await;
        }
        let gone = turns.take(UnixMillis(1), Uuid::nil());
        tokio::select! {
            biased;
            _ = gone => panic!("somebody else has the turn"),
            () = std::future::ready(()) => {}
        }
        drop(first);
        while waiting.join_next().await.is_some() {}
        drop(told);
        let mut order = Vec::new();
        while let Some(next) = heard.recv().await {
            order.push(next);
        }
        assert_eq!(order, [(20, 9), (30, 1), (30, 3), (40, 0)]);
        drop(turns.take(UnixMillis(60), Uuid::nil()).await);
    }
}
