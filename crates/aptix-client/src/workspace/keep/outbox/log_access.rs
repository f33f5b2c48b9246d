//! Reads and writes the outbox log while nobody else does.

use std::collections::HashMap;
use std::os::fd::{AsFd, OwnedFd};
use std::path::PathBuf;

use rustix::io::Errno;

use super::error::OutboxError;
use super::log::Log;
use crate::workspace::fs::disk::Disk;
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// The outbox logs as this process read them last, by state directory.
type Logs = HashMap<PathBuf, Log>;

/// Does something with the log as it is now, while nobody else does.
pub(super) fn with_log<T>(
    workspace: &Workspace,
    state: &StateDir,
    work: impl FnOnce(&mut Option<Log>, &OwnedFd) -> Result<T, OutboxError>,
) -> Result<T, OutboxError> {
    workspace.with_cache(|known: &mut Logs| {
        let _lock = state.lock_outbox()?;
        let dir = state.open_outbox()?;
        // What fails half-way is read anew by the next one.
        let mut log = Log::read(workspace.disk(), state, dir.as_fd(), known.remove(state.path()))?;
        let done = work(&mut log, &dir)?;
        known.extend(log.map(|log| (state.path().to_owned(), log)));
        Ok(done)
    })
}

/// The log, made if there is none yet.
pub(super) fn made<'l>(
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
