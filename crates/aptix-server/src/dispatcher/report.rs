//! Taking an agent's report: once, under the newest lease, and only if it fits the batch. With it the files it names
//! become the workspace's cloud files (TUL-002 8.6).

use std::sync::Arc;

use aptix_model::batch::{BlobRef, FileEdit};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;
use aptix_model::report::{FileStatus, Outcome, Report};
use aptix_model::state::{BatchState, Step, StepError};

use super::Dispatcher;
use super::fit::{Fitted, fit};
use super::read::ReadError;
use super::refusal::{Refusal, shown, shown_if_given};
use crate::mint;
use crate::store::{BatchSelector, FileUpdate, LeaseProof, StoreError, Transition, Transitioned};

/// Why a report was not taken.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ReportError {
    /// The batch cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The batch ended another way.
    #[error("the batch is {0}, and its first result stands")]
    Final(BatchState),
    /// The batch's state allows no such report.
    #[error("{0}")]
    State(#[from] StepError),
    /// The lease it was made under is not the newest, or its secret is not the lease's.
    #[error("the report comes under lease epoch {0}, which is not in force for a caller with this secret")]
    LeaseLost(u64),
    /// It says something that cannot be about this batch.
    #[error("{} of its fields do not fit the batch", .0.len())]
    Misfit(Vec<Failure>),
    /// Content of changed files was not uploaded.
    #[error("the content of {} changed files was not uploaded", .0.len())]
    BlobsMissing(Vec<BlobRef>),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl From<ReportError> for Refusal {
    fn from(error: ReportError) -> Self {
        let message = error.to_string();
        Self::denied(match error {
            ReportError::Read(error) => return error.into(),
            ReportError::Store(error) => return error.into(),
            ReportError::Misfit(failures) => return Self::Invalid(failures),
            ReportError::Final(_) => Failure::new(Reason::ResultFinal, message),
            ReportError::State(_) => Failure::new(Reason::InvalidState, message),
            ReportError::LeaseLost(_) => Failure::new(Reason::LeaseLost, message)
                .hint("watch the workspace again, then report under the new lease"),
            ReportError::BlobsMissing(blobs) => {
                let digests: Vec<_> = blobs.iter().map(|blob| blob.sha256).collect();
                let named: Vec<_> = digests.iter().take(20).map(ToString::to_string).collect();
                let failure = Failure::new(Reason::BlobMissing, format!("{message}: {}", named.join(", ")))
                    .hint("upload each with UploadBlob, then report again");
                return Self::BlobsMissing(Box::new(failure), digests);
            }
        })
    }
}

impl Dispatcher {
    /// Takes a report. Repeating one that was taken is a no-op with the same answer, also from an agent that has lost the lease.
    ///
    /// # Errors
    /// When there is no such batch, it ended another way, the lease is lost, or the report does not fit.
    pub async fn report(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        lease: LeaseProof,
        report: Report,
    ) -> Result<BatchRecord, ReportError> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.take_report(&workspace, id, lease, report).await }).await
    }

    async fn take_report(
        &self,
        workspace: &WorkspaceId,
        id: BatchId,
        lease: LeaseProof,
        report: Report,
    ) -> Result<BatchRecord, ReportError> {
        let mut batch = self.batch(workspace, BatchSelector::Id(id)).await?;
        // A state that changed meanwhile is looked at again; states only go forward, so this ends.
        loop {
            if !batch.state.is_open() {
                let repeated = batch.report.as_ref() == Some(&report);
                return if repeated { Ok(batch) } else { Err(ReportError::Final(batch.state)) };
            }
            let to = batch.state.after(Step::Report(report.outcome))?;
            let files = self.updates(&batch, &report).await?;
            let step = Transition {
                workspace: workspace.clone(),
                batch: id,
                from: batch.state,
                to,
                at: mint::now(),
                lease: Some(lease),
                report: Some(report.clone()),
                files,
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    log_reported(&batch, &report);
                    self.wakes.wake(workspace, id);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                Transitioned::OtherLease => return Err(ReportError::LeaseLost(lease.epoch)),
                Transitioned::Unknown => {
                    return Err(
                        ReadError::NotFound { workspace: workspace.clone(), what: format!("batch {id}") }.into()
                    );
                }
            }
        }
    }

    /// How a fitting report changes the cloud files.
    async fn updates(&self, record: &BatchRecord, report: &Report) -> Result<Vec<FileUpdate>, ReportError> {
        let updates = fit(&record.batch, report).map_err(ReportError::Misfit)?;
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        let digests = updates.iter().filter_map(|fitted| Some(fitted.update.content?.sha256)).collect();
        let mut sizes = self.store.blob_sizes(record.workspace.clone(), digests).await?.into_iter();
        let (mut kept, mut missing) = (Vec::new(), Vec::new());
        for Fitted { update, status } in updates {
            let Some(content) = update.content else {
                kept.push(update);
                continue;
            };
            match sizes.next().flatten() {
                Some(size) if size == content.size_bytes => kept.push(update),
                // A file that already was as described need not be uploaded; then nothing new is known about it.
                None if status == FileStatus::Unchanged => {}
                _ => missing.push(content),
            }
        }
        if missing.is_empty() { Ok(kept) } else { Err(ReportError::BlobsMissing(missing)) }
    }
}

/// Says how a batch ended, and what became of each file that was to be created (TUL-004 6.1).
fn log_reported(record: &BatchRecord, report: &Report) {
    tracing::info!(workspaceId = %record.workspace, batchId = %record.id, state = %record.state, "batch ended");
    for (index, patch) in record.batch.files.iter().enumerate() {
        if !matches!(patch.edit, FileEdit::CreateFile(_)) {
            continue;
        }
        let written = report.files.get(index).and_then(|file| file.written);
        let about = |failure: &&Failure| failure.file_index == Some(index);
        let failure = report.failures.iter().find(about).or_else(|| report.failures.first());
        tracing::info!(
            SessionId = shown_if_given(&record.origin.session_id),
            ConversationId = shown_if_given(&record.origin.conversation_id),
            TurnId = shown_if_given(&record.origin.turn_id),
            batchId = %record.id,
            Path = shown(patch.target.as_str()),
            Success = report.outcome == Outcome::Applied,
            ErrorCode = failure.map(|failure| failure.reason.code()),
            SizeBytes = written.map(|written| written.size_bytes),
            Hash = written.map(|written| written.sha256.to_string()),
            "Tool.CreateFile.ResultReceived"
        );
    }
}
