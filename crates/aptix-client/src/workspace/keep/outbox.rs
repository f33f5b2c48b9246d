//! What the server is still owed: reports of ended batches, and the new contents that belong to them.
//!
//! Reports are entries of one log (`outbox/log.rs`). The record of a commit holds the report from before the commit point
//! on, and goes only once the log has it; putting a report there once more does nothing. So no batch is applied and
//! forgotten, and none is applied twice.

pub mod adopt;
mod ended;
pub mod error;
mod frame;
mod index;
mod log;

use std::os::fd::AsFd;
use std::path::PathBuf;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId};

use crate::workspace::commit::contents;
use crate::workspace::fs::beneath;
use crate::workspace::keep::history::entries;
use crate::workspace::roots::own_file;
use crate::workspace::roots::state::{Part, StateDir};
use crate::workspace::roots::workspace::Workspace;
use error::OutboxError;
use frame::Kind;
use index::{Gap, Known};
use log::with_log;

/// What the server is owed about a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Owed {
    /// What was given to the commit, unchanged.
    Receipt(Vec<u8>),
    /// That the batch ended here, and that its report was damaged and is set aside, or gone.
    Lost,
}

/// A batch that has ended here, and that the server has not acknowledged.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Pending {
    /// Which.
    pub batch: BatchId,
    /// What the server is owed.
    pub owed: Owed,
}

/// The batches whose reports wait, in the order in which they ended.
///
/// # Errors
/// When the outbox cannot be read.
pub fn waiting(workspace: &Workspace) -> Result<Vec<BatchId>, OutboxError> {
    with_log(workspace, workspace.primary().state(), |log| Ok(log.waiting()))
}

/// What is owed about one batch, if anything is.
///
/// # Errors
/// When the outbox cannot be read.
pub fn find(workspace: &Workspace, batch: BatchId) -> Result<Option<Pending>, OutboxError> {
    with_log(workspace, workspace.primary().state(), |log| {
        if let Some((kind, body)) = log.find(batch)? {
            let owed = if kind == Kind::Receipt { Owed::Receipt(body) } else { Owed::Lost };
            return Ok(Some(Pending { batch, owed }));
        }
        // Entries were lost: a batch that the history knows has ended here all the same.
        if log.gap() == Gap::No || log.has_ended(batch)? || !is_in_history(workspace, batch) {
            return Ok(None);
        }
        log.append(Kind::Lost, batch, b"")?;
        Ok(Some(Pending { batch, owed: Owed::Lost }))
    })
}

fn is_in_history(workspace: &Workspace, batch: BatchId) -> bool {
    let name = batch.to_string();
    let entries = entries::list(workspace).inspect_err(|error| tracing::warn!(%error, "the history cannot be read"));
    entries.unwrap_or_default().iter().any(|entry| entry.batch.as_deref() == Some(&name))
}

/// The new content of a file that a batch changed, by its digest; `None` once it is acknowledged.
///
/// # Errors
/// When the system refuses to read it.
pub fn content(workspace: &Workspace, batch: BatchId, digest: Sha256Digest) -> Result<Option<Vec<u8>>, OutboxError> {
    let state = workspace.primary().state();
    let content = contents::read(&state.open(Part::OUTBOX)?, batch, digest);
    Ok(content.map_err(state.failed(Part::OUTBOX, "read"))?)
}

/// Keeps a receipt: that of a batch that changed nothing, or a fuller one for the one that its commit left. One that comes
/// after the server has acknowledged the batch is not needed.
///
/// # Errors
/// When it cannot be made durable.
pub fn put(workspace: &Workspace, batch: BatchId, receipt: &[u8]) -> Result<(), OutboxError> {
    with_log(workspace, workspace.primary().state(), |log| match log.known(batch) {
        Known::Ended => Ok(()),
        Known::Waits | Known::No => log.append(Kind::Receipt, batch, receipt),
    })
}

/// Keeps the receipt of a batch whose commit ends, durably, unless the outbox knows the batch already. Doing it again does
/// nothing.
pub(crate) fn keep(workspace: &Workspace, state: &StateDir, batch: BatchId, receipt: &[u8]) -> Result<(), OutboxError> {
    with_log(workspace, state, |log| match log.find(batch)? {
        Some((kind, _)) if kind != Kind::Lost => Ok(()),
        _ if log.known(batch) == Known::Ended || ended::contains(log.disk, state, batch)? => Ok(()),
        _ => log.append(Kind::Receipt, batch, receipt),
    })
}

/// Sets a receipt aside that cannot be sent; the server is owed from then on that it is lost.
///
/// # Errors
/// When it cannot be made durable.
pub fn set_aside(workspace: &Workspace, batch: BatchId, receipt: &[u8]) -> Result<PathBuf, OutboxError> {
    let state = workspace.primary().state();
    let kept = own_file::keep_aside(workspace.disk(), state, (Part::OUTBOX, &batch.to_string()), receipt)?;
    with_log(workspace, state, |log| log.append(Kind::Lost, batch, kept.as_os_str().as_encoded_bytes()))?;
    Ok(kept)
}

/// Forgets what the server has acknowledged, but not that the batch has ended: a server that repeats its events may send
/// it again. `history` is the history of that server's store, where it says so. Doing it again does nothing.
///
/// # Errors
/// When the system refuses to note it.
pub fn acknowledge(workspace: &Workspace, batch: BatchId, history: Option<HistoryId>) -> Result<(), OutboxError> {
    let history = history.map(|history| history.to_string()).unwrap_or_default();
    with_log(workspace, workspace.primary().state(), |log| {
        if log.has_ended(batch)? {
            return Ok(());
        }
        // The report goes last: as long as it is there, a process that dies half-way comes back to finish this.
        contents::remove(log.disk, &log.dir, &batch.to_string()).map_err(log.failed("clear"))?;
        log.append(Kind::Ended, batch, history.as_bytes())?;
        log.tidy()
    })
}

/// Whether a batch has ended here and the server has acknowledged it.
///
/// # Errors
/// When the system refuses to look.
pub fn is_done(workspace: &Workspace, batch: BatchId) -> Result<bool, OutboxError> {
    with_log(workspace, workspace.primary().state(), |log| log.has_ended(batch))
}

/// Forgets the contents of batches that have no receipt. The caller knows that no batch may still be carried out.
pub(crate) fn drop_unclaimed(workspace: &Workspace, state: &StateDir) -> Result<(), OutboxError> {
    let Some(outbox) = state.find(Part::OUTBOX)? else { return Ok(()) };
    let batches = contents::batches(&outbox).map_err(state.failed(Part::OUTBOX, "read"))?;
    if batches.is_empty() {
        return Ok(());
    }
    with_log(workspace, state, |log| {
        for batch in batches {
            // An earlier version's receipt is a file of the batch's name.
            let is_old = beneath::look_up(log.dir.as_fd(), &batch).map_err(log.failed("read"))?.is_some();
            if !is_old && !batch.parse().is_ok_and(|batch| log.known(batch) == Known::Waits) {
                contents::remove(log.disk, &log.dir, &batch).map_err(log.failed("clear"))?;
            }
        }
        Ok(())
    })
}
