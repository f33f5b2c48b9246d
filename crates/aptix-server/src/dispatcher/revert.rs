//! Taking an applied batch back: by a batch of its own, which the agent makes from what it kept of the files.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::{Batch, FileEdit, FilePatch, Origin, Revert, Target};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, RequestId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::{BatchRecord, Reverting, Sent, Source, UnixMillis};
use aptix_model::report::{FileReport, FileStatus};
use aptix_model::state::BatchState;

use super::Dispatcher;
use super::refusal::{Refusal, shutting_down};
use super::submit::{Submission, check_origin, request_reused};
use crate::store::BatchSelector;

/// Which batch is to be taken back, for whom and why.
#[derive(Clone, Debug)]
pub struct Reversal {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The batch.
    pub of: BatchId,
    /// What makes the call repeatable.
    pub request_id: RequestId,
    /// Whose turn it comes from.
    pub origin: Origin,
    /// Why, if they said.
    pub reason: Option<String>,
    /// Their name, if it is known.
    pub author: Option<String>,
    /// What is known of the call.
    pub sent: Sent,
}

impl Dispatcher {
    /// The batch that takes another one back: as it is stored under its request id, or a new one for [`Self::keep`].
    ///
    /// # Errors
    /// NOT_FOUND; REQUEST_ID_REUSED; TOO_LARGE (TEXT); ALREADY_APPLIED when the batch was taken back before; INVALID_STATE when it
    /// is not applied, or changed nothing.
    pub async fn reversal(self: &Arc<Self>, reversal: Reversal) -> Result<Reverts, Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::denied(shutting_down()));
        }
        let most = self.settings.limits.text_bytes;
        self.check_texts([("reason", reversal.reason.as_ref()), ("author", reversal.author.as_ref())])?;
        let too_long = check_origin(&reversal.origin, most);
        if !too_long.is_empty() {
            return Err(Refusal::Invalid(too_long));
        }
        let which = BatchSelector::Request(reversal.request_id.clone());
        if let Some(stored) = self.store.batch(reversal.workspace.clone(), which).await? {
            let is_same = matches!(&stored.source, Source::Revert(reverting) if reverting.of == reversal.of);
            return match is_same && stored.origin == reversal.origin {
                true => Ok(Reverts::Before(Box::new(stored))),
                false => Err(request_reused(stored.id)),
            };
        }
        let batch = self.batch(&reversal.workspace, BatchSelector::Id(reversal.of)).await?;
        Ok(Reverts::Anew(Box::new(record(reversal, inverse(&batch)?, self.clock.now()))))
    }
}

/// A batch that takes another one back.
#[derive(Debug)]
pub enum Reverts {
    /// It is stored already.
    Before(Box<BatchRecord>),
    /// It is new, and not stored yet.
    Anew(Box<BatchRecord>),
}

fn record(reversal: Reversal, batch: Batch, now: UnixMillis) -> BatchRecord {
    let Reversal { workspace, of, request_id, origin, reason, author, sent } = reversal;
    let author = Actor { kind: ActorKind::Author, name: author };
    let submission = Submission { workspace, request_id, batch, origin, sent };
    BatchRecord { source: Source::Revert(Reverting { of, author, reason }), ..submission.into_record(now) }
}

/// What takes a batch back: one file patch for each file that it changed, in its order.
fn inverse(record: &BatchRecord) -> Result<Batch, Refusal> {
    check(record)?;
    let reported = record.report.iter().flat_map(|report| &report.files);
    let files: Vec<_> = reported.filter(|file| is_changed(file)).map(|file| patch(record.id, file)).collect();
    if files.is_empty() {
        let message = format!("batch {} changed no file, so there is nothing to take back", record.id);
        return Err(Refusal::denied(Failure::new(Reason::InvalidState, message).hint("nothing is left to do")));
    }
    let verb = if matches!(record.source, Source::Revert(_)) { "redo of revert" } else { "revert" };
    Ok(Batch { label: Some(format!("{verb} {}", record.id)), files, ..Batch::default() })
}

fn is_changed(file: &FileReport) -> bool {
    file.status.is_applied() && file.status != FileStatus::Unchanged
}

fn patch(batch: BatchId, file: &FileReport) -> FilePatch {
    let (path, move_to) = match &file.renamed_to {
        Some(now) => (now, Some(file.path.clone())),
        None => (&file.path, None),
    };
    let edit = FileEdit::Revert(Revert { batch, move_to });
    FilePatch { target: Target::Path(path.clone()), key: None, label: None, edit }
}

/// Refuses a batch that cannot be taken back, as far as the server knows.
fn check(batch: &BatchRecord) -> Result<(), Refusal> {
    let BatchRecord { id, state, .. } = batch;
    let invalid = |message: String, hint: &str| {
        Err(Refusal::denied(Failure::new(Reason::InvalidState, message).hint(hint.to_owned())))
    };
    match state {
        BatchState::Applied | BatchState::Partial => {}
        state if state.is_open() => {
            let message = format!("batch {id} is {state} and has changed nothing yet");
            return invalid(message, "wait until the batch is applied, then take it back");
        }
        state => {
            let message = format!("batch {id} is {state}, and only a batch that was applied can be taken back");
            return invalid(message, "nothing is left to do: the batch changed no file");
        }
    }
    if let Some(by) = batch.reverted_by {
        let message = format!("batch {id} was taken back already, by batch {by}");
        let hint = format!("nothing is left to do; undo batch {by} to have the changes again");
        return Err(Refusal::denied(Failure::new(Reason::AlreadyApplied, message).hint(hint)));
    }
    Ok(())
}
