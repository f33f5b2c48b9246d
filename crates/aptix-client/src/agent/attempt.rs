//! One attempt to apply a batch: its blobs fetched, its edits planned and approved, its files and its receipt committed.

use std::cell::{Cell, RefCell};
use std::sync::Arc;

use aptix_model::actor::Actor;
use aptix_model::batch::{Batch, FileEdit, FilePatch};
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::limits::REPORT_DIFF_BYTES;
use aptix_model::plan::Plan;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Source};
use aptix_model::report::Report;
use aptix_model::session::restricted;
use aptix_model::state::BatchState;
use aptix_model::trace_parent::TraceParent;
use aptix_telemetry::{Kind, Span};
use tokio_util::sync::CancellationToken;

use super::approval::Question;
use super::blobs;
use super::error::AgentError;
use super::service::{Agent, Session};
use super::warnings;
use crate::apply::acting::Acting;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::traced::Traced;
use crate::apply::{self, ApplyOptions, Hidden, Mode, Refusal};
use crate::connection::receipt::{self, Receipt};
use crate::person::user::user;
use crate::policy::Policy;
use crate::undo;
use crate::workspace::keep::outbox;
use crate::workspace::roots::workspace::Workspace;

/// A batch that was applied, or why nothing changed.
pub(super) type Outcome = Result<Applied, Vec<Failure>>;

/// A batch that was applied.
pub(super) struct Applied {
    /// Its receipt, which the outbox has.
    pub(super) receipt: Vec<u8>,
    /// What became of its files.
    pub(super) report: Report,
}

/// Why a batch was neither applied nor refused. Nothing changed.
pub(super) enum Unfinished {
    /// The batch was withdrawn: no report is due.
    Withdrawn,
    /// The batch has to come again.
    Interrupted,
    /// The agent cannot go on.
    Failed(AgentError),
}

impl Unfinished {
    /// Why a batch whose token was cancelled is unfinished: it was withdrawn, unless the whole connection is dead.
    pub(super) fn cancelled(session: &Session, traced: &Traced) -> Self {
        if session.alive.is_cancelled() {
            return Self::Interrupted;
        }
        traced.log(Event::Withdrawn);
        Self::Withdrawn
    }
}

impl<E: Into<AgentError>> From<E> for Unfinished {
    fn from(error: E) -> Self {
        Self::Failed(error.into())
    }
}

/// Applies a batch, unless it is refused. `step` is the one that approved it at its server; `withdrawn` is cancelled when it must
/// not be applied any more.
pub(super) async fn attempt(
    session: &Session,
    (record, step): (&BatchRecord, Option<&EventFacts>),
    traced: &Traced,
    withdrawn: &CancellationToken,
) -> Result<Outcome, Unfinished> {
    let (agent, id) = (&session.agent, record.id);
    if record.workspace != agent.service.workspace {
        let message = format!("the batch is for the workspace {}", record.workspace);
        return Ok(Err(vec![Failure::new(Reason::PolicyDenied, message)]));
    }
    if record.is_restricted {
        let hint =
            "the server sent the batch although its session is RESTRICTED; its owner can set its mode to UNRESTRICTED";
        return Ok(Err(vec![restricted(hint)]));
    }
    if let Some(failure) = agent.approval.beforehand() {
        return Ok(Err(vec![failure]));
    }
    let prepared = match record.preparation().map(|preparation| &preparation.plan) {
        None => None,
        Some(Some(plan)) => Some(plan.clone()),
        Some(None) => return Ok(Err(vec![without_plan()])),
    };
    let fetched = tokio::select! {
        fetched = blobs::in_batch(&session.connection, record.batch.clone()) => fetched,
        () = withdrawn.cancelled() => return Err(Unfinished::cancelled(session, traced)),
    };
    let batch = match fetched {
        Ok(Ok(batch)) => batch,
        Ok(Err(failure)) => return Ok(Err(vec![failure])),
        Err(error) => {
            tracing::warn!(BatchId = %id, %error, "the batch waits for a new connection");
            session.alive.cancel();
            return Err(Unfinished::Interrupted);
        }
    };
    let task = match (&record.source, prepared) {
        (Source::Revert(reverting), _) => match check_reverts(&batch, reverting.of) {
            Ok(()) => Task::Revert(batch, reverting.of),
            Err(failure) => return Ok(Err(vec![failure])),
        },
        (_, Some(plan)) => Task::Prepared(batch, plan),
        (_, None) => Task::Apply(batch),
    };
    let (of_batch, token, before) = (traced.clone(), withdrawn.clone(), (id, steps(record, step)));
    let outcome = agent.blocking(move |agent| commit(agent, &before, &of_batch, &task, &token)).await?;
    outcome.ok_or_else(|| match agent.stop.is_cancelled() {
        true => Unfinished::Interrupted,
        false => Unfinished::cancelled(session, traced),
    })
}

