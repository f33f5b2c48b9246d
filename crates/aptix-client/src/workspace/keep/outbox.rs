//! What the server is still owed: reports of ended batches, and the new contents that belong to them.
//!
//! Reports are entries of one log (`outbox/log.rs`). The record of a commit holds the report from before the commit point
//! on, and goes only once the log has it; putting a report there once more does nothing. So no batch is applied and
//! forgotten, and none is applied twice.

mod adopt;
pub(in crate::workspace) mod contents;
mod ended;
mod frame;
mod log;

use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;
use std::sync::PoisonError;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, HistoryId};
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::fs::disk::Disk;
use crate::workspace::fs::{beneath, errno};
use crate::workspace::keep::history;
use crate::workspace::roots::own_file;
use crate::workspace::roots::state::{StateDir, StateError};
pub use adopt::adopt;
pub(in crate::workspace) use adopt::batches;
use frame::Kind;
use log::Known;
pub(in crate::workspace) use log::Log;

/// Why the outbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The directory.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// A log that a later version wrote.
    #[error("{} was written by a later version of aptix, which has to go on with it", path.display())]
    Version {
        /// The log.
        path: PathBuf,
    },
}

impl OutboxError {
    fn system(state: &StateDir, doing: &'static str) -> impl Fn(Errno) -> Self + use<> {
        Self::system_in(state, "outbox", doing)
    }

    fn system_in(state: &StateDir, part: &str, doing: &'static str) -> impl Fn(Errno) -> Self + use<> {
        let path = state.path().join(part);
        move |errno| Self::System { doing, path: path.clone(), errno }
    }

    /// Tells it to the author of the edit.
    pub(in crate::workspace) fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::System { errno, .. } => errno::write_failure(*errno, self.to_string()),
            Self::Version { .. } => Failure::new(Reason::NeedsOperator, self.to_string())
                .hint("go on with that version of aptix, or remove the file: reports that wait in it are lost then"),
        }
    }

    /// What the system says.
    pub(in crate::workspace) fn errno(&self) -> Errno {
        match self {
            Self::State(error) => error.errno(),
            Self::System { errno, .. } => *errno,
            Self::Version { .. } => Errno::PROTO,
        }
    }

    /// Whether it passes by itself, or once a person has made space on the disk.
    #[must_use]
    pub(crate) fn will_pass(&self) -> bool {
        // `AGAIN`: another process holds the lock.
        let passing = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        passing.contains(&self.errno())
    }
}

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
    with_log(workspace.disk(), state, |log, _| Ok(log.as_ref().map(Log::waiting).unwrap_or_default()))
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
    let (found, is_unsure) = with_log(disk, state, |log, _| {
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
    let entries = history::list(workspace).inspect_err(|error| tracing::warn!(%error, "the history cannot be read"));
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
    with_log(disk, state, |log, dir| {
        if log.as_ref().is_some_and(|log| log.known(batch) == Known::Ended) {
            return Ok(());
        }
        made(disk, state, dir, log)?.append(disk, state, Kind::Receipt, batch, receipt)
    })
}

/// Keeps the receipt of a batch whose commit ends, durably, unless the outbox knows the batch already. Doing it again does
/// nothing.
pub(in crate::workspace) fn keep(
    disk: &dyn Disk,
    state: &StateDir,
    batch: BatchId,
    receipt: &[u8],
) -> Result<(), OutboxError> {
    with_log(disk, state, |log, dir| {
        let known = log.as_ref().map_or(Known::No, |log| log.known(batch));
        let is_lost = || {
            Ok::<_, OutboxError>(match log.as_ref() {
                Some(log) => log.find(state, batch)?.is_some_and(|(kind, _)| kind == Kind::Lost),
                None => false,
            })
        };
        if known == Known::Ended || (known == Known::Waits && !is_lost()?) || ended::contains(disk, state, batch)? {
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
    with_log(disk, state, |log, dir| made(disk, state, dir, log)?.append(disk, state, Kind::Lost, batch, kept))
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
    with_log(disk, state, |log, dir| {
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
    with_log(disk, state, |log, _| match log.as_ref().map_or(Known::No, |log| log.known(batch)) {
        Known::Ended => Ok(true),
        Known::Waits => Ok(false),
        Known::No => ended::contains(disk, state, batch),
    })
}

/// Forgets the contents of batches that have no receipt. The caller knows that no batch may still be carried out.
pub(in crate::workspace) fn drop_unclaimed(disk: &dyn Disk, state: &StateDir) -> Result<(), OutboxError> {
    let failed = |doing| OutboxError::system(state, doing);
    let Some(outbox) = state.find_outbox()? else { return Ok(()) };
    let batches = contents::batches(&outbox).map_err(failed("read"))?;
    if batches.is_empty() {
        return Ok(());
    }
    with_log(disk, state, |log, dir| {
        for batch in batches {
            let waits = |batch: &BatchId| log.as_ref().is_some_and(|log| log.known(*batch) == Known::Waits);
            // An earlier version's receipt is a file of the batch's name.
            let is_old = beneath::look_up(dir.as_fd(), &batch).map_err(failed("read"))?.is_some();
            if !is_old && !batch.parse().is_ok_and(|batch| waits(&batch)) {
                contents::remove(disk, dir, &batch).map_err(failed("clear"))?;
            }
        }
        Ok(())
    })
}

/// Does something with the log as it is now, while nobody else does.
fn with_log<T>(
    disk: &dyn Disk,
    state: &StateDir,
    work: impl FnOnce(&mut Option<Log>, &OwnedFd) -> Result<T, OutboxError>,
) -> Result<T, OutboxError> {
    let mut known = state.outbox_log().lock().unwrap_or_else(PoisonError::into_inner);
    let _lock = state.lock_outbox()?;
    let dir = state.open_outbox()?;
    // What fails half-way is read anew by the next one.
    let mut log = Log::read(disk, state, dir.as_fd(), known.take())?;
    let done = work(&mut log, &dir)?;
    *known = log;
    Ok(done)
}

/// The log, made if there is none yet.
fn made<'l>(
    disk: &dyn Disk,
    state: &StateDir,
    dir: &OwnedFd,
    log: &'l mut Option<Log>,
) -> Result<&'l mut Log, OutboxError> {
    if log.is_none() {
        *log = Some(Log::make(disk, state, dir.as_fd())?);
    }
    log.as_mut().ok_or_else(|| OutboxError::system(state, "write")(Errno::NOENT))
}
