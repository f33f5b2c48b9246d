//! One batch, from its arrival to its receipt in the outbox.

use std::cell::{Cell, OnceCell};
use std::sync::{Arc, Once};
use std::time::Duration;

use aptix_model::batch::Origin;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::limits::REPORT_DIFF_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_model::report::Report;
use tokio_util::sync::CancellationToken;

use super::approval::{Comparison, Question, Verdict};
use super::blobs::{self, Unfetched};
use super::delivery::{self, LeasedConnection};
use super::error::{AgentError, blocking};
use super::inbox::Work;
use super::quota::Begun;
use super::service::Agent;
use super::{log, told};
use crate::apply::proposal::Decision;
use crate::apply::{self, ApplyOptions, Hidden, Mode};
use crate::connection::backoff::Backoff;
use crate::connection::receipt::{self, Receipt};
use crate::policy::REFUSED_PER_MINUTE;
use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::keep::outbox::{self, Owed, Pending};
use crate::workspace::roots::workspace::Workspace;

/// The first and the longest wait for what keeps a batch from being decided and will pass.
const PASSING: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// What became of an arrival.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Handled {
    /// It need not come again.
    Done,
    /// Nothing happened; it has to come again.
    Undone,
}

/// Applies or refuses a batch, and reports. A batch that already has a receipt is reported and not applied again; so is one
/// whose report the server has had, which only a server that was set back asks for once more.
pub(super) async fn handle(agent: &Agent, leased: &LeasedConnection, work: Work) -> Result<Handled, AgentError> {
    let Some(is_done) = look(agent, work.batch, outbox::is_done).await? else { return Ok(Handled::Undone) };
    if is_done {
        delivery::deliver_again(leased, work.batch).await?;
        return Ok(Handled::Done);
    }
    let Some(pending) = look(agent, work.batch, outbox::find).await? else { return Ok(Handled::Undone) };
    if let Some(pending) = pending {
        delivery::deliver(leased, pending).await?;
        return Ok(Handled::Done);
    }
    let begun = match take_up(agent, leased, work.batch, &work.withdrawn).await? {
        Ok(begun) => begun,
        Err(dealt) => return Ok(dealt),
    };
    let record = match work.content {
        Ok(record) => *record,
        Err(failures) => return refuse(agent, leased, work.batch, &Origin::default(), failures, begun).await,
    };
    log::received(&record);
    match decide(agent, leased, &record, &work.withdrawn).await? {
        Outcome::Applied { receipt } => {
            drop(begun);
            log::applied(&record);
            delivery::deliver(leased, Pending { batch: record.id, owed: Owed::Receipt(receipt) }).await?;
            Ok(Handled::Done)
        }
        Outcome::Refused(failures) => {
            if let Some(failure) = failures.iter().find(|failure| failure.reason == Reason::NeedsOperator) {
                return Err(AgentError::NeedsOperator(Box::new(failure.clone())));
            }
            refuse(agent, leased, record.id, &record.origin, failures, begun).await
        }
        Outcome::Withdrawn => {
            log::withdrawn(record.id);
            Ok(Handled::Done)
        }
        Outcome::Undecided => Ok(Handled::Undone),
    }
}

/// Waits until a batch may be refused without too many being refused in a minute. Until then it stays as it is.
async fn take_up(
    agent: &Agent,
    leased: &LeasedConnection,
    id: BatchId,
    withdrawn: &CancellationToken,
) -> Result<Result<Begun, Handled>, AgentError> {
    let (local, policies) = (Arc::clone(&leased.workspace), Arc::clone(&agent.service.policy));
    // Where there is no policy to follow every batch is refused.
    let most = blocking(move || policies.read(&local).map_or(REFUSED_PER_MINUTE, |policy| policy.refused_per_minute));
    let most = most.await?;
    tokio::select! {
        biased;
        begun = agent.quota.begin(most) => Ok(Ok(begun)),
        () = withdrawn.cancelled() => Ok(Err(match not_done(leased) {
            Outcome::Withdrawn => {
                log::withdrawn(id);
                Handled::Done
            }
            _ => Handled::Undone,
        })),
        () = agent.stop.cancelled() => Ok(Err(Handled::Undone)),
    }
}

