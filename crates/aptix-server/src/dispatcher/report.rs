//! Taking an agent's report: once, under the newest lease, and only if it fits the batch. With it the files it names
//! become the workspace's cloud files (TUL-002 8.6).

use std::sync::Arc;

use aptix_model::batch::{Batch, BlobRef, FileEdit, FilePatch, Target};
use aptix_model::failure::{Failure, Visible};
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath, WorkspacePath, fold};
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;
use aptix_model::report::{FileReport, FileStatus, Outcome, Report};
use aptix_model::state::{BatchState, Step, StepError};

use super::Dispatcher;
use super::read::ReadError;
use super::refusal::{Refusal, shown, shown_if_given};
use crate::mint;
use crate::store::{BatchSelector, FileUpdate, StoreError, Transition, Transitioned, Twins};

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
    /// The lease it was made under is not the newest.
    #[error("the report comes under lease epoch {given}, the newest of the workspace is {newest}")]
    LeaseLost {
        /// The epoch it carries.
        given: u64,
        /// The newest granted.
        newest: u64,
    },
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
            ReportError::LeaseLost { .. } => Failure::new(Reason::LeaseLost, message)
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
    /// Takes a report. Repeating one that was taken is a no-op with the same answer, whoever holds the lease.
    ///
    /// # Errors
    /// When there is no such batch, it ended another way, the lease is lost, or the report does not fit.
    pub async fn report(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        lease_epoch: u64,
        report: Report,
    ) -> Result<BatchRecord, ReportError> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.take_report(&workspace, id, lease_epoch, report).await }).await
    }

    async fn take_report(
        &self,
        workspace: &WorkspaceId,
        id: BatchId,
        lease_epoch: u64,
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
                lease_epoch: Some(lease_epoch),
                report: Some(report.clone()),
                files,
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    self.wakes.wake(workspace, id);
                    log_reported(&batch, &report);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                Transitioned::OtherEpoch { newest } => {
                    return Err(ReportError::LeaseLost { given: lease_epoch, newest });
                }
                Transitioned::Unknown => {
                    return Err(
                        ReadError::NotFound { workspace: workspace.clone(), what: format!("batch {id}") }.into()
                    );
                }
            }
        }
    }

    /// The cloud files that a fitting report makes.
    async fn updates(&self, record: &BatchRecord, report: &Report) -> Result<Vec<FileUpdate>, ReportError> {
        let updates = fit(&record.batch, report).map_err(ReportError::Misfit)?;
        if updates.is_empty() {
            return Ok(Vec::new());
        }
        let digests = updates.iter().map(|update| update.content.sha256).collect();
        let sizes = self.store.blob_sizes(record.workspace.clone(), digests).await?;
        let (mut kept, mut missing) = (Vec::new(), Vec::new());
        for ((update, size), file) in updates.into_iter().zip(sizes).zip(&report.files) {
            match size {
                Some(size) if size == update.content.size_bytes => kept.push(update),
                // A file that already was as described need not be uploaded; then nothing new is known about it.
                None if file.status == FileStatus::Unchanged => {}
                _ => missing.push(update.content),
            }
        }
        if missing.is_empty() { Ok(kept) } else { Err(ReportError::BlobsMissing(missing)) }
    }
}

/// Holds a report against its batch; answers what it says about files.
fn fit(batch: &Batch, report: &Report) -> Result<Vec<FileUpdate>, Vec<Failure>> {
    if report.outcome != Outcome::Applied {
        return Ok(Vec::new());
    }
    if report.files.len() != batch.files.len() {
        let (found, expected) = (report.files.len(), batch.files.len());
        return Err(vec![misfit("report.files", format!("the report has {found} files, the batch has {expected}"))]);
    }
    let mut failures = Vec::new();
    let mut updates = Vec::with_capacity(report.files.len());
    for (index, (patch, file)) in batch.files.iter().zip(&report.files).enumerate() {
        match fit_file(index, patch, file) {
            Ok(update) => updates.push(update),
            Err(failure) => failures.push(failure),
        }
    }
    if failures.is_empty() { Ok(updates) } else { Err(failures) }
}

fn fit_file(index: usize, patch: &FilePatch, file: &FileReport) -> Result<FileUpdate, Failure> {
    let field = |name: &str| format!("report.files[{index}].{name}");
    let path = WorkspacePath::new(&file.path)
        .map_err(|error| misfit(&field("path"), error.to_string()).detail(error.detail()))?;
    let doc_path = DocPath::new(&file.doc_path)
        .map_err(|error| misfit(&field("docPath"), error.to_string()).detail(error.detail()))?;
    if doc_path.rest() != path.folded() {
        let message = format!("{doc_path} is not the key of {path}: expected its root's name and {}", path.folded());
        return Err(misfit(&field("docPath"), message));
    }
    let named = patch.target.as_str();
    let (fits, twins) = match &patch.target {
        // The agent looks for the only file with this key, at every level.
        Target::DocPath(_) => (fold(named) == doc_path.as_str(), Twins::Gone),
        Target::Path(_) => {
            let in_root = named.strip_prefix(doc_path.root()).and_then(|rest| rest.strip_prefix('/'));
            (named == path.as_str() || in_root == Some(path.as_str()), Twins::MayExist)
        }
    };
    if !fits {
        let message = format!("{path} ({doc_path}) is not the file that the batch names: {}", Visible(named));
        return Err(misfit(&field("path"), message));
    }
    fit_content(index, patch, file)?;
    let rooted = RootedPath::new(&format!("{}/{path}", doc_path.root()))
        .map_err(|error| misfit(&field("path"), error.to_string()).detail(error.detail()))?;
    let Some(written) = file.written else {
        return Err(misfit(&field("sha256"), "the digest of the bytes as written is required".to_owned()));
    };
    let content = BlobRef { sha256: written.sha256, size_bytes: written.size_bytes };
    Ok(FileUpdate { path: rooted, doc_path, content, twins })
}

/// Holds what is said to have become of a file against its digests, and against what was to be done.
fn fit_content(index: usize, patch: &FilePatch, file: &FileReport) -> Result<(), Failure> {
    let field = |name: &str| format!("report.files[{index}].{name}");
    let (status, expected) = match file.sha256_before {
        None => (FileStatus::Created, "there was no file before"),
        Some(before) if Some(before) == file.written.map(|written| written.sha256) => {
            (FileStatus::Unchanged, "the digests before and after are equal")
        }
        Some(_) => (FileStatus::Modified, "the digests before and after differ"),
    };
    if file.status != status {
        let message = format!("the status is {}, but {expected}: expected {}", file.status.word(), status.word());
        return Err(misfit(&field("status"), message));
    }
    let changes = patch.edit.change_count();
    let creates = !matches!(patch.edit, FileEdit::LinePatch(_));
    if status == FileStatus::Created && !creates {
        return Err(misfit(
            &field("status"),
            "a line patch creates no file: expected modified or unchanged".to_owned(),
        ));
    }
    // An agent whose report would not fit into a message leaves all of them out.
    if !file.changes.is_empty() && file.changes.len() != changes {
        let message = format!("the file patch has {changes} changes, the report has {}", file.changes.len());
        return Err(misfit(&field("changes"), message));
    }
    Ok(())
}

fn misfit(field: &str, message: String) -> Failure {
    Failure::new(Reason::InvalidRequest, message).field(field)
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
