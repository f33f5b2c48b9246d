//! Reading batches back: by id, by request id, by the id of a part, page by page.

use aptix_model::failure::Failure;
use aptix_model::id::{Revision, Uuid, WorkspaceId};
use aptix_model::record::BatchRecord;

use super::Dispatcher;
use super::refusal::{Refusal, no_workspace, not_found};
use crate::ids;
use crate::store::{BatchSelector, Event, StoreError};

/// Why a batch cannot be read.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReadError {
    /// There is no such workspace.
    #[error("there is no workspace {0}")]
    NoWorkspace(WorkspaceId),
    /// The workspace has no such batch, file patch or change.
    #[error("workspace {workspace} has no {what}")]
    NotFound {
        /// The workspace.
        workspace: WorkspaceId,
        /// What was asked for.
        what: String,
    },
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        let failure: Failure = match error {
            ReadError::NoWorkspace(workspace) => no_workspace(&workspace),
            ReadError::NotFound { workspace, what } => not_found(&workspace, &what),
            ReadError::Store(error) => return error.into(),
        };
        Self::denied(failure)
    }
}

/// One part of a batch: a file patch, or a change in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    /// The batch it belongs to.
    pub batch: BatchRecord,
    /// Position of the file patch in the batch, from 0.
    pub file: usize,
    /// Position of the change in the file patch, from 0; `None` if the file patch itself was meant.
    pub change: Option<usize>,
}

impl Dispatcher {
    /// One batch.
    ///
    /// # Errors
    /// When the workspace has none of this description.
    pub async fn batch(&self, workspace: &WorkspaceId, which: BatchSelector) -> Result<BatchRecord, ReadError> {
        let what = match &which {
            BatchSelector::Id(id) => format!("batch {id}"),
            BatchSelector::Request(request) => format!("batch of request {request}"),
        };
        let batch = self.store.batch(workspace.clone(), which).await?;
        batch.ok_or_else(|| ReadError::NotFound { workspace: workspace.clone(), what })
    }

    /// One file patch or change, by its id (TUL-002 7.1).
    ///
    /// # Errors
    /// When the workspace has none with this id.
    pub async fn part(&self, workspace: &WorkspaceId, id: Uuid) -> Result<Part, ReadError> {
        let missing = || ReadError::NotFound {
            workspace: workspace.clone(),
            what: format!("file patch or change with the id {id}"),
        };
        let batch = self.store.batch(workspace.clone(), BatchSelector::Id(ids::batch_of(id))).await?;
        let batch = batch.ok_or_else(missing)?;
        let found = batch.ids.iter().enumerate().find_map(|(file, ids)| {
            if ids.file.0 == id {
                return Some((file, None));
            }
            let change = ids.changes.iter().position(|change| change.0 == id)?;
            Some((file, Some(change)))
        });
        let (file, change) = found.ok_or_else(missing)?;
        Ok(Part { batch, file, change })
    }

    /// Which batches a workspace has, newest first, with the revisions that stored them.
    ///
    /// # Errors
    /// When there is no such workspace.
    pub async fn list(
        &self,
        workspace: &WorkspaceId,
        before: Option<Revision>,
        limit: usize,
    ) -> Result<Vec<Event>, ReadError> {
        let listed = self.store.batches(workspace.clone(), before, limit).await?;
        if listed.is_empty() {
            self.existing(workspace).await?;
        }
        Ok(listed)
    }

    /// The newest revision of a workspace that must exist.
    pub(super) async fn existing(&self, workspace: &WorkspaceId) -> Result<Revision, ReadError> {
        let newest = self.store.newest(workspace.clone()).await?;
        newest.ok_or_else(|| ReadError::NoWorkspace(workspace.clone()))
    }
}