enum Outcome {
    /// Every file is as described, and the outbox has this receipt.
    Applied { receipt: Vec<u8> },
    /// Nothing changed.
    Refused(Vec<Failure>),
    /// Nothing changed, and nobody waits for a report.
    Withdrawn,
    /// Nothing changed, and nothing was decided.
    Undecided,
}

impl From<Failure> for Outcome {
    fn from(failure: Failure) -> Self {
        Self::Refused(vec![failure])
    }
}

/// Carries a batch out, again and again as long as what keeps it from that will pass.
async fn decide(
    agent: &Agent,
    leased: &LeasedConnection,
    record: &BatchRecord,
    withdrawn: &CancellationToken,
) -> Result<Outcome, AgentError> {
    let mut backoff = Backoff::new(PASSING.0, PASSING.1);
    loop {
        let outcome = carry_out(agent, leased, record, withdrawn.clone()).await?;
        let passing = match &outcome {
            Outcome::Refused(failures) => failures.iter().find(|failure| will_pass(failure)),
            Outcome::Applied { .. } | Outcome::Withdrawn | Outcome::Undecided => None,
        };
        let Some(failure) = passing else { return Ok(outcome) };
        tracing::warn!(BatchId = %record.id, %failure, "the batch is tried again");
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = withdrawn.cancelled() => return Ok(not_done(leased)),
            () = agent.stop.cancelled() => return Ok(Outcome::Undecided),
        }
    }
}

/// Whether a failure says nothing about the batch, only that this machine is busy.
fn will_pass(failure: &Failure) -> bool {
    matches!(
        (failure.reason, failure.detail),
        (Reason::WorkspaceBusy, _) | (Reason::ResourceExhausted, Some(Detail::Fds))
    )
}

async fn carry_out(
    agent: &Agent,
    leased: &LeasedConnection,
    record: &BatchRecord,
    withdrawn: CancellationToken,
) -> Result<Outcome, AgentError> {
    if record.workspace != agent.service.workspace {
        let message = format!("the batch is for the workspace {}", record.workspace);
        return Ok(Failure::new(Reason::PolicyDenied, message).into());
    }
    if let Some(failure) = agent.approval.beforehand() {
        return Ok(failure.into());
    }
    let batch = tokio::select! {
        fetched = blobs::fetch(&leased.connection, record.batch.clone()) => match fetched {
            Ok(batch) => batch,
            Err(Unfetched::Refused(failure)) => return Ok((*failure).into()),
            Err(Unfetched::Lost(error)) => {
                tracing::warn!(BatchId = %record.id, %error, "the batch waits for a new connection");
                leased.alive.cancel();
                return Ok(Outcome::Undecided);
            }
        },
        () = withdrawn.cancelled() => return Ok(not_done(leased)),
    };
    let (local, approval, stop) = (Arc::clone(&leased.workspace), Arc::clone(&agent.approval), agent.stop.clone());
    let (policies, moved) = (Arc::clone(&agent.service.policy), Arc::clone(&agent.moved));
    let (id, workspace, origin) = (record.id, record.workspace.clone(), record.origin.clone());
    let outcome = blocking(move || {
        tell_moved(&local, &moved);
        let told = OnceCell::new();
        let places = policies.private_places(&local);
        let encoded = |report: &Report| {
            let mut report = report.clone();
            places.name_in_report(&mut report);
            told::encode(Receipt { workspace: workspace.clone(), batch: id, report })
        };
        let encode = |report: &Report| told.get_or_init(|| encoded(report)).clone().unwrap_or_default();
        let policy = match policies.read(&local) {
            Ok(policy) => policy,
            Err(error) => return Some(error.failure().into()),
        };
        let void = Cell::new(false);
        let compare = |hidden: &[Hidden<'_>]| {
            let question =
                Comparison { batch: id, content: &batch, hidden, policy: &policy, withdrawn: &withdrawn, stop: &stop };
            approval.may_compare(question).unwrap_or_else(|| {
                void.set(true);
                false
            })
        };
        let options = ApplyOptions {
            policy: &policy,
            origin: &origin,
            diff_bytes: REPORT_DIFF_BYTES,
            mode: Mode::CommitWithReceipt { batch: id, encode: &encode, compare: &compare },
        };
        let applied = apply::apply(&local, &batch, options, &mut |proposal| {
            if let Some(Err(failure)) = told.get() {
                return Decision::Refuse(vec![(**failure).clone()]);
            }
            let question = Question {
                batch: id,
                proposal,
                policy: &policy,
                policies: &policies,
                withdrawn: &withdrawn,
                stop: &stop,
            };
            match approval.decide(question) {
                Verdict::Decided(decision) => decision,
                Verdict::Void => {
                    void.set(true);
                    let message = "the batch was withdrawn, or the agent stops";
                    Decision::Refuse(vec![Failure::new(Reason::InvalidState, message)])
                }
            }
        });
        match applied {
            Ok(report) => {
                let kept = told.get().and_then(|told| told.as_ref().ok()).cloned().unwrap_or_default();
                log::warnings(id, &report);
                Some(Outcome::Applied { receipt: amended(&local, id, kept, encoded(&report)) })
            }
            Err(_) if void.get() => None,
            Err(refusal) => Some(Outcome::Refused(refusal.failures)),
        }
    });
    Ok(outcome.await?.unwrap_or_else(|| if agent.stop.is_cancelled() { Outcome::Undecided } else { not_done(leased) }))
}

