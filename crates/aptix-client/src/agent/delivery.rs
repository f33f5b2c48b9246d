//! Delivers reports to the server: first the new contents, then the report; only then the outbox forgets it.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::events::event::Event;
use aptix_model::events::trace::Trace;
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Report};
use aptix_model::state::BatchState;

use super::error::AgentError;
use super::report;
use super::screen;
use super::service::Session;
use crate::apply::traced::Traced;
use crate::connection::backoff::Backoff;
use crate::connection::receipt::{self, Receipt};
use crate::connection::{CallError, Reported};
use crate::workspace::keep::outbox::{self, Owed, Pending};
use crate::workspace::keep::reported;

/// How often a report is tried before other work goes on.
const ATTEMPTS: usize = 6;
/// The waits between them.
const DELIVERY: Backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
/// Reports of ended batches that can be sent again to a server that was set back.
const REPORTS: usize = 10_000;

/// Delivers all reports that wait, in the order in which their batches ended; those that cannot be delivered now keep waiting.
pub(super) async fn deliver_all(session: Arc<Session>) -> Result<(), AgentError> {
    later(deliver_waiting(&session).await).map(drop)
}

/// Postpones what cannot be delivered because the disk is full or too many files are open; nothing then.
fn later<T>(delivered: Result<T, AgentError>) -> Result<Option<T>, AgentError> {
    match delivered {
        Err(AgentError::Outbox(error)) if error.will_pass() => {
            tracing::warn!(%error, "reports wait");
            Ok(None)
        }
        delivered => delivered.map(Some),
    }
}

async fn deliver_waiting(session: &Session) -> Result<(), AgentError> {
    for batch in session.agent.blocking(|agent| outbox::waiting(&agent.local)).await?? {
        if session.alive.is_cancelled() {
            return Ok(());
        }
        // Whoever handles a batch reports it.
        if !session.is_handled(batch) {
            deliver_late(session, batch).await?;
        }
    }
    session.agent.blocking(|agent| reported::forget(&agent.local, REPORTS)).await
}

/// Delivers what is owed about a batch that ended a while ago, if that is possible now.
pub(super) async fn deliver_late(session: &Session, batch: BatchId) -> Result<(), AgentError> {
    let delivered = async {
        match session.agent.blocking(move |agent| outbox::find(&agent.local, batch)).await?? {
            Some(pending) => deliver_now(session, pending, Coming::Late).await,
            None => Ok(()),
        }
    };
    later(delivered.await).map(drop)
}

/// Delivers the receipt of a batch that has just ended, if that is possible now.
pub(super) async fn deliver(session: &Session, pending: Pending) -> Result<(), AgentError> {
    later(deliver_now(session, pending, Coming::Fresh).await).map(drop)
}

/// Whether the server may have newer content of the files than a report has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Coming {
    /// Their batch has just ended.
    Fresh,
    /// The report waited.
    Late,
}

async fn deliver_now(session: &Session, pending: Pending, coming: Coming) -> Result<(), AgentError> {
    let batch = pending.batch;
    // It is dropped once its change is reported as a batch of the workstation.
    if session.is_unapplied(batch) {
        return Ok(());
    }
    let receipt = match read(session, pending).await? {
        Some(receipt) if receipt.workspace != session.agent.service.workspace => {
            tracing::warn!(BatchId = %batch, WorkspaceId = %receipt.workspace,
                "a report waits for another workspace; serve that one to deliver it");
            return Ok(());
        }
        Some(receipt) => receipt,
        None => {
            session.waiting.end(batch);
            return send(session, &session.receipt(batch, report::lost()), true).await.map(drop);
        }
    };
    if !session.waiting.add(batch, &receipt.report) {
        tracing::info!(BatchId = %batch, "the report waits for that of an earlier batch about the same file");
        return Ok(());
    }
    let sent = send(session, &receipt, false).await;
    match sent {
        Ok(Sent::Taken | Sent::Dropped) => session.waiting.end(batch),
        Ok(Sent::Unsettled) | Err(_) => session.waiting.sent_in_vain(batch),
    }
    if sent? == Sent::Taken && coming == Coming::Late {
        session.compare_later(&receipt.report);
    }
    Ok(())
}

