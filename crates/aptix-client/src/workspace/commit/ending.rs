//! How the record of a commit ends: what it holds for others is kept, or dropped, before it is removed.
//!
//! What keeps it lies above this room, and is handed down as an [`Ending`].

use rustix::io::Errno;

use crate::workspace::commit::journal::{Journal, JournalError};
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::{contents, history_draft};
use crate::workspace::roots::state::{Part, StateDir};
use crate::workspace::roots::workspace::Workspace;

/// What becomes of the parts of a record that are not about files.
pub(crate) trait Ending {
    /// Keeps the clipboards, the entry of the history and the receipt of an applied batch durably. Idempotent.
    fn keep(&self, workspace: &Workspace, journal: &Journal<'_>, batch: (Stage, &Record)) -> Result<(), JournalError>;

    /// Drops what batches have left whose record is lost. No batch of this state may still be applied.
    fn drop_lost(&self, workspace: &Workspace, state: &StateDir) -> Result<(), Errno>;
}

/// Ends the commit of an applied batch. Should a power cut revert the removal of the record, it is ended again.
pub(crate) fn applied(
    workspace: &Workspace,
    journal: &Journal<'_>,
    (stage, record): (Stage, &Record),
    ending: &dyn Ending,
) -> Result<(), JournalError> {
    ending.keep(workspace, journal, (stage, record))?;
    journal.remove(stage)
}

/// Drops what was kept for a batch that is not applied; its record can be removed then.
pub(crate) fn discard(journal: &Journal<'_>, record: &Record) -> Result<(), JournalError> {
    let (disk, state) = (journal.disk, &journal.state);
    history_draft::discard(disk, state, record).map_err(journal.failed_beside("clear a history beside"))?;
    let Some(batch) = &record.batch else { return Ok(()) };
    let failed = |errno| JournalError::System { doing: "clear", path: state.part(Part::OUTBOX), errno };
    contents::remove(disk, &state.open(Part::OUTBOX)?, batch).map_err(failed)
}
