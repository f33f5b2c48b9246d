//! Examines what Aptix keeps about a root: takes no lock, recovers nothing, writes nothing.

use std::os::fd::AsFd;
use std::path::PathBuf;

use crate::workspace::commit::journal::{Journal, JournalError};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::keep::history::entries::{HistoryError, Survey, survey};
use crate::workspace::roots::state::{Part, StateDir, StateError};

/// What is kept about a root.
pub(crate) struct Kept {
    /// Whether a batch is recorded as under way: another process applies it at this moment, or it was cut short.
    pub(crate) is_under_way: bool,
    /// The entries of the history.
    pub(crate) history: Survey,
    /// The directory of files that could not be used and were moved aside, if it has any.
    pub(crate) damaged: Option<PathBuf>,
}

/// Why what is kept about a root cannot be examined.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ExamineError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The record of a batch cannot be read.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The history cannot be read.
    #[error(transparent)]
    History(#[from] HistoryError),
}

/// Examines the state directory of a root, which exists.
///
/// # Errors
/// The directory is open to others, or a part of it cannot be read.
pub(crate) fn examine(disk: &dyn Disk, state: &StateDir) -> Result<Kept, ExamineError> {
    state.check_own()?;
    let is_under_way = match Journal::find(disk, state)? {
        Some(journal) => journal.read()?.is_some() || journal.pointer()?.is_some(),
        None => false,
    };
    let damaged = match state.find(Part::DAMAGED)? {
        Some(dir) => !disk::names(dir.as_fd()).map_err(state.failed(Part::DAMAGED, "read"))?.is_empty(),
        None => false,
    };
    let damaged = damaged.then(|| state.part(Part::DAMAGED));
    Ok(Kept { is_under_way, history: survey(state)?, damaged })
}
