//! What the server is still owed: reports of ended batches, and the new contents that belong to them.
//!
//! Reports are entries of one log (`outbox/log.rs`). The record of a commit holds the report from before the commit point
//! on, and goes only once the log has it; putting a report there once more does nothing. So no batch is applied and
//! forgotten, and none is applied twice.

pub mod adopt;
pub(in crate::workspace) mod commits;
mod ended;
pub mod error;
mod frame;
mod log;
mod log_access;

use std::os::fd::AsFd;
use std::path::PathBuf;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId};

use crate::workspace::commit::contents;
use crate::workspace::keep::history::entries;
use crate::workspace::roots::own_file;
use crate::workspace::roots::workspace::Workspace;
use error::OutboxError;
use frame::Kind;
use log::{Known, Log};
use log_access::{made, with_log};

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
    let state = workspace.primary().state();
    with_log(workspace, state, |log, _| Ok(log.as_ref().map(Log::waiting).unwrap_or_default()))
}

/// What is owed about one batch, if anything is.
///
/// # Errors
/// When the outbox cannot be read.
pub fn find(workspace: &Workspace, batch: BatchId) -> Result<Option<Pending>, OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let pending = |(kind, body)| {
        let owed = if kind == Kind::Receipt { Owed::Receipt(body) } else { Owed::Lost };
        Pending { batch, owed }
    };
    let (found, is_unsure) = with_log(workspace, state, |log, _| {
        let Some(log) = log else { return Ok((None, false)) };
        let is_unsure = log.has_gap() && log.known(batch) == Known::No;
        Ok((log.find(state, batch)?.map(pending), is_unsure))
    })?;
    // Entries were lost: a batch that the history knows has ended here all the same.
    if is_unsure && !ended::contains(disk, state, batch)? && is_in_history(workspace, batch) {
        lose(workspace, batch, b"")?;
        return Ok(Some(Pending { batch, owed: Owed::Lost }));
    }
    Ok(found)
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
    contents::read(&state.open_outbox()?, batch, digest).map_err(OutboxError::system(state, "read"))
}

/// Keeps a receipt: that of a batch that changed nothing, or a fuller one for the one that its commit left. One that comes
/// after the server has acknowledged the batch is not needed.
///
/// # Errors
/// When it cannot be made durable.
pub fn put(workspace: &Workspace, batch: BatchId, receipt: &[u8]) -> Result<(), OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    with_log(workspace, state, |log, dir| {
        if log.as_ref().is_some_and(|log| log.known(batch) == Known::Ended) {
            return Ok(());
        }
        made(disk, state, dir, log)?.append(disk, state, Kind::Receipt, batch, receipt)
    })
}

/// Sets a receipt aside that cannot be sent; the server is owed from then on that it is lost.
///
/// # Errors
/// When it cannot be made durable.
pub fn set_aside(workspace: &Workspace, batch: BatchId, receipt: &[u8]) -> Result<PathBuf, OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let (aside, tmp) = (state.open_damaged()?, state.open_tmp()?);
    let name = own_file::aside_name("outbox", &batch.to_string());
    own_file::replace(disk, tmp.as_fd(), aside.as_fd(), &name, receipt)
        .map_err(OutboxError::system_in(state, "damaged", "write"))?;
    let kept = state.path().join("damaged").join(name);
    lose(workspace, batch, kept.as_os_str().as_encoded_bytes())?;
    Ok(kept)
}

fn lose(workspace: &Workspace, batch: BatchId, kept: &[u8]) -> Result<(), OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    with_log(workspace, state, |log, dir| made(disk, state, dir, log)?.append(disk, state, Kind::Lost, batch, kept))
}

/// Forgets what the server has acknowledged, but not that the batch has ended: it may come again, from a server that
/// tells its events once more. `history` is the history of that server's store, where it says so. Doing it again does
/// nothing.
///
/// # Errors
/// When the system refuses to note it.
pub fn acknowledge(workspace: &Workspace, batch: BatchId, history: Option<HistoryId>) -> Result<(), OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    let history = history.map(|history| history.to_string()).unwrap_or_default();
    with_log(workspace, state, |log, dir| {
        let is_ended = match log.as_ref().map_or(Known::No, |log| log.known(batch)) {
            Known::Ended => true,
            Known::Waits => false,
            Known::No => ended::contains(disk, state, batch)?,
        };
        if is_ended {
            return Ok(());
        }
        // The report goes last: as long as it is there, whoever dies half-way comes back to finish this.
        contents::remove(disk, dir, &batch.to_string()).map_err(OutboxError::system(state, "clear"))?;
        made(disk, state, dir, log)?.append(disk, state, Kind::Ended, batch, history.as_bytes())?;
        *log = log.take().map(|log| log.tidy(disk, state, dir.as_fd())).transpose()?;
        Ok(())
    })
}

/// Whether a batch has ended here and the server has acknowledged it.
///
/// # Errors
/// When the system refuses to look.
pub fn is_done(workspace: &Workspace, batch: BatchId) -> Result<bool, OutboxError> {
    let (disk, state) = (workspace.disk(), workspace.primary().state());
    with_log(workspace, state, |log, _| match log.as_ref().map_or(Known::No, |log| log.known(batch)) {
        Known::Ended => Ok(true),
        Known::Waits => Ok(false),
        Known::No => ended::contains(disk, state, batch),
    })
}
