//! Taking an agent's report: once, under the newest lease, and only if it fits the batch. With it the files it names
//! become the workspace's cloud files (TUL-002 8.6).

use std::sync::Arc;
use std::time::Instant;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::EventKind;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_model::report::{FileStatus, Outcome, Report};
use aptix_model::state::Step;

use super::Dispatcher;
use super::fit::{Fitted, fit};
use super::refusal::{Refusal, not_found};
use super::submit::request_reused;
use crate::metrics::Metric;
use crate::store::{BatchSelector, FileUpdate, LeaseProof, StoreError, Transition, Transitioned};

/// What became of a batch, as its agent reports it.
#[derive(Clone, Debug)]
pub struct BatchReport {
    /// What became of it.
    pub report: Report,
    /// The person at the workstation who agreed to it or refused it, if one did.
    pub decided_by: Option<Actor>,
    /// The token of the agent that reports it, as the record of the step has it.
    pub token: Option<String>,
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
        report: BatchReport,
    ) -> Result<BatchRecord, Refusal> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.take_report(&workspace, id, lease, report).await }).await
    }

    async fn take_report(
        &self,
        workspace: &WorkspaceId,
        id: BatchId,
        lease: LeaseProof,
        BatchReport { report, decided_by, token }: BatchReport,
    ) -> Result<BatchRecord, Refusal> {
        let began = Instant::now();
        check_person(decided_by.as_ref(), &self.settings.limits)?;
        let mut batch = self.batch(workspace, BatchSelector::Id(id)).await?;
        // A state that changed meanwhile is looked at again; states only go forward, so this ends.
        loop {
            if !batch.state.is_open() {
                if has_reported(&batch, &report) {
                    return Ok(batch);
                }
                let message = format!("the batch is {}, and its first result stands", batch.state);
                return Err(Refusal::denied(Failure::new(Reason::ResultFinal, message)));
            }
            let to = batch.state.after(Step::Report(report.outcome));
            let to = to.map_err(|error| Refusal::denied(Failure::new(Reason::InvalidState, error.to_string())))?;
            let files = self.updates(&batch, &report).await?;
            let step = Transition {
                workspace: workspace.clone(),
                batch: id,
                kind: EventKind::Reported,
                actor: self.reporter(workspace, &report, decided_by.as_ref()).await?.signed(token.as_deref()),
                reason: rejected_because(&report),
                from: batch.state,
                to,
                at: self.clock.now(),
                lease: Some(lease),
                report: Some(report.clone()),
                files,
                freed: None,
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    let reported = Event::Reported(batch.state, Some((&batch.batch, &report)));
                    Trace::of(Via::Server, &batch).log(began.elapsed(), reported);
                    Metric::BatchSteps.add(&[batch.state.word()], 1.0);
                    self.wakes.wake(workspace, id);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                // A report lets nothing go ahead.
                Transitioned::Restricted(failure) => return Err(Refusal::Denied(failure)),
                // Nor does it let a prepared batch be applied.
                Transitioned::Reused(by) => return Err(request_reused(by)),
                Transitioned::OtherLease => return Err(lease_lost(lease.epoch)),
                Transitioned::Unknown => {
                    return Err(Refusal::denied(not_found(workspace, &format!("batch {id}"))));
                }
            }
        }
    }

    /// Who did what a report is about: the person who decided, or the agent. A batch is rejected by a person, whose name
    /// earlier agents do not state, unless the agent refuses every batch.
    async fn reporter(
        &self,
        workspace: &WorkspaceId,
        report: &Report,
        decided_by: Option<&Actor>,
    ) -> Result<Actor, StoreError> {
        if let Some(person) = decided_by {
            return Ok(person.clone());
        }
        let by_agent = report.failures.iter().any(|failure| failure.detail == Some(Detail::NeverApproves));
        if report.outcome == Outcome::Rejected && !by_agent {
            return Ok(Actor::unnamed(ActorKind::Person));
        }
        let agent = self.serving(workspace).await?.map(|serving| serving.agent.to_string());
        Ok(Actor { kind: ActorKind::Agent, name: agent })
    }

    /// How a fitting report changes the cloud files.
    async fn updates(&self, record: &BatchRecord, report: &Report) -> Result<Vec<FileUpdate>, Refusal> {
        let updates = fit(&record.batch, report)?;
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
                _ => missing.push(content.sha256),
            }
        }
        if missing.is_empty() {
            return Ok(kept);
        }
        let named: Vec<_> = missing.iter().take(20).map(ToString::to_string).collect();
        let message = format!("the content of {} changed files was not uploaded: {}", missing.len(), named.join(", "));
        let failure = Failure::new(Reason::BlobMissing, message).hint("upload each with UploadBlob, then report again");
        Err(Refusal::BlobsMissing(Box::new(failure), missing))
    }
}

/// Whether this is the report that a batch ended with, as far as that is kept.
fn has_reported(batch: &BatchRecord, report: &Report) -> bool {
    if batch.removed_content.is_none() {
        return batch.report.as_ref() == Some(report);
    }
    let mut kept = report.clone();
    kept.remove_content();
    // The diff may have been left out of the first report, or of this one.
    batch.report.as_ref().is_some_and(|first| {
        kept.diff_omitted = first.diff_omitted;
        *first == kept
    })
}

/// Refuses to record as the person who decided what is none, or has too long a name.
fn check_person(decided_by: Option<&Actor>, limits: &Limits) -> Result<(), Refusal> {
    let Some(Actor { kind, name }) = decided_by else { return Ok(()) };
    let length = name.as_ref().map_or(0, String::len);
    let failure = match kind {
        _ if length > limits.text_bytes => {
            let message = format!("the name has {length} bytes, at most {} are kept", limits.text_bytes);
            Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("decidedBy.name")
        }
        ActorKind::Person => return Ok(()),
        kind => {
            let message = format!("expected PERSON, found {kind}: only a person is asked at the workstation");
            Failure::new(Reason::InvalidRequest, message).field("decidedBy.kind")
        }
    };
    Err(Refusal::Invalid(vec![failure]))
}

/// What the person said who rejected a batch at its agent. Why one failed is in its report alone.
fn rejected_because(report: &Report) -> Option<String> {
    let failure = report.failures.first().filter(|_| report.outcome == Outcome::Rejected)?;
    Some(failure.message.clone())
}

pub(super) fn lease_lost(epoch: u64) -> Refusal {
    let message =
        format!("the report comes under lease epoch {epoch}, which is not in force for a caller with this secret");
    let hint = "watch the workspace again, then report under the new lease";
    Refusal::denied(Failure::new(Reason::LeaseLost, message).hint(hint))
}
