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

/// Who waits for what, and how often each workspace that is waited for was deleted.
#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<Topic, watch::Sender<u64>>>);

/// Waits for the events of one topic.
#[derive(Debug)]
pub(super) struct Waker {
    topic: Topic,
    wakes: Arc<Wakes>,
    receiver: watch::Receiver<u64>,
    /// How often the workspace was deleted before.
    deletions: u64,
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, HashMap<Topic, watch::Sender<u64>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait; nothing that happens from now on is missed.
    pub(super) fn subscribe(self: &Arc<Self>, topic: Topic) -> Waker {
        let receiver = self.lock().entry(topic.clone()).or_default().subscribe();
        let deletions = *receiver.borrow();
        Waker { topic, wakes: Arc::clone(self), receiver, deletions }
    }

    /// Wakes every waiter for something of this workspace.
    pub(super) fn wake_workspace(&self, workspace: &WorkspaceId) {
        if let Some(sender) = self.lock().get(&Topic::Workspace(workspace.clone())) {
            sender.send_modify(|_| ());
        }
    }

    /// Ends every wait for this workspace, and wakes all that wait for a batch: it may be one of the workspace.
    pub(super) fn end_workspace(&self, workspace: &WorkspaceId) {
        for (topic, sender) in self.lock().iter() {
            match topic {
                Topic::Workspace(waited) if waited == workspace => sender.send_modify(|deletions| *deletions += 1),
                Topic::Workspace(_) => {}
                Topic::Batch(_) => sender.send_modify(|_| ()),
            }
        }
    }

    /// Wakes every waiter for an event of this batch.
    pub(super) fn wake(&self, workspace: &WorkspaceId, batch: BatchId) {
        let wakes = self.lock();
        for topic in [Topic::Workspace(workspace.clone()), Topic::Batch(batch)] {
            if let Some(sender) = wakes.get(&topic) {
                sender.send_modify(|_| ());
            }
        }
    }

    /// Wakes every waiter: what happened is not known.
    pub(super) fn wake_all(&self) {
        for sender in self.lock().values() {
            sender.send_modify(|_| ());
        }
    }
}

impl Waker {
    /// Whether the workspace that is waited for was deleted since the beginning, also if there is another one of its name now.
    pub(super) fn has_ended(&self) -> bool {
        *self.receiver.borrow() != self.deletions
    }

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
