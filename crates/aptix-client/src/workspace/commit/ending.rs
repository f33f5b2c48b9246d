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
pub(in crate::workspace) trait Ending {
    /// Keeps them durably, once the batch is applied: its clipboards, its entry of the history, and its receipt where it
    /// has one. Doing it again does nothing.
    fn keep(
        &self,
        workspace: &Workspace,
        journal: &Journal<'_>,
        record: &Record,
        receipt: Option<(BatchId, &[u8])>,
    ) -> Result<(), JournalError>;

    /// Drops what batches have left whose record is lost. No batch of this state may still be applied.
    fn drop_lost(&self, workspace: &Workspace, state: &StateDir) -> Result<(), Errno>;
}

/// Ends the commit of an applied batch. Should a power cut bring the record back, it is ended again.
pub(in crate::workspace) fn applied(
    workspace: &Workspace,
    journal: &Journal<'_>,
    (stage, record): (Stage, &Record),
    ending: &dyn Ending,
) -> Result<(), JournalError> {
    let receipt = match &record.batch {
        Some(batch) => {
            let batch = batch.parse::<BatchId>().map_err(|_| journal.unusable(stage, RecordError::Fields))?;
            journal.receipt(stage)?.map(|receipt| (batch, receipt))
        }
        None => None,
    };
    let receipt = receipt.as_ref().map(|(batch, receipt)| (*batch, receipt.as_slice()));
    ending.keep(workspace, journal, record, receipt)?;
    journal.remove(stage)
}

/// Drops what was kept for a batch that is not applied; its record can go then.
pub(in crate::workspace) fn discard(journal: &Journal<'_>, record: &Record) -> Result<(), JournalError> {
    let failed = journal.failed_beside("clear a history beside");
    history_draft::discard(journal.disk(), journal.state(), record).map_err(failed)?;
    contents::discard(journal.disk(), journal.state(), record.batch.as_deref())
}