/// What is to be done for a batch whose blobs are fetched.
enum Task {
    /// Its edits are planned and made.
    Apply(Batch),
    /// They are made as they were planned when it was prepared.
    Prepared(Batch, Plan),
    /// The batch of this id is taken back.
    Revert(Batch, BatchId),
}

impl Task {
    const fn batch(&self) -> &Batch {
        match self {
            Self::Apply(batch) | Self::Prepared(batch, _) | Self::Revert(batch, _) => batch,
        }
    }

    /// Carries it out.
    fn run(
        &self,
        local: &Workspace,
        options: ApplyOptions<'_>,
        confirm: &mut dyn FnMut(&Proposal<'_>) -> Decision,
    ) -> Result<Report, Refusal> {
        match self {
            Self::Apply(batch) => apply::apply(local, batch, options, confirm),
            Self::Prepared(batch, plan) => {
                apply::apply(local, batch, ApplyOptions { prepared: Some(plan), ..options }, confirm)
            }
            Self::Revert(batch, of) => undo::revert(local, (batch, *of), options, confirm),
        }
    }
}

/// Refuses a batch that is to take another one back and holds any other edit.
fn check_reverts(batch: &Batch, of: BatchId) -> Result<(), Failure> {
    let is_revert = |file: &FilePatch| matches!(&file.edit, FileEdit::Revert(revert) if revert.batch == of);
    let Some(other) = batch.files.iter().position(|file| !is_revert(file)) else { return Ok(()) };
    let message = format!("the batch takes batch {of} back, and has an edit that does something else");
    Err(Failure::new(Reason::InvalidRequest, message).field(format!("edit.files[{other}]")).hint("update the server"))
}

/// The stage that the work on a batch is in, as a span of its trace: planned, approved, committed.
struct Stage {
    parent: Option<TraceParent>,
    span: RefCell<Span>,
}

impl Stage {
    fn begin(name: &'static str, traced: &Traced) -> Self {
        let parent = traced.trace.traceparent;
        Self { parent, span: RefCell::new(Span::below(name, Kind::Internal, parent)) }
    }

    /// Ends the stage; this one follows.
    fn next(&self, name: &'static str) {
        drop(self.span.replace(Span::below(name, Kind::Internal, self.parent)));
    }

    /// Has it decided whether what was planned is written; `is_void` notes that nothing was decided.
    fn deciding(&self, is_void: &Cell<bool>, decide: impl FnOnce() -> Option<Decision>) -> Decision {
        self.next("approve");
        let decision = decide().unwrap_or_else(|| {
            is_void.set(true);
            let message = "the batch was withdrawn, or the agent stops";
            Decision::Refuse(vec![Failure::new(Reason::InvalidState, message)])
        });
        if !matches!(decision, Decision::Refuse(_)) {
            self.next("commit");
        }
        decision
    }

