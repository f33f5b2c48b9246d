//! Prepared batches: who may replace or apply one, and until when (WS-MOD 4).

use std::collections::HashSet;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::{Batch, Origin};
use aptix_model::batch_event::EventKind;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId, OwnerId, RequestId, Revision, WorkspaceId};
use aptix_model::plan::Planned;
use aptix_model::reason::Reason;
use aptix_model::record::{APPROVAL_MILLIS, BatchRecord, Preparation, Source, UnixMillis};
use aptix_model::state::{BatchState, Step};
use aptix_telemetry::{Kind, Span};

use super::Dispatcher;
use super::approve::is_over;
use super::plan_name::PlanName;
use super::refusal::{Refusal, not_found};
use super::step::{Move, expiry};
use super::submit::{Submission, count, request_reused, same};
use crate::metrics::Metric;
use crate::quota::CallQuota;
use crate::store::{Appended, BatchSelector, Due, StoreError};

/// How long a prepared batch can be applied, unless its author says otherwise.
pub const DEFAULT_LIFE: Duration = Duration::from_secs(3600);

/// The longest that is granted.
pub const LONGEST_LIFE: Duration = Duration::from_secs(24 * 3600);

/// Expired batches that one sweep ends, and the length of a page of batches that expire.
const SWEPT: usize = 256;

/// Who prepares a batch, and how.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Preparing {
    /// Who may apply or replace it.
    pub owner: OwnerId,
    /// How long it can be applied.
    pub life: Duration,
    /// The prepared batch whose place it takes.
    pub replaces: Option<BatchId>,
    /// The id by which tools know the plan that it takes the place of; `None` for other callers.
    pub hunk: Option<FilePatchId>,
}

/// Who has a prepared batch applied.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Freeing {
    /// Who prepared it.
    pub owner: OwnerId,
    /// What makes the call repeatable.
    pub request: RequestId,
    /// The caller's token, as the record of the step has it.
    pub token: Option<String>,
}

impl Preparing {
    /// What its author knows the batch by whose place it takes.
    fn replaced(&self) -> Option<PlanName> {
        self.hunk.map(PlanName::Hunk).or(self.replaces.map(PlanName::Batch))
    }
}

impl Dispatcher {
    /// The batch that was stored under the request id of a batch to be prepared; `None` if there is none.
    ///
    /// # Errors
    /// When that batch has another content or was prepared otherwise, or the store fails.
    pub async fn prepared_before(
        &self,
        submission: &Submission,
        preparing: &Preparing,
    ) -> Result<Option<BatchRecord>, Refusal> {
        let which = BatchSelector::Request(submission.request_id.clone());
        let stored = self.store.batch(submission.workspace.clone(), which).await?;
        let source = Source::Prepared(Box::new(self.preparation(preparing)));
        let asked = &submission.request_id;
        stored.map(|stored| same_prepared(stored, asked, (&submission.batch, &submission.origin, &source))).transpose()
    }

    /// Checks that a batch may take the place of the one that it names.
    ///
    /// # Errors
    /// NOT_FOUND, WRONG_OWNER, HUNK_EXPIRED, INVALID_STATE (OTHER_KIND, NOT_PREPARED).
    pub async fn check_replaced(
        self: &Arc<Self>,
        submission: &Submission,
        preparing: &Preparing,
    ) -> Result<(), Refusal> {
        let (Some(id), Some(name)) = (preparing.replaces, preparing.replaced()) else { return Ok(()) };
        let former = self.batch(&submission.workspace, BatchSelector::Id(id)).await?;
        self.may_use(&former, &preparing.owner, name)?;
        let (found, asked) = (former.batch.kind(), submission.batch.kind());
        if found == asked { Ok(()) } else { Err(name.other_kind(found, asked)) }
    }

