//! The draft of a history entry: written before the commit point, renamed to an entry once the batch is applied.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::commit::record::Record;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::errno;
use crate::workspace::roots::state::{OwnError, Part, StateDir};

/// How the name of an entry ends whose batch is not carried out yet.
const DRAFT: &str = ".draft";

/// An entry that is being made.
pub(crate) struct HistoryDraft {
    pub(crate) id: String,
    /// The directory of the history that it belongs to.
    pub(crate) dir: Arc<OwnedFd>,
    pub(crate) bytes: Vec<u8>,
    /// Whether it has what it takes to undo the batch.
    pub(crate) is_whole: bool,
}

/// Writes a draft; a power cut may take it.
pub(crate) fn write(disk: &dyn Disk, draft: &HistoryDraft) -> Result<(), Errno> {
    let file = disk.create(draft.dir.as_fd(), &format!("{}{DRAFT}", draft.id), Mode::RUSR | Mode::WUSR)?;
    disk::write_all(disk, file.as_fd(), &draft.bytes)
}

/// Makes a draft in the directory of a history the entry of a batch that is carried out.
pub(crate) fn keep(disk: &dyn Disk, dir: &OwnedFd, id: &str) -> Result<(), Errno> {
    // Where there is no draft, it is done already, or a power cut took the draft.
    errno::optional(disk.rename(dir.as_fd(), &format!("{id}{DRAFT}"), dir.as_fd(), id)).map(drop)
}

/// Forgets the draft of a batch that is not carried out.
pub(crate) fn discard(disk: &dyn Disk, state: &StateDir, record: &Record) -> Result<(), OwnError> {
    let Some(id) = &record.history else { return Ok(()) };
    let dir = state.open(Part::HISTORY)?;
    Ok(disk::unlink_if_there(disk, dir.as_fd(), &format!("{id}{DRAFT}"))?)
}

/// Forgets every draft. The caller knows that no batch may still be carried out.
pub(crate) fn discard_all(disk: &dyn Disk, state: &StateDir) -> Result<(), OwnError> {
    let Some(dir) = state.find(Part::HISTORY)? else { return Ok(()) };
    for draft in disk::names(dir.as_fd())?.iter().filter(|name| name.ends_with(DRAFT)) {
        disk::unlink_if_there(disk, dir.as_fd(), draft)?;
    }
    Ok(())
}