/// What became of a report that was sent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Sent {
    /// The server has it.
    Taken,
    /// The server will not take it.
    Dropped,
    /// It was not answered for good.
    Unsettled,
}

/// Sends a receipt, and acknowledges it once the server has it. The workspace of one that is lost is not known.
async fn send(session: &Session, receipt: &Receipt, is_lost: bool) -> Result<Sent, AgentError> {
    let traced = Traced::begin(session.trace(receipt.batch));
    let (batch, outcome) = (receipt.batch, receipt.report.outcome);
    let mut backoff = DELIVERY;
    for _ in 0..ATTEMPTS {
        let error = match report(session, receipt).await? {
            Ok(Reported { origin, request_id }) => {
                let trace = Trace { origin, request: Some(request_id), ..traced.trace };
                Traced { trace, ..traced }.log(Event::Reported(outcome.into(), None));
                screen::ended(batch, &receipt.report);
                acknowledge(session, receipt).await?;
                return Ok(Sent::Taken);
            }
            Err(error) => error,
        };
        match error.reason() {
            Some(Reason::NotFound) if is_lost => return Ok(Sent::Dropped),
            Some(Reason::ResultFinal) if outcome.has_applied() => match session.connection.get(batch).await {
                Ok(record) if ended_unapplied(record.state) => {
                    tracing::warn!(BatchId = %batch, state = %record.state,
                        "the batch was applied here and has another end at the server: its change is reported as a batch of this workstation");
                    session.add_unapplied(receipt);
                    return Ok(Sent::Dropped);
                }
                Err(error) if error.is_passing() => {}
                Ok(_) | Err(_) => return drop_report(session, receipt, &error).await,
            },
            Some(Reason::ResultFinal | Reason::NotFound) => return drop_report(session, receipt, &error).await,
            Some(Reason::LeaseLost) => {
                tracing::warn!(BatchId = %batch, %error, "the report waits for a new connection");
                session.alive.cancel();
                return Ok(Sent::Unsettled);
            }
            // The server lost it between the question and the report, or it never came whole.
            Some(Reason::BlobMissing | Reason::HashFailed) => {}
            _ if error.is_passing() => {}
            _ => {
                tracing::error!(BatchId = %batch, %error, "the server refuses the report, it is kept");
                session.refuse(batch);
                return Ok(Sent::Dropped);
            }
        }
        tracing::warn!(BatchId = %batch, %error, "the report is tried again");
        tokio::select! {
            () = tokio::time::sleep(backoff.wait_after(&error)) => {}
            () = session.alive.cancelled() => return Ok(Sent::Unsettled),
        }
    }
    Ok(Sent::Unsettled)
}

/// Whether a batch in this state has ended, and neither the whole nor a part of it by being applied.
pub(super) fn ended_unapplied(state: BatchState) -> bool {
    !state.is_open() && !matches!(state, BatchState::Applied | BatchState::Partial)
}

/// Drops a report that the server will never take: it has another end of the batch on record, or has no record of it.
async fn drop_report(session: &Session, receipt: &Receipt, error: &CallError) -> Result<Sent, AgentError> {
    tracing::warn!(BatchId = %receipt.batch, outcome = ?receipt.report.outcome, %error,
        "the server will not take the report, it is dropped");
    acknowledge(session, receipt).await?;
    Ok(Sent::Dropped)
}

/// The receipt of a batch; nothing where it is lost. One that cannot be read, or names another batch, is set aside and
/// never sent.
async fn read(session: &Session, pending: Pending) -> Result<Option<Receipt>, AgentError> {
    let Pending { batch, owed } = pending;
    let Owed::Receipt(bytes) = owed else { return Ok(None) };
    let why = match receipt::decode(&bytes) {
        Ok(receipt) if receipt.batch == batch => return Ok(Some(receipt)),
        Ok(receipt) => format!("it is that of the batch {}", receipt.batch),
        Err(failures) => failures.first().map_or_else(String::new, ToString::to_string),
    };
    let kept = session.agent.blocking(move |agent| outbox::set_aside(&agent.local, batch, &bytes)).await??;
    tracing::error!(BatchId = %batch, kept = %kept.display(), why, "the report of a batch cannot be sent and is set aside");
    Ok(None)
}

