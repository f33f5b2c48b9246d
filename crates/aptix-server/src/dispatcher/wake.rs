//! Wakes those who wait for a workspace's next event. A wake-up carries nothing: the store is read for what is new,
//! so a slow reader holds nobody up and costs no memory.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::id::WorkspaceId;
use tokio::sync::watch;

/// Who waits for what.
#[derive(Debug, Default)]
pub(super) struct Wakes(Mutex<HashMap<WorkspaceId, watch::Sender<()>>>);

/// Waits for one workspace's events.
#[derive(Debug)]
pub(super) struct Waker {
    workspace: WorkspaceId,
    wakes: Arc<Wakes>,
    receiver: watch::Receiver<()>,
}

impl Wakes {
    fn lock(&self) -> MutexGuard<'_, HashMap<WorkspaceId, watch::Sender<()>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Begins to wait; nothing that happens from now on is missed.
    pub(super) fn subscribe(self: &Arc<Self>, workspace: &WorkspaceId) -> Waker {
        let receiver = self.lock().entry(workspace.clone()).or_default().subscribe();
        Waker { workspace: workspace.clone(), wakes: Arc::clone(self), receiver }
    }

    /// Wakes everybody who waits for this workspace.
    pub(super) fn wake(&self, workspace: &WorkspaceId) {
        if let Some(sender) = self.lock().get(workspace) {
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
        if wakes.get(&self.workspace).is_some_and(|sender| sender.receiver_count() <= 1) {
            wakes.remove(&self.workspace);
        }
    }
}
