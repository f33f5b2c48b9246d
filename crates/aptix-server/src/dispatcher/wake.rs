//! Wakes those who wait for the next event of a workspace, or of one batch. A wake-up carries nothing: the store is read
//! for what is new, so a slow reader delays no other and costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::id::{BatchId, WorkspaceId};
use tokio::sync::watch;

/// Whose events are waited for.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(super) enum Topic {
    /// Any of the workspace.
    Workspace(WorkspaceId),
    /// Those of one batch.
    Batch(BatchId),
}

/// Who waits for what.
#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<Topic, watch::Sender<()>>>);

/// Waits for the events of one topic.
#[derive(Debug)]
pub(super) struct Waker {
    topic: Topic,
    wakes: Arc<Wakes>,
    receiver: watch::Receiver<()>,
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait; nothing that happens from now on is missed.
    pub(super) fn subscribe(self: &Arc<Self>, topic: Topic) -> Waker {
        let receiver = self.lock().entry(topic.clone()).or_default().subscribe();
        Waker { topic, wakes: Arc::clone(self), receiver }
    }

    /// Wakes every waiter for something of this workspace.
    pub(super) fn wake_workspace(&self, workspace: &WorkspaceId) {
        if let Some(sender) = self.lock().get(&Topic::Workspace(workspace.clone())) {
            sender.send_replace(());
        }
    }

    /// Wakes every waiter for an event of this batch.
    pub(super) fn wake(&self, workspace: &WorkspaceId, batch: BatchId) {
        let wakes = self.lock();
        for topic in [Topic::Workspace(workspace.clone()), Topic::Batch(batch)] {
            if let Some(sender) = wakes.get(&topic) {
                sender.send_replace(());
            }
        }
    }

    /// Wakes every waiter: what happened is not known.
    pub(super) fn wake_all(&self) {
        for sender in self.lock().values() {
            sender.send_replace(());
        }
    }
}

impl Waker {
    /// Waits until something happened since the last call, or since the beginning.
    pub(super) async fn woken(&mut self) {
        // The sender stays in the map as long as this receiver lives.
        let _ = self.receiver.changed().await;
    }
}

impl Drop for Waker {
    fn drop(&mut self) {
        let mut wakes = self.wakes.lock();
        if wakes.get(&self.topic).is_some_and(|sender| sender.receiver_count() <= 1) {
            wakes.remove(&self.topic);
        }
    }
}