    /// Stores a batch with its plan, or as ended if the plan was refused. It came at `began`.
    ///
    /// # Errors
    /// When its request id has another content, the token or the workspace had as many batches in a day as it may, the batch that it is to replace is not prepared any more, or the store fails.
    pub async fn keep_prepared(
        self: &Arc<Self>,
        submission: Submission,
        (preparing, planned): (&Preparing, Planned),
        quota: &CallQuota,
        began: Instant,
    ) -> Result<BatchRecord, Refusal> {
        let record = self.prepared_record(submission, preparing, planned)?;
        let reserved = self.reserve(&record, quota).await?;
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let id = record.id;
            this.append_prepared(record, began).await.inspect(|kept| count(reserved, id, kept))
        })
        .await
    }

    fn prepared_record(
        &self,
        submission: Submission,
        preparing: &Preparing,
        planned: Planned,
    ) -> Result<BatchRecord, Refusal> {
        let (step, plan, report) = match planned {
            Planned::Plan(plan) => (Step::PlanReady, Some(plan), None),
            Planned::Refused(report) => (Step::Report(report.outcome), None, Some(report)),
        };
        let state = BatchState::Preparing.after(step).map_err(|error| {
            Refusal::denied(Failure::new(Reason::Internal, error.to_string()).hint("update aptix on the workstation"))
        })?;
        let record = submission.into_record(self.clock.now());
        let preparation = Preparation { plan, ..self.preparation(preparing) };
        Ok(BatchRecord { state, report, source: Source::Prepared(Box::new(preparation)), ..record })
    }

    fn preparation(&self, preparing: &Preparing) -> Preparation {
        let Preparing { owner, life, replaces, hunk } = preparing;
        let life = u64::try_from((*life).min(LONGEST_LIFE).as_millis()).unwrap_or(u64::MAX);
        let expires = UnixMillis(self.clock.now().0.saturating_add(life));
        Preparation { owner: owner.clone(), expires, plan: None, replaces: *replaces, hunk: *hunk, freed: None }
    }

    pub(super) async fn append_prepared(&self, record: BatchRecord, began: Instant) -> Result<BatchRecord, Refusal> {
        self.check_disk_for(&record.workspace, &record.request_id).await?;
        let workspace = record.workspace.clone();
        let hunk = record.preparation().and_then(|preparation| preparation.hunk);
        let span = Span::below("store", Kind::Internal, record.sent.traceparent);
        let appended = self.store.append(record).await?;
        drop(span);
        match appended {
            Appended::New(stored) => {
                let refused = stored.report.as_ref().map(|report| report.failures.as_slice());
                let event = match refused {
                    None => Event::Prepared(&stored.batch),
                    Some(failures) => Event::Refused(Some(&stored.batch), failures),
                };
                Trace::of(Via::Server, &stored).log(began.elapsed(), event);
                Metric::BatchSteps.add(&[stored.state.word()], 1.0);
                self.wakes.wake(&workspace, stored.id);
                let replaced = stored.preparation().and_then(|preparation| preparation.replaces);
                if let Some(replaced) = replaced {
                    Metric::BatchSteps.add(&[BatchState::Cancelled.word()], 1.0);
                    self.wakes.wake(&workspace, replaced);
                }
                Ok(*stored)
            }
            Appended::Known(known) => {
                let BatchRecord { request_id, batch, origin, source, .. } = &known.offered;
                same_prepared(known.stored, request_id, (batch, origin, source))
            }
            Appended::Restricted(failure) => Err(Refusal::Denied(failure)),
            Appended::NotReplaced(Some(former)) => {
                let name = hunk.map_or(PlanName::Batch(former.id), PlanName::Hunk);
                Err(self.not_replaced(&former, name).await)
            }
            Appended::NotReplaced(None) => Err(Refusal::denied(not_found(&workspace, "batch to replace"))),
        }
    }

    /// Lets a prepared batch be applied. Repeated under the same request id it answers the batch as it is.
    ///
    /// # Errors
    /// NOT_FOUND, WRONG_OWNER, HUNK_EXPIRED, ALREADY_APPLIED, INVALID_STATE (NOT_PREPARED), REQUEST_ID_REUSED.
    pub async fn free(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        (name, by): (PlanName, Freeing),
    ) -> Result<BatchRecord, Refusal> {
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let decide = |batch: &BatchRecord| this.may_free(batch, name, &by);
            let freed = this.step(&workspace, id, decide).await?;
            if freed.state == BatchState::Expired { Err(name.expired()) } else { Ok(freed) }
        })
        .await
    }

    fn may_free(
        &self,
        batch: &BatchRecord,
        name: PlanName,
        Freeing { owner, request, token }: &Freeing,
    ) -> Result<Option<Move>, Refusal> {
        let now = self.clock.now();
        let preparation = owned(batch, owner, name)?;
        match batch.state {
            BatchState::Prepared if preparation.expires <= now => Ok(Some(expiry(now))),
            BatchState::Prepared => {
                let author = Actor { kind: ActorKind::Author, name: Some(owner.to_string()) }.signed(token.as_deref());
                let taken = match self.state_when_free(&batch.workspace, &batch.batch) {
                    BatchState::PendingApproval => Step::Hold,
                    _ => Step::Apply,
                };
                let step = Move::new(taken, EventKind::Freed, author, now, Event::Freed);
                Ok(Some(Move { freed: Some(request.clone()), ..step }))
            }
            _ if preparation.freed.as_ref() == Some(request) => Ok(None),
            _ => Err(name.not_prepared(batch)),
        }
    }

    /// How a batch was prepared that an owner may still replace, or, if tools know its plan and it failed, have applied again.
    pub(super) fn may_use<'b>(
        &self,
        batch: &'b BatchRecord,
        owner: &OwnerId,
        name: PlanName,
    ) -> Result<&'b Preparation, Refusal> {
        let preparation = owned(batch, owner, name)?;
        match batch.state {
            BatchState::Failed if !matches!(name, PlanName::Hunk(_)) => Err(name.not_prepared(batch)),
            BatchState::Prepared | BatchState::Failed if preparation.expires <= self.clock.now() => Err(name.expired()),
            BatchState::Prepared | BatchState::Failed => Ok(preparation),
            _ => Err(name.not_prepared(batch)),
        }
    }

    /// Ends batches whose time is over, up to a bounded number; answers how many. Those whose records are damaged keep no others
    /// from their end; where the store takes no writes, none is tried after the first.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn expire(self: &Arc<Self>) -> Result<usize, Refusal> {
        let now = self.clock.now();
        let (mut ended, mut after) = (0, None);
        while ended < SWEPT {
            let due = self.store.due(now, after, SWEPT).await?;
            let Some(last) = due.last() else { break };
            after = Some(last.key);
            for Due { key: (_, id), workspace } in due {
                match self.end_expired(&workspace, id, now).await {
                    Ok(_) => ended += 1,
                    Err(refusal) if refusal.failures().iter().any(|failure| failure.reason == Reason::Unavailable) => {
                        return Err(refusal);
                    }
                    Err(refusal) => {
                        tracing::warn!(BatchId = %id, ?refusal, "a batch whose time is over could not be ended");
                    }
                }
            }
        }
        Ok(ended)
    }

    /// Ends a prepared batch if its time is over.
    async fn end_expired(
        self: &Arc<Self>,
        workspace: &WorkspaceId,
        id: BatchId,
        now: UnixMillis,
    ) -> Result<BatchRecord, Refusal> {
        let (this, workspace) = (Arc::clone(self), workspace.clone());
        let decide = move |batch: &BatchRecord| Ok(is_over(batch, now).then(|| expiry(now)));
        self.to_the_end(async move { this.step(&workspace, id, decide).await }).await
    }

    /// Sets the clock by which batches expire to the newest time that the store records, if the time of day is behind that: a
    /// start with a clock that was set back revives nothing. Reads one event of each workspace that has batches which expire.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn recall_time(&self) -> Result<(), StoreError> {
        let (mut workspaces, mut after) = (HashSet::new(), None);
        loop {
            let due = self.store.due(UnixMillis(u64::MAX), after, SWEPT).await?;
            let Some(last) = due.last() else { break };
            after = Some(last.key);
            workspaces.extend(due.into_iter().map(|due| due.workspace));
        }
        if let Some((expires, _)) = after {
            // No batch waits for longer than one that waits for a person.
            self.clock.raise(UnixMillis(expires.0.saturating_sub(APPROVAL_MILLIS)));
        }
        for workspace in workspaces {
            let Some(newest) = self.store.newest(workspace.clone()).await? else { continue };
            let before = Revision(newest.0.saturating_sub(1));
            let events = self.store.events(workspace, before, 1).await?;
            let times = events.into_iter().filter_map(|event| Some(event.ok()?.facts?.at));
            times.for_each(|time| self.clock.raise(time));
        }
        Ok(())
    }
}

/// How a batch was prepared, if this owner prepared it.
fn owned<'b>(batch: &'b BatchRecord, owner: &OwnerId, name: PlanName) -> Result<&'b Preparation, Refusal> {
    let preparation = batch.preparation().ok_or_else(|| name.not_prepared(batch))?;
    if preparation.owner == *owner { Ok(preparation) } else { Err(name.wrong_owner()) }
}

/// The stored batch, if it was prepared under this request id, and the one that is offered is the same.
fn same_prepared(
    stored: BatchRecord,
    asked: &RequestId,
    (batch, origin, source): (&Batch, &Origin, &Source),
) -> Result<BatchRecord, Refusal> {
    if stored.request_id == *asked { same(stored, batch, origin, source) } else { Err(request_reused(stored.id)) }
}
