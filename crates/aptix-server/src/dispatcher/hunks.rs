//! Plans as tools know them: by one id, whichever batch has the plan now (WS-MOD 4).
//!
//! A plan that is prepared again under its id, or applied again after it was refused, gets a new batch; the store keeps which
//! one is the newest.

use std::sync::Arc;
use std::time::Instant;

use aptix_engine::hunk::HunkError;
use aptix_model::batch::Origin;
use aptix_model::failure::Failure;
use aptix_model::id::{FilePatchId, OwnerId, RequestId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Preparation, Sent, Source};
use aptix_model::state::BatchState;

use super::Dispatcher;
use super::plan_name::{PlanName, of_hunk};
use super::prepared::Freeing;
use super::refusal::Refusal;
use super::submit::{Submission, count, log_repeated, request_reused};
use crate::quota::CallQuota;
use crate::store::BatchSelector;

/// Who has a plan applied.
#[derive(Clone, Debug)]
pub struct Applying {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// The plan.
    pub hunk: FilePatchId,
    /// Who prepared it.
    pub owner: OwnerId,
    /// What makes the call repeatable.
    pub request_id: RequestId,
    /// Whose turn it comes from.
    pub origin: Origin,
    /// What is known of the call.
    pub sent: Sent,
}

impl Dispatcher {
    /// The newest batch of a plan.
    ///
    /// # Errors
    /// NOT_FOUND; INVALID_STATE (OTHER_KIND) for a batch of several files; or when the store fails.
    pub async fn newest(&self, workspace: &WorkspaceId, hunk: FilePatchId) -> Result<BatchRecord, Refusal> {
        match self.store.batch(workspace.clone(), BatchSelector::Hunk(hunk)).await? {
            Some(batch) if batch.hunk() == Some(hunk) => Ok(batch),
            Some(batch) if is_one_of_several(&batch, hunk) => Err(several_files(&batch, hunk)),
            _ => Err(of_hunk(HunkError::Missing(hunk))),
        }
    }

    /// Lets a plan be applied, also one that was refused when it was applied before. Repeated under the same request id it
    /// answers the batch as it is.
    ///
    /// # Errors
    /// REQUEST_ID_REUSED, NOT_FOUND, WRONG_OWNER, HUNK_EXPIRED, ALREADY_APPLIED, INVALID_STATE (NOT_PREPARED, OTHER_KIND),
    /// POLICY_DENIED (RESTRICTED_MODE), or when the store fails.
    pub async fn apply_plan(
        self: &Arc<Self>,
        applying: Applying,
        quota: &CallQuota,
        began: Instant,
    ) -> Result<BatchRecord, Refusal> {
        let Applying { workspace, hunk, owner, request_id, .. } = &applying;
        let which = BatchSelector::Request(request_id.clone());
        if let Some(stored) = self.store.batch(workspace.clone(), which).await? {
            return repeated(stored, &applying, began);
        }
        let newest = self.newest(workspace, *hunk).await?;
        if newest.state != BatchState::Failed {
            let by = Freeing { owner: owner.clone(), request: request_id.clone(), token: applying.sent.by.clone() };
            let freed = self.free(workspace.clone(), newest.id, (PlanName::Hunk(*hunk), by)).await;
            let is_late = freed.as_ref().is_err_and(|refusal| {
                refusal.failures().first().is_some_and(|failure| failure.detail == Some(Detail::NotPrepared))
            });
            let is_replaced = is_late && self.newest(workspace, *hunk).await?.id != newest.id;
            return if is_replaced { Err(of_hunk(HunkError::Replaced(*hunk))) } else { freed };
        }
        // An earlier version did not look a batch up by the request that let it be applied.
        if newest.preparation().is_some_and(|preparation| preparation.freed.as_ref() == Some(request_id)) {
            return repeated(newest, &applying, began);
        }
        if let Some(failure) = left_open(&newest) {
            return Err(Refusal::denied(failure));
        }
        let preparation = self.may_use(&newest, owner, PlanName::Hunk(*hunk))?;
        if newest.removed_content.is_some() {
            return Err(of_hunk(HunkError::Missing(*hunk)));
        }
        let source = Source::Prepared(Box::new(Preparation {
            replaces: Some(newest.id),
            hunk: Some(*hunk),
            freed: Some(request_id.clone()),
            ..preparation.clone()
        }));
        let state = self.state_when_free(workspace, &newest.batch);
        let Applying { workspace, request_id, origin, sent, .. } = applying.clone();
        let record =
            Submission { workspace, request_id, batch: newest.batch, origin, sent }.into_record(self.clock.now());
        let record = BatchRecord { state, source, ..record };
        let reserved = self.reserve(&record, quota).await?;
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let id = record.id;
            this.append_prepared(record, began).await.inspect(|kept| count(reserved, id, kept))
        })
        .await
    }

    /// Refuses the use of a batch whose place could not be taken.
    pub(super) async fn not_replaced(&self, batch: &BatchRecord, name: PlanName) -> Refusal {
        let PlanName::Hunk(hunk) = name else { return name.not_prepared(batch) };
        match self.newest(&batch.workspace, hunk).await {
            Ok(newest) if newest.id == batch.id => name.not_prepared(&newest),
            Ok(_) => of_hunk(HunkError::Replaced(hunk)),
            Err(refusal) => refusal,
        }
    }
}

/// Why a plan that failed cannot be applied again: it may have been written.
fn left_open(batch: &BatchRecord) -> Option<Failure> {
    let failures = &batch.report.as_ref()?.failures;
    failures.iter().any(|failure| failure.reason == Reason::NeedsOperator).then(|| {
        let message = format!("the prepared edit was let be applied as batch {}, and may have been written", batch.id);
        Failure::new(Reason::InvalidState, message)
            .detail(Detail::NotPrepared)
            .hint("read the file; prepare the edit anew if it is not there")
    })
}

/// Whether this is a file of a batch that was prepared with others.
fn is_one_of_several(batch: &BatchRecord, hunk: FilePatchId) -> bool {
    batch.preparation().is_some() && batch.ids.len() > 1 && batch.ids.iter().any(|ids| ids.file == hunk)
}

/// Refuses one file of a batch of several as a plan: only the whole batch can be applied.
fn several_files(batch: &BatchRecord, hunk: FilePatchId) -> Refusal {
    let (id, files) = (batch.id, batch.ids.len());
    let message =
        format!("{hunk} is one of the {files} files of the prepared batch {id}, and a prepared edit has one file");
    let failure = Failure::new(Reason::InvalidState, message).detail(Detail::OtherKind);
    Refusal::denied(
        failure.hint(
            "prepare the edit of each file by a call of its own, or leave the batch to the service that prepared it",
        ),
    )
}

/// The batch that an earlier call under the same request id let be applied, if it is the same call.
fn repeated(stored: BatchRecord, applying: &Applying, began: Instant) -> Result<BatchRecord, Refusal> {
    let is_freed = stored.preparation().is_some_and(|preparation| {
        preparation.owner == applying.owner && preparation.freed.as_ref() == Some(&applying.request_id)
    });
    if is_freed && stored.hunk() == Some(applying.hunk) {
        log_repeated(&stored, began);
        return Ok(stored);
    }
    Err(request_reused(stored.id))
}
