//! Telling the server what became of a batch: first the new contents, then the report, and only then is it forgotten.

use std::collections::BTreeSet;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, HistoryId};
use aptix_model::reason::Reason;
use aptix_model::report::{FileStatus, Report};
use tokio_util::sync::CancellationToken;

use super::error::{AgentError, blocking};
use super::told;
use crate::connection::backoff::Backoff;
use crate::connection::receipt::{self, Receipt};
use crate::connection::{CallError, Connection, Lease};
use crate::workspace::keep::outbox::{self, Owed, Pending};
use crate::workspace::keep::reported;
use crate::workspace::roots::workspace::Workspace;

/// How often a report is tried before other work goes on.
const ATTEMPTS: usize = 6;
/// Reports of ended batches that can be sent again to a server that was set back.
const REPORTS: usize = 10_000;

/// The way to the server under one lease.
#[derive(Clone, Debug)]
pub(super) struct LeasedConnection {
    pub(super) workspace: Arc<Workspace>,
    pub(super) connection: Connection,
    pub(super) lease: Lease,
    /// The history of the server's store, once the feed has named it.
    pub(super) history: Arc<OnceLock<HistoryId>>,
    /// Cancelled when the lease or the connection is lost.
    pub(super) alive: CancellationToken,
}

/// Delivers whatever waits, in the order in which it ended; what cannot be delivered now keeps waiting.
pub(super) async fn deliver_all(leased: &LeasedConnection) -> Result<(), AgentError> {
    later(deliver_waiting(leased).await)
}

/// Leaves for later what cannot be delivered because the disk is full or nothing more can be opened.
fn later(delivered: Result<(), AgentError>) -> Result<(), AgentError> {
    match delivered {
        Err(AgentError::Outbox(error)) if error.will_pass() => {
            tracing::warn!(%error, "reports wait");
            Ok(())
        }
        delivered => delivered,
    }
}

async fn deliver_waiting(leased: &LeasedConnection) -> Result<(), AgentError> {
    let workspace = Arc::clone(&leased.workspace);
    for batch in blocking(move || outbox::waiting(&workspace)).await?? {
        if leased.alive.is_cancelled() {
            return Ok(());
        }
        let workspace = Arc::clone(&leased.workspace);
        if let Some(pending) = blocking(move || outbox::find(&workspace, batch)).await?? {
            deliver(leased, pending).await?;
        }
    }
    let workspace = Arc::clone(&leased.workspace);
    blocking(move || reported::forget(&workspace, REPORTS)).await
}

/// Delivers one receipt if that is possible now.
pub(super) async fn deliver(leased: &LeasedConnection, pending: Pending) -> Result<(), AgentError> {
    later(deliver_now(leased, pending).await)
}

async fn deliver_now(leased: &LeasedConnection, pending: Pending) -> Result<(), AgentError> {
    let batch = pending.batch;
    let (receipt, is_lost) = match read(leased, pending).await? {
        Some(receipt) if receipt.workspace != *leased.connection.workspace() => {
            tracing::warn!(BatchId = %batch, workspace = %receipt.workspace,
                "a report waits for another workspace; serve that one to deliver it");
            return Ok(());
        }
        Some(receipt) => (receipt, false),
        None => (lost(leased, batch), true),
    };
    let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
    for _ in 0..ATTEMPTS {
        match report(leased, &receipt).await? {
            Ok(()) => {
                tracing::info!(name: "Batch.Reported", Event = "Batch.Reported", BatchId = %receipt.batch,
                    Outcome = ?receipt.report.outcome);
                return acknowledge(leased, &receipt).await;
            }
            // Which workspace it belongs to is lost with it.
            Err(error) if is_lost && error.reason() == Some(Reason::NotFound) => return Ok(()),
            Err(error) => match after(&error) {
                Next::Forget => {
                    tracing::warn!(BatchId = %receipt.batch, outcome = ?receipt.report.outcome, %error,
                        "the server has another end of the batch on record, the report is dropped");
                    return acknowledge(leased, &receipt).await;
                }
                Next::Reconnect => {
                    tracing::warn!(BatchId = %receipt.batch, %error, "the report waits for a new connection");
                    leased.alive.cancel();
                    return Ok(());
                }
                Next::Keep => {
                    tracing::error!(BatchId = %receipt.batch, %error, "the server refuses the report, it is kept");
                    return Ok(());
                }
                Next::Retry => tracing::warn!(BatchId = %receipt.batch, %error, "the report is tried again"),
            },
        }
        tokio::select! {
            () = tokio::time::sleep(backoff.wait()) => {}
            () = leased.alive.cancelled() => return Ok(()),
        }
    }
    Ok(())
}

/// The receipt of a batch; nothing where it is lost. One that cannot be read, or names another batch, is set aside and
/// never sent.
async fn read(leased: &LeasedConnection, pending: Pending) -> Result<Option<Receipt>, AgentError> {
    let Pending { batch, owed } = pending;
    let Owed::Receipt(bytes) = owed else { return Ok(None) };
    let why = match receipt::decode(&bytes) {
        Ok(receipt) if receipt.batch == batch => return Ok(Some(receipt)),
        Ok(receipt) => format!("it is that of the batch {}", receipt.batch),
        Err(failures) => failures.first().map_or_else(String::new, ToString::to_string),
    };
    let workspace = Arc::clone(&leased.workspace);
    let kept = blocking(move || outbox::set_aside(&workspace, batch, &bytes)).await??;
    tracing::error!(BatchId = %batch, kept = %kept.display(), why, "the report of a batch cannot be sent and is set aside");
    Ok(None)
}

