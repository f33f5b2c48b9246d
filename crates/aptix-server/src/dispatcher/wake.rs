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
    /// Those of one batch of a workspace.
    Batch(WorkspaceId, BatchId),
}

impl Topic {
    const fn workspace(&self) -> &WorkspaceId {
        match self {
            Self::Workspace(workspace) | Self::Batch(workspace, _) => workspace,
        }
    }
}

/// How often something happened to a workspace that ends every wait for it.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
struct Turns {
    /// It was deleted.
    deletions: u64,
    /// Its history went back: its database was restored, or a copy that lacks the newest events took its place.
    set_backs: u64,
}

/// Why a wait ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Ended {
    /// The workspace was deleted, also if there is another one of its name now.
    Deleted,
    /// Its history went back.
    SetBack,
}

/// Who waits for what, by workspace.
#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<WorkspaceId, HashMap<Topic, watch::Sender<Turns>>>>);

/// Waits for the events of one topic.
#[derive(Debug)]
pub(super) struct Waker {
    topic: Topic,
    wakes: Arc<Wakes>,
    receiver: watch::Receiver<Turns>,
    /// What had happened to the workspace before.
    before: Turns,
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, HashMap<Topic, watch::Sender<Turns>>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait; nothing that happens from now on is missed.
    pub(super) fn subscribe(self: &Arc<Self>, topic: Topic) -> Waker {
        let mut wakes = self.lock();
        let topics = wakes.entry(topic.workspace().clone()).or_default();
        let receiver = topics.entry(topic.clone()).or_default().subscribe();
        drop(wakes);
        let before = *receiver.borrow();
        Waker { topic, wakes: Arc::clone(self), receiver, before }
    }

    /// Whether something of a workspace is waited for.
    pub(super) fn has(&self, workspace: &WorkspaceId) -> bool {
        self.lock().contains_key(workspace)
    }

    /// Every workspace of which something is waited for.
    pub(super) fn workspaces(&self) -> Vec<WorkspaceId> {
        self.lock().keys().cloned().collect()
    }

    /// Wakes every waiter for something of this workspace, but not those for one batch.
    pub(super) fn wake_workspace(&self, workspace: &WorkspaceId) {
        let topic = Topic::Workspace(workspace.clone());
        if let Some(sender) = self.lock().get(workspace).and_then(|topics| topics.get(&topic)) {
            sender.send_modify(|_| ());
        }
    }

    /// Wakes every waiter for something of this workspace: what happened in it is not known.
    pub(super) fn wake_all_of(&self, workspace: &WorkspaceId) {
        for sender in self.lock().get(workspace).into_iter().flat_map(HashMap::values) {
            sender.send_modify(|_| ());
        }
    }

    /// Ends every wait for this workspace, which was deleted.
    pub(super) fn end_workspace(&self, workspace: &WorkspaceId) {
        self.turn(workspace, |turns| turns.deletions += 1);
    }

    /// Ends every wait for this workspace, whose history went back.
    pub(super) fn set_back(&self, workspace: &WorkspaceId) {
        self.turn(workspace, |turns| turns.set_backs += 1);
    }

    fn turn(&self, workspace: &WorkspaceId, turn: impl Fn(&mut Turns)) {
        for sender in self.lock().get(workspace).into_iter().flat_map(HashMap::values) {
            sender.send_modify(&turn);
        }
    }

    /// Wakes every waiter for an event of this batch.
    pub(super) fn wake(&self, workspace: &WorkspaceId, batch: BatchId) {
        let wakes = self.lock();
        let Some(topics) = wakes.get(workspace) else { return };
        for topic in [Topic::Workspace(workspace.clone()), Topic::Batch(workspace.clone(), batch)] {
            if let Some(sender) = topics.get(&topic) {
                sender.send_modify(|_| ());
            }
        }
    }

    /// Wakes every waiter: what happened is not known.
    pub(super) fn wake_all(&self) {
        for sender in self.lock().values().flat_map(HashMap::values) {
            sender.send_modify(|_| ());
        }
    }
}

impl Waker {
    /// Why the wait has ended, if it has since the beginning.
    pub(super) fn ended(&self) -> Option<Ended> {
        let now = *self.receiver.borrow();
        match now {
            _ if now.deletions != self.before.deletions => Some(Ended::Deleted),
            _ if now.set_backs != self.before.set_backs => Some(Ended::SetBack),
            _ => None,
        }
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
        let Some(topics) = wakes.get_mut(self.topic.workspace()) else { return };
        if topics.get(&self.topic).is_some_and(|sender| sender.receiver_count() <= 1) {
            topics.remove(&self.topic);
        }
        if topics.is_empty() {
            wakes.remove(self.topic.workspace());
        }
    }
}
