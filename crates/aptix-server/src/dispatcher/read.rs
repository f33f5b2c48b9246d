//! Reading batches back: by id, by request id, by the id of a part, page by page.

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::{Revision, Uuid, WorkspaceId};
use aptix_model::id_block;
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;

use super::Dispatcher;
use super::refusal::{Refusal, no_workspace, not_found};
use crate::store::{BatchSelector, Listed, StoreError};

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
    /// The page before is of another history.
    #[error("the server's history is another one than that of the page before: its data was restored or replaced")]
    HistoryChanged,
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Where a page of a list begins, and in which history.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page<T> {
    /// The last entry of the page before.
    pub after: Option<T>,
    /// The position among the events then; `None` for the first page, and for a token of an earlier version.
    pub cursor: Option<Cursor>,
}

impl From<ReadError> for Refusal {
    fn from(error: ReadError) -> Self {
        let message = error.to_string();
        let failure: Failure = match error {
            ReadError::HistoryChanged => {
                Failure::new(Reason::HistoryChanged, message).hint("begin with the first page")
            }
            ReadError::NoWorkspace(workspace) => no_workspace(&workspace),
            ReadError::NotFound { workspace, what } => not_found(&workspace, &what),
            ReadError::Store(error) => return error.into(),
        };
        Self::denied(failure)
    }
}

/// Where the commit of a cursor is.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// The store has it, and every event after it.
    Here,
    /// It was removed; the store cannot tell any more whether it had it. The first event that is kept.
    Compacted(Revision),
    /// In another history.
    Elsewhere,
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
            BatchSelector::Hunk(hunk) => format!("prepared edit {hunk}"),
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
        let batch = self.store.batch(workspace.clone(), BatchSelector::Id(id_block::batch_id(id))).await?;
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
        page: Page<Revision>,
        limit: usize,
    ) -> Result<Vec<Listed>, ReadError> {
        self.check_page(workspace, page.cursor).await?;
        let listed = self.store.batches(workspace.clone(), page.after, limit).await?;
        if listed.is_empty() {
            self.existing(workspace).await?;
        }
        Ok(listed)
    }

    /// Where the commit is that a cursor names. Equal ids do not suffice: copies of a store have one id.
    pub(super) async fn find(&self, workspace: &WorkspaceId, cursor: Cursor) -> Result<Found, StoreError> {
        let found = self.store.digest(workspace.clone(), cursor.revision).await?;
        if cursor.history != self.store.history() || found.is_some_and(|found| found != cursor.digest) {
            return Ok(Found::Elsewhere);
        }
        if found.is_some() {
            return Ok(Found::Here);
        }
        match self.store.events(workspace.clone(), cursor.revision, 1).await {
            Err(StoreError::Compacted { oldest }) => Ok(Found::Compacted(oldest)),
            found => found.map(|_| Found::Elsewhere),
        }
    }

    /// Refuses to go on with a list in another history.
    pub(super) async fn check_page(&self, workspace: &WorkspaceId, cursor: Option<Cursor>) -> Result<(), ReadError> {
        match cursor {
            // A list goes on where events are no longer kept: what is left of it is there.
            Some(cursor) if self.find(workspace, cursor).await? == Found::Elsewhere => Err(ReadError::HistoryChanged),
            _ => Ok(()),
        }
    }

    /// The cursor of a reader at a revision, or at the newest; `None` if its digest is not known.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn cursor_at(
        &self,
        workspace: &WorkspaceId,
        revision: Option<Revision>,
    ) -> Result<Option<Cursor>, StoreError> {
        let revision = match revision {
            Some(revision) => revision,
            None => self.store.newest(workspace.clone()).await?.unwrap_or_default(),
        };
        let digest = self.store.digest(workspace.clone(), revision).await?;
        Ok(self.cursor(revision, digest))
    }

    /// Fails where a record is missing because its workspace is being deleted.
    pub(super) async fn not_deleted(&self, workspace: &WorkspaceId) -> Result<(), StoreError> {
        match self.store.newest(workspace.clone()).await? {
            Some(_) => Ok(()),
            None => Err(StoreError::BeingDeleted { workspace: workspace.clone() }),
        }
    }

    /// The newest revision of a workspace that must exist.
    pub(super) async fn existing(&self, workspace: &WorkspaceId) -> Result<Revision, ReadError> {
        let newest = self.store.newest(workspace.clone()).await?;
        newest.ok_or_else(|| ReadError::NoWorkspace(workspace.clone()))
    }
}