/// What the server is told of a batch whose report is lost.
fn lost(leased: &LeasedConnection, batch: BatchId) -> Receipt {
    let message = "the batch ended on the agent's machine, and its report was damaged there: whether it was applied is not \
                   known";
    let failure = Failure::new(Reason::NeedsOperator, message)
        .hint("read the files before sending the batch again; the agent's log names what was set aside");
    Receipt { workspace: leased.connection.workspace().clone(), batch, report: told::refusal(vec![failure]) }
}

enum Next {
    Retry,
    Reconnect,
    Forget,
    Keep,
}

/// What a failed report calls for.
fn after(error: &CallError) -> Next {
    match error.reason() {
        Some(Reason::ResultFinal | Reason::NotFound) => Next::Forget,
        Some(Reason::LeaseLost) => Next::Reconnect,
        // The server lost it between the question and the report, or it never came whole.
        Some(Reason::BlobMissing | Reason::HashFailed) => Next::Retry,
        _ if error.is_passing() => Next::Retry,
        _ => Next::Keep,
    }
}

async fn report(leased: &LeasedConnection, receipt: &Receipt) -> Result<Result<(), CallError>, AgentError> {
    let new = new_contents(&receipt.report);
    let missing = match leased.connection.find_missing(&new).await {
        Ok(missing) => missing,
        Err(error) => return Ok(Err(error)),
    };
    for digest in missing {
        let (workspace, batch) = (Arc::clone(&leased.workspace), receipt.batch);
        let content = blocking(move || match outbox::content(&workspace, batch, digest) {
            Ok(None) => Ok(reported::content(&workspace, batch, digest)),
            content => content,
        });
        let Some(content) = content.await?? else {
            tracing::error!(BatchId = %receipt.batch, %digest, "the content of a changed file is not kept any more");
            return Ok(leased.connection.report(&leased.lease, receipt.batch, told::content_lost()).await);
        };
        if let Err(error) = leased.connection.upload(Some(&leased.lease), digest, content).await {
            return Ok(Err(error));
        }
    }
    Ok(leased.connection.report(&leased.lease, receipt.batch, receipt.report.clone()).await)
}

fn new_contents(report: &Report) -> Vec<Sha256Digest> {
    let changed = report.files.iter().filter(|file| file.status != FileStatus::Unchanged);
    changed.filter_map(|file| Some(file.written?.sha256)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// Reports a batch again that ended here and was acknowledged, to a server that has forgotten it: one whose data directory
/// was put back.
pub(super) async fn deliver_again(leased: &LeasedConnection, batch: BatchId) -> Result<(), AgentError> {
    let workspace = Arc::clone(&leased.workspace);
    let kept = blocking(move || reported::find(&workspace, batch)).await??;
    let own = |receipt: &Receipt| receipt.workspace == *leased.connection.workspace() && receipt.batch == batch;
    let kept = kept.and_then(|bytes| receipt::decode(&bytes).ok()).filter(own);
    let forgotten = || Receipt { workspace: leased.connection.workspace().clone(), batch, report: told::forgotten() };
    let receipt = match kept {
        Some(receipt) if has_contents(leased, &receipt).await? => receipt,
        _ => forgotten(),
    };
    tracing::warn!(BatchId = %batch, outcome = ?receipt.report.outcome,
        "the server was set back: the batch ended here before, its report is sent again");
    deliver(leased, Pending { batch, owed: Owed::Receipt(receipt::encode(receipt)) }).await
}

/// Whether every new content that the server lacks is still kept. One that cannot be asked now is asked again.
async fn has_contents(leased: &LeasedConnection, receipt: &Receipt) -> Result<bool, AgentError> {
    let missing = leased.connection.find_missing(&new_contents(&receipt.report)).await.unwrap_or_default();
    let (workspace, batch) = (Arc::clone(&leased.workspace), receipt.batch);
    blocking(move || missing.into_iter().all(|digest| reported::content(&workspace, batch, digest).is_some())).await
}

/// Forgets what the server has, but keeps the report for a server that is set back. Where there is no room to note that, the
/// report is sent again, which does no harm.
async fn acknowledge(leased: &LeasedConnection, receipt: &Receipt) -> Result<(), AgentError> {
    let (workspace, batch) = (Arc::clone(&leased.workspace), receipt.batch);
    let report = Report { diff: String::new(), diff_omitted: true, ..receipt.report.clone() };
    let kept = receipt::encode(Receipt { report, ..receipt.clone() });
    let history = leased.history.get().copied();
    let acknowledged = blocking(move || {
        reported::keep(&workspace, batch, &kept);
        outbox::acknowledge(&workspace, batch, history)
    });
    match acknowledged.await? {
        Err(error) if error.will_pass() => {
            tracing::warn!(BatchId = %batch, %error, "a report that was delivered is kept");
            Ok(())
        }
        outcome => Ok(outcome?),
    }
}