    /// Ends the last stage, in which this may have failed.
    fn end(self, failure: Option<&Failure>) {
        let mut span = self.span.into_inner();
        failure.iter().for_each(|failure| span.fail(failure.reason.code()));
    }
}

/// Carries out what a batch asks for; nothing if a question about it became void. Blocks.
///
/// Where the policy changed while a person looked, what they agreed to is held against the new one; the mode stays for a batch that is
/// in flight (REQ-PATCH-009.4).
fn commit(
    agent: &Agent,
    batch: &(BatchId, Vec<EventFacts>),
    traced: &Traced,
    task: &Task,
    withdrawn: &CancellationToken,
) -> Option<Outcome> {
    let Agent { local, service, .. } = agent;
    warn_if_moved(agent);
    let mut read = match service.policy.read(local) {
        Ok(policy) => policy,
        Err(error) => return Some(Err(vec![error.failure()])),
    };
    let mut policy = Arc::clone(&read);
    loop {
        let has_changed = Cell::new(false);
        let still_holds = || {
            let holds = service.policy.still_holds(local, &read);
            holds.inspect_err(|failure| has_changed.set(failure.detail == Some(Detail::Changed)))
        };
        let outcome = commit_under(agent, (&policy, &still_holds), batch, traced, (task, withdrawn));
        if !has_changed.get() {
            return outcome;
        }
        read = match service.policy.read(local) {
            Ok(policy) => policy,
            Err(error) => return Some(Err(vec![error.failure()])),
        };
        policy = Arc::new(read.in_mode_of(&policy));
    }
}

/// As [`commit`], under a policy; `still_holds` says whether it is in force when a person has agreed.
fn commit_under(
    agent: &Agent,
    (policy, still_holds): (&Policy, &dyn Fn() -> Result<(), Failure>),
    (id, before): &(BatchId, Vec<EventFacts>),
    traced: &Traced,
    (task, withdrawn): (&Task, &CancellationToken),
) -> Option<Outcome> {
    let id = *id;
    let Agent { local, service, approval, stop, .. } = agent;
    let places = service.policy.private_places(local);
    let encoded = |report: &Report, person: Option<&Actor>| {
        let (mut report, decided_by) = (report.clone(), person.cloned());
        places.name_in_report(&mut report);
        let (workspace, traceparent) = (service.workspace.clone(), traced.trace.traceparent);
        receipt::encode_to_fit(Receipt { workspace, batch: id, report, decided_by, traceparent })
    };
    // A batch that is applied file by file has another report each time that files of it are refused.
    let receipt = RefCell::new((Vec::new(), None));
    let encode = |report: &Report, person: Option<&Actor>| {
        let bytes = encoded(report, person)?;
        *receipt.borrow_mut() = (bytes.clone(), person.cloned());
        Ok(bytes)
    };
    let question = Question { batch: id, traced, policy, policies: &service.policy, withdrawn, stop };
    let is_void = Cell::new(false);
    let compare = |hidden: &[Hidden<'_>]| {
        approval.may_compare(question, task.batch(), hidden).unwrap_or_else(|| {
            is_void.set(true);
            false
        })
    };
    let (actor, person) = (agent.actor(), user());
    let options = ApplyOptions {
        policy,
        origin: &traced.trace.origin,
        diff_bytes: REPORT_DIFF_BYTES,
        mode: Mode::CommitWithReceipt { batch: id, encode: &encode, compare: &compare },
        prepared: None,
        acting: Acting { before, person: Some(&person), ..Acting::of(&actor) },
    };
    let stage = Stage::begin("plan", traced);
    let decide = |proposal: &Proposal<'_>| match approval.decide(question, proposal)? {
        Decision::Approved(subject) => {
            Some(still_holds().map_or_else(|failure| Decision::Refuse(vec![failure]), |()| Decision::Approved(subject)))
        }
        decision => Some(decision),
    };
    let applied = task.run(local, options, &mut |proposal| stage.deciding(&is_void, || decide(proposal)));
    stage.end(applied.as_ref().err().and_then(|refusal| refusal.failures.first()));
    approval.ended(id, applied.as_ref().map(|_| ()).map_err(|refusal| refusal.failures.as_slice()));
    match applied {
        Ok(report) => {
            let (kept, person) = receipt.take();
            warnings::log(id, &report);
            Some(Ok(Applied { receipt: amended(local, id, kept, encoded(&report, person.as_ref())), report }))
        }
        Err(_) if is_void.get() => None,
        Err(refusal) => Some(Err(refusal.failures)),
    }
}

/// What was done to a batch at its server, as far as the agent knows: that it was stored there, and the step that let it be
/// applied.
fn steps(record: &BatchRecord, step: Option<&EventFacts>) -> Vec<EventFacts> {
    let first = match (step.map(|step| step.kind), record.preparation()) {
        (Some(EventKind::Submitted | EventKind::Prepared), _) => None,
        (_, Some(_)) => Some((EventKind::Prepared, BatchState::Prepared)),
        (Some(EventKind::Approved), None) => Some((EventKind::Submitted, BatchState::PendingApproval)),
        (_, None) => Some((EventKind::Submitted, BatchState::Approved)),
    };
    let first = first.map(|(kind, state)| {
        let (at, actor) = (record.created, record.author());
        EventFacts { kind, state, at, actor, reason: None }
    });
    first.into_iter().chain(step.cloned()).collect()
}

/// The failure of a prepared batch that came without what binds it.
fn without_plan() -> Failure {
    Failure::new(Reason::InvalidState, "the batch was prepared, and came without its plan; nothing was written")
        .detail(Detail::NotPrepared)
        .hint("prepare the batch again, look at its plan, then apply it")
}

/// Logs once that a root has another path than when the agent began.
fn warn_if_moved(agent: &Agent) {
    if let Some(root) = agent.local.roots().iter().find(|root| root.has_moved() && !root.is_removed()) {
        agent.moved.call_once(|| {
            tracing::warn!(root = %root.path().display(),
                "the root has another path now; the agent goes on in the directory it was started on: start it again to change that");
        });
    }
}

/// The receipt of an applied batch, with what was noticed after its commit had kept one.
fn amended(local: &Workspace, batch: BatchId, kept: Vec<u8>, now: Result<Vec<u8>, Box<Failure>>) -> Vec<u8> {
    let now = match now {
        Ok(now) if now != kept => now,
        _ => return kept,
    };
    match outbox::put(local, batch, &now) {
        Ok(()) => now,
        Err(error) => {
            tracing::warn!(BatchId = %batch, %error, "the report goes without what was noticed after the commit");
            kept
        }
    }
}
