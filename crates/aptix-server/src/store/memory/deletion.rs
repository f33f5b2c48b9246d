//! Deletes a workspace: its content at once, its mark with the step that follows.

use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::Ended;

use super::{MemoryStore, State, Workspace};
use crate::store::deletion::Deletion;
use crate::store::{Answer, StoreError};

impl MemoryStore {
    /// A write in one workspace; it is refused while the workspace is being deleted.
    pub(super) fn write_in<T: Send + 'static>(
        &self,
        workspace: &WorkspaceId,
        write: impl FnOnce(&mut State) -> T,
    ) -> Answer<'_, T> {
        let written = self.write(|state| state.admit(workspace).map(|()| write(state)));
        Box::pin(async { written.await? })
    }
}

impl State {
    /// Bytes of its batches and blobs, and those announced of its uploads.
    pub(super) fn used_bytes(&self, workspace: &WorkspaceId) -> u64 {
        let unfinished = self.unfinished.iter().filter(|((of, _), _)| of == workspace).map(|(_, (_, size))| *size);
        self.workspaces.get(workspace).map_or(0, Workspace::used_bytes) + unfinished.sum::<u64>()
    }

    /// Refuses what would be stored in a workspace that is being deleted.
    pub(super) fn admit(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        match self.deletions.contains_key(workspace) {
            true => Err(StoreError::BeingDeleted { workspace: workspace.clone() }),
            false => Ok(()),
        }
    }

    pub(super) fn begin_deletion(&mut self, workspace: &WorkspaceId, ended: Ended) -> Option<Vec<TokenName>> {
        if self.deletions.contains_key(workspace) {
            return Some(Vec::new());
        }
        let bytes = self.used_bytes(workspace);
        if !self.workspaces.get(workspace)?.known {
            return None;
        }
        let removed = self.workspaces.remove(workspace)?;
        let (batches, open_batches) = (removed.batches.len() as u64, removed.counts().open_batches);
        for (_, (upload, _)) in self.unfinished.extract_if(|(of, _), _| of == workspace) {
            self.uploads.remove(&upload);
        }
        self.deletions.insert(workspace.clone(), Deletion { batches, bytes, open_batches, is_done: true });
        Some(self.tokens.end_of(workspace, ended))
    }
}