/// Uploads the new contents that the server lacks, then reports.
async fn report(session: &Session, receipt: &Receipt) -> Result<Result<Reported, CallError>, AgentError> {
    let (batch, connection, lease) = (receipt.batch, &session.connection, &session.lease);
    let missing = match connection.find_missing(&new_contents(&receipt.report)).await {
        Ok(missing) => missing,
        Err(error) => return Ok(Err(error)),
    };
    for digest in missing {
        let content = session.agent.blocking(move |agent| match outbox::content(&agent.local, batch, digest) {
            Ok(None) => Ok(reported::content(&agent.local, batch, digest)),
            content => content,
        });
        let Some(content) = content.await?? else {
            tracing::error!(BatchId = %batch, %digest, "the content of a changed file is not kept any more");
            return Ok(connection.report(lease, session.receipt(batch, report::content_lost())).await);
        };
        if let Err(error) = connection.upload(Some(lease), digest, content).await {
            return Ok(Err(error));
        }
    }
    Ok(connection.report(lease, receipt.clone()).await)
}

fn new_contents(report: &Report) -> Vec<Sha256Digest> {
    let changed = report.files.iter().filter(|file| file.status != FileStatus::Unchanged);
    changed.filter_map(|file| Some(file.written?.sha256)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Reports a batch again that ended here and was acknowledged: to a server whose data directory was restored. No redelivery knows of
/// that report: it is tried until the server has answered, or the connection is lost and the batch comes again.
pub(super) async fn deliver_again(session: &Session, batch: BatchId) -> Result<(), AgentError> {
    let mut backoff = DELIVERY;
    let mut receipt = None;
    loop {
        let sent = async {
            let receipt = match &receipt {
                Some(receipt) => receipt,
                None => receipt.insert(kept_receipt(session, batch).await?),
            };
            let sent = send(session, receipt, false).await?;
            if sent == Sent::Taken {
                session.compare_later(&receipt.report);
            }
            Ok(sent)
        };
        if matches!(later(sent.await)?, Some(Sent::Taken | Sent::Dropped)) {
            return Ok(());
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = session.alive.cancelled() => return Ok(()),
        }
    }
}

/// The receipt of a batch that ended here before, or what is left of it.
async fn kept_receipt(session: &Session, batch: BatchId) -> Result<Receipt, AgentError> {
    let kept = session.agent.blocking(move |agent| reported::find(&agent.local, batch)).await??;
    let own = |receipt: &Receipt| receipt.workspace == session.agent.service.workspace && receipt.batch == batch;
    let receipt = match kept.and_then(|bytes| receipt::decode(&bytes).ok()).filter(own) {
        Some(receipt) if has_contents(session, &receipt).await? => receipt,
        _ => session.receipt(batch, report::forgotten()),
    };
    tracing::warn!(BatchId = %batch, outcome = ?receipt.report.outcome,
        "the server was set back: the batch ended here before, its report is sent again");
    Ok(receipt)
}

/// Whether every new content that the server lacks is still kept. One that cannot be asked now is asked again.
async fn has_contents(session: &Session, receipt: &Receipt) -> Result<bool, AgentError> {
    let missing = session.connection.find_missing(&new_contents(&receipt.report)).await.unwrap_or_default();
    let batch = receipt.batch;
    session
        .agent
        .blocking(move |agent| {
            missing.into_iter().all(|digest| reported::content(&agent.local, batch, digest).is_some())
        })
        .await
}

/// Forgets what the server has, but keeps the report for a server that is set back. On a full disk the report stays in the
/// outbox and is sent again, which does no harm.
pub(super) async fn acknowledge(session: &Session, receipt: &Receipt) -> Result<(), AgentError> {
    let batch = receipt.batch;
    let kept = receipt::encode(receipt.without_diff());
    let history = session.history.get().copied();
    let acknowledged = session.agent.blocking(move |agent| {
        reported::keep(&agent.local, batch, &kept);
        outbox::acknowledge(&agent.local, batch, history)
    });
    match acknowledged.await? {
        Err(error) if error.will_pass() => {
            tracing::warn!(BatchId = %batch, %error, "a report that was delivered is kept");
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}
