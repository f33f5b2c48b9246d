//! How the record of a commit ends: what it holds for others is kept, or dropped, before it goes.
//!
//! Who keeps it lies above this room, and is handed down as an [`Ending`].

use aptix_model::id::BatchId;
use rustix::io::Errno;

use crate::workspace::commit::journal::Journal;
use crate::workspace::commit::journal_error::JournalError;
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::record_file::RecordError;
use crate::workspace::commit::{contents, history_draft};
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// What becomes of the parts of a record that are not about files.
pub(crate) trait Ending {
    /// Keeps clipboards and the entry of the history durably, once the batch is applied. Doing it again does nothing.
    fn keep(&self, workspace: &Workspace, journal: &Journal<'_>, record: &Record) -> Result<(), JournalError>;

    /// Keeps the receipt durably, once the batch is applied. Doing it again does nothing.
    fn keep_receipt(
        &self,
        workspace: &Workspace,
        state: &StateDir,
        batch: BatchId,
        receipt: &[u8],
    ) -> Result<(), JournalError>;

    /// Drops what batches have left whose record is lost. No batch of this state may still be applied.
    fn drop_lost(&self, workspace: &Workspace, state: &StateDir) -> Result<(), Errno>;
}

/// Ends the commit of an applied batch. Should a power cut bring the record back, it is ended again.
pub(crate) fn applied(
    workspace: &Workspace,
    journal: &Journal<'_>,
    (stage, record): (Stage, &Record),
    ending: &dyn Ending,
) -> Result<(), JournalError> {
    // First what does not stand on the receipt, which is read from disk again.
    ending.keep(workspace, journal, record)?;
    if let Some(batch) = &record.batch
        && let Some(receipt) = journal.receipt(stage)?
    {
        let batch = batch.parse().map_err(|_| journal.unusable(stage, RecordError::Fields))?;
        ending.keep_receipt(workspace, journal.state(), batch, &receipt)?;
    }
    journal.remove(stage)
}

/// Drops what was kept for a batch that is not applied; its record can go then.
pub(crate) fn discard(journal: &Journal<'_>, record: &Record) -> Result<(), JournalError> {
    let failed = journal.failed_beside("clear a history beside");
    history_draft::discard(journal.disk(), journal.state(), record).map_err(failed)?;
    contents::discard(journal.disk(), journal.state(), record.batch.as_deref())
}