/// Says once that files are not written where their root was when the agent began.
fn tell_moved(local: &Workspace, told: &Once) {
    if let Some(root) = local.roots().iter().find(|root| root.has_moved() && !root.is_removed()) {
        told.call_once(|| {
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

/// A batch whose token was cancelled was withdrawn, unless the whole connection is dead.
fn not_done(leased: &LeasedConnection) -> Outcome {
    if leased.alive.is_cancelled() { Outcome::Undecided } else { Outcome::Withdrawn }
}

/// Keeps the report of a batch that changed nothing, then delivers it. Only what is kept is refused: a batch whose report
/// is not has to come again.
async fn refuse(
    agent: &Agent,
    leased: &LeasedConnection,
    batch: BatchId,
    origin: &Origin,
    mut failures: Vec<Failure>,
    begun: Begun,
) -> Result<Handled, AgentError> {
    begun.refused();
    let (local, policies) = (Arc::clone(&agent.local), Arc::clone(&agent.service.policy));
    blocking(move || policies.private_places(&local)).await?.name_in(&mut failures);
    let workspace = leased.connection.workspace().clone();
    let receipt = receipt::encode(Receipt { workspace, batch, report: told::refusal(failures.clone()) });
    if !keep(agent, batch, &receipt).await? {
        return Ok(Handled::Undone);
    }
    log::refused(batch, origin, &failures);
    delivery::deliver(leased, Pending { batch, owed: Owed::Receipt(receipt) }).await?;
    Ok(Handled::Done)
}

/// Looks into the outbox for a batch, as soon as that is possible; nothing if the agent stops before that.
async fn look<T: Send + 'static>(
    agent: &Agent,
    batch: BatchId,
    find: fn(&Workspace, BatchId) -> Result<T, OutboxError>,
) -> Result<Option<T>, AgentError> {
    let mut backoff = Backoff::new(PASSING.0, PASSING.1);
    loop {
        let local = Arc::clone(&agent.local);
        match blocking(move || find(&local, batch)).await? {
            Ok(found) => return Ok(Some(found)),
            Err(error) if error.will_pass() => tracing::warn!(BatchId = %batch, %error, "the batch is tried again"),
            Err(error) => return Err(error.into()),
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = agent.stop.cancelled() => return Ok(None),
        }
    }
}

/// Keeps a receipt, as soon as there is room for it; false if the agent stops before that.
async fn keep(agent: &Agent, batch: BatchId, receipt: &[u8]) -> Result<bool, AgentError> {
    let mut backoff = Backoff::new(PASSING.0, PASSING.1);
    let mut told = false;
    loop {
        let (local, kept) = (Arc::clone(&agent.local), receipt.to_vec());
        let error = match blocking(move || outbox::put(&local, batch, &kept)).await? {
            Ok(()) => return Ok(true),
            Err(error) if error.will_pass() => error,
            Err(error) => return Err(error.into()),
        };
        if !told {
            tracing::warn!(BatchId = %batch, %error,
                "the report of a batch waits until it can be kept: free some space on the disk of the state directory, or let the \
                 agent open more files");
            told = true;
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = agent.stop.cancelled() => return Ok(false),
        }
    }
}
