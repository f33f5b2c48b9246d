//! Withdrawing a batch.

use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;
use aptix_model::state::{BatchState, Step, StepError};

use super::Dispatcher;
use super::read::ReadError;
use super::refusal::Refusal;
use crate::mint;
use crate::store::{BatchSelector, StoreError, Transition, Transitioned};

/// Why a batch was not withdrawn.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum CancelError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// It has ended another way.
    #[error("{0}")]
    Ended(#[from] StepError),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<CancelError> for Refusal {
    fn from(error: CancelError) -> Self {
        match error {
            CancelError::Read(error) => error.into(),
            CancelError::Ended(error) => {
                let message = format!("the batch is {}, only an open batch can be cancelled", error.from);
                let hint = "look at what became of the batch; what it changed can be undone where its agent runs";
                Self::denied(Failure::new(Reason::InvalidState, message).hint(hint))
            }
            CancelError::Store(error) => error.into(),
        }
    }
}

impl Dispatcher {
    /// Withdraws a batch; one that is withdrawn already stays so.
    ///
    /// # Errors
    /// When there is no such batch, or it has ended another way.
    pub async fn cancel(self: &Arc<Self>, workspace: WorkspaceId, id: BatchId) -> Result<BatchRecord, CancelError> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.withdraw(&workspace, id).await }).await
    }

    async fn withdraw(&self, workspace: &WorkspaceId, id: BatchId) -> Result<BatchRecord, CancelError> {
        let mut batch = self.batch(workspace, BatchSelector::Id(id)).await?;
        // A state that changed meanwhile is looked at again; states only go forward, so this ends.
        loop {
            if batch.state == BatchState::Cancelled {
                return Ok(batch);
            }
            let step = Transition {
                workspace: workspace.clone(),
                batch: id,
                from: batch.state,
                to: batch.state.after(Step::Cancel)?,
                at: mint::now(),
                lease: None,
                report: None,
                files: Vec::new(),
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    tracing::info!(workspaceId = %workspace, batchId = %id, "batch cancelled");
                    self.wakes.wake(workspace, id);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                Transitioned::Unknown | Transitioned::OtherLease => {
                    return Err(
                        ReadError::NotFound { workspace: workspace.clone(), what: format!("batch {id}") }.into()
                    );
                }
            }
        }
    }
}
