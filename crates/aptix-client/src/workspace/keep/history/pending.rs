//! A note of the batch that is being taken back, kept until the answer was printed. After a process died in between, the
//! same command run again finds by it that nothing is left to do, and does not take back another batch.

use std::os::fd::AsFd;

use super::entries::{EntryId, HistoryError, Reversal};
use super::index;
use crate::workspace::fs::disk;
use crate::workspace::roots::own_file::{self, Found, Owner};
use crate::workspace::roots::state::{Part, StateDir};
use crate::workspace::roots::workspace::Workspace;

/// The file of the note, beside the entries.
const PENDING: &str = "pending";

/// What was being taken back.
#[derive(Clone, Copy)]
pub(crate) struct Pending {
    pub(crate) of: EntryId,
    /// Whether that is an undo.
    pub(crate) is_redo: bool,
}

/// What was being taken back by a process whose answer was not printed, if there is such a process.
///
/// # Errors
/// When the state directory cannot be read.
pub(crate) fn read(workspace: &Workspace) -> Result<Option<Pending>, HistoryError> {
    let state = workspace.primary().state();
    let Some(dir) = state.find(Part::HISTORY)? else { return Ok(None) };
    Ok(match own_file::read(dir.as_fd(), owner(state)).map_err(owner(state).failed("read"))? {
        Some(Found::Sealed(note)) => parse(&String::from_utf8_lossy(&note)),
        Some(Found::Old(_) | Found::Damaged(_)) => {
            tracing::warn!("the note of a batch that was being taken back is damaged and counts for nothing");
            None
        }
        None => None,
    })
}

const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: Part::HISTORY, name: PENDING, state }
}

fn parse(note: &str) -> Option<Pending> {
    let (word, id) = note.trim_end().split_once(' ')?;
    let is_redo = match word {
        "undo" => false,
        "redo" => true,
        _ => return None,
    };
    Some(Pending { of: id.parse().ok()?, is_redo })
}

/// Notes what is about to be taken back.
///
/// # Errors
/// When another process holds the workspace for long, or the note cannot be kept.
pub(crate) fn note(workspace: &Workspace, reversal: &Reversal) -> Result<(), HistoryError> {
    let _locks = workspace.lock()?;
    let state = workspace.primary().state();
    let dir = state.open(Part::HISTORY)?;
    let word = if reversal.is_redo { "redo" } else { "undo" };
    let text = format!("{word} {}\n", reversal.of);
    let put = || own_file::put(workspace.disk(), dir.as_fd(), owner(state), text.as_bytes());
    Ok(index::around(workspace.disk(), state, put)?)
}

/// Removes the note.
///
/// # Errors
/// When another process holds the workspace for long, or the note cannot be removed.
pub(crate) fn forget(workspace: &Workspace) -> Result<(), HistoryError> {
    let _locks = workspace.lock()?;
    let state = workspace.primary().state();
    let Some(dir) = state.find(Part::HISTORY)? else { return Ok(()) };
    let unlink = || {
        let unlinked = disk::unlink_if_there(workspace.disk(), dir.as_fd(), PENDING);
        unlinked.map_err(owner(state).failed("remove"))
    };
    Ok(index::around(workspace.disk(), state, unlink)?)
}
