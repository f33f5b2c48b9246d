//! Deletes workspaces with everything that the server keeps of them.

use std::convert::Infallible;
use std::future::pending;
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision, TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use tokio::time::sleep;

use super::Dispatcher;
use super::refusal::{Refusal, no_workspace};
use crate::store::deletion::Deletion;
use crate::store::{BatchSelector, StoreError};

/// Steps that one call takes.
const STEPS: usize = 64;

/// Open batches that a preview names.
const NAMED: usize = 20;

/// Batches that a preview looks at, newest first.
const LOOKED_AT: usize = 1000;

/// What one call did to delete a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Deleted {
    /// Tokens for this workspace alone that ended with the call.
    pub tokens: Vec<TokenName>,
    /// How far the deletion has come.
    pub deletion: Deletion,
}

/// What the deletion of a workspace would remove.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Preview {
    /// Whether the deletion has begun: it only has to be finished.
    pub has_begun: bool,
    /// Bytes that the workspace stores.
    pub bytes: u64,
    /// Batches that have not ended.
    pub open_batches: u64,
    /// Some of these, newest first.
    pub named: Vec<BatchId>,
}

impl Dispatcher {
    /// Deletes a bounded part of a workspace. `begin` marks it in the store as being deleted: it is answered before anything is removed,
    /// and no agent takes the lease meanwhile. Without it only a deletion that has begun is gone on with.
    ///
    /// # Errors
    /// NOT_FOUND, INVALID_STATE while an agent serves it, and when the store fails.
    pub async fn delete_workspace(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        begin: Option<impl Future<Output = Result<Option<Vec<TokenName>>, StoreError>> + Send + 'static>,
    ) -> Result<Deleted, Refusal> {
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let tokens = match begin {
                Some(begin) => this.begin_deletion(&workspace, begin).await?,
                None if this.store.deletions().await?.contains(&workspace) => Vec::new(),
                None => return Err(Refusal::denied(no_workspace(&workspace))),
            };
            let deletion = this.continue_deletion(&workspace, STEPS).await?;
            Ok(Deleted { tokens, deletion })
        })
        .await
    }

    /// Marks a workspace as being deleted, and ends what waits for it.
    async fn begin_deletion(
        &self,
        workspace: &WorkspaceId,
        begin: impl Future<Output = Result<Option<Vec<TokenName>>, StoreError>>,
    ) -> Result<Vec<TokenName>, Refusal> {
        let turn = self.leases.turn(workspace).await;
        self.check_unserved(workspace).await?;
        let begun = begin.await?;
        let tokens = begun.ok_or_else(|| Refusal::denied(no_workspace(workspace)))?;
        self.leases.forget(workspace);
        self.wakes.end_workspace(workspace);
        drop(turn);
        tracing::info!(WorkspaceId = %workspace, endedTokens = tokens.len(), "a workspace is being deleted");
        Ok(tokens)
    }

    /// Takes steps of a deletion until it is done, so many at most.
    async fn continue_deletion(&self, workspace: &WorkspaceId, steps: usize) -> Result<Deletion, StoreError> {
        let mut deletion = Deletion::default();
        for _ in 0..steps {
            // Without a deletion another call has done the rest.
            let step = self.store.continue_deletion(workspace.clone()).await?;
            deletion = step.unwrap_or(Deletion { is_done: true, ..deletion });
            if deletion.is_done {
                let Deletion { batches, bytes, .. } = deletion;
                tracing::info!(WorkspaceId = %workspace, batches, bytes, "a workspace was deleted");
                break;
            }
        }
        Ok(deletion)
    }

    /// Refuses to delete a workspace that an agent serves.
    async fn check_unserved(&self, workspace: &WorkspaceId) -> Result<(), Refusal> {
        if self.serving(workspace).await?.is_none() {
            return Ok(());
        }
        let message = format!("workspace {workspace} cannot be deleted while an agent serves it");
        Err(Refusal::denied(Failure::new(Reason::InvalidState, message).hint("stop that agent, then call again")))
    }

    /// Counts what the deletion of a workspace would remove, and changes nothing.
    ///
    /// # Errors
    /// NOT_FOUND, INVALID_STATE while an agent serves it, and when the store fails.
    pub async fn preview_deletion(&self, workspace: &WorkspaceId) -> Result<Preview, Refusal> {
        if self.store.deletions().await?.contains(workspace) {
            return Ok(Preview { has_begun: true, ..Preview::default() });
        }
        let counts = self.store.counts(workspace.clone()).await?;
        let counts = counts.ok_or_else(|| Refusal::denied(no_workspace(workspace)))?;
        self.check_unserved(workspace).await?;
        let named = self.some_open(workspace, counts.open_batches).await?;
        let bytes = self.store.used_bytes(workspace.clone()).await?;
        Ok(Preview { has_begun: false, bytes, open_batches: counts.open_batches, named })
    }

    /// Some of the open batches of a workspace, of which there are so many.
    async fn some_open(&self, workspace: &WorkspaceId, open: u64) -> Result<Vec<BatchId>, StoreError> {
        let wanted = usize::try_from(open).unwrap_or(NAMED).min(NAMED);
        let mut found = Vec::new();
        if wanted == 0 {
            return Ok(found);
        }
        let newest = Some(Revision(u64::MAX));
        // A batch that cannot be read is left out.
        for entry in self.store.batches(workspace.clone(), newest, LOOKED_AT).await?.into_iter().flatten() {
            let batch = self.store.batch(workspace.clone(), BatchSelector::Id(entry.batch)).await;
            if batch.is_ok_and(|batch| batch.is_some_and(|batch| batch.state.is_open())) {
                found.push(entry.batch);
            }
            if found.len() == wanted {
                break;
            }
        }
        Ok(found)
    }

    /// Finishes the deletions that were cut off: those that an earlier process began, and after a failed write those of this one.
    pub async fn finish_deletions(&self) -> Infallible {
        let mut reopenings = self.store.reopenings();
        loop {
            if self.is_first()
                && let Err(error) = self.finish_all().await
            {
                tracing::warn!(%error, "a workspace that is being deleted could not be removed");
            }
            tokio::select! {
                Ok(()) = reopenings.changed() => {}
                // Another server may have begun one, and died.
                () = sleep(self.settings.expiry_sweep), if self.fleet.is_shared() => {}
                else => pending::<()>().await,
            }
        }
    }

    async fn finish_all(&self) -> Result<(), StoreError> {
        for workspace in self.store.deletions().await? {
            // A deletion whose beginning was not acknowledged may have begun all the same.
            self.leases.forget(&workspace);
            self.wakes.end_workspace(&workspace);
            // A damaged record of one workspace hinders no other.
            match self.finish_one(&workspace).await {
                Err(error) if error.will_pass() => return Err(error),
                Err(error) => tracing::warn!(WorkspaceId = %workspace, %error, "its deletion could not be finished"),
                Ok(()) => {}
            }
        }
        Ok(())
    }

    async fn finish_one(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        while !self.continue_deletion(workspace, STEPS).await?.is_done {}
        Ok(())
    }
}
