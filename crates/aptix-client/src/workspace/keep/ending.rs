//! Keeps what the record of an applied batch holds: clipboards, that a prepared edit was applied, the entry of the history, the receipt for the server.

use rustix::io::Errno;

use crate::workspace::commit::ending::Ending;
use crate::workspace::commit::journal::{Journal, JournalError};
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::record_file::RecordError;
use crate::workspace::keep::history::draft;
use crate::workspace::keep::{clipboards, outbox, prepared};
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// The one way in which commits end.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Keeping;

impl Ending for Keeping {
    fn keep(
        &self,
        workspace: &Workspace,
        journal: &Journal<'_>,
        (stage, record): (Stage, &Record),
    ) -> Result<(), JournalError> {
        let (disk, state) = (journal.disk, &journal.state);
        if let Some(taken) = &record.clipboards {
            clipboards::put(disk, state, taken)?;
        }
        if let Some(batch) = &record.prepared {
            prepared::applied(disk, state, batch)?;
        }
        draft::keep(workspace, state, record).map_err(journal.failed_beside("keep a history beside"))?;
        // What depends on the receipt, which is read from disk again, comes last.
        if let Some(batch) = &record.batch
            && let Some(receipt) = journal.receipt(stage)?
        {
            let batch = batch.parse().map_err(|_| journal.unusable(stage, RecordError::Fields))?;
            let kept = outbox::keep(workspace, state, batch, &receipt);
            kept.map_err(|error| JournalError::Ending(Box::new(error.failure())))?;
        }
        Ok(())
    }

    fn drop_lost(&self, workspace: &Workspace, state: &StateDir) -> Result<(), Errno> {
        outbox::drop_unclaimed(workspace, state).map_err(|error| error.errno())
    }
}
