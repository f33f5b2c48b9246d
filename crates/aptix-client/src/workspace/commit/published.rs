//! The third stage of a commit: every file has its new bytes, durably. Nothing in here can roll it back.

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::displaced_writes::sweep;
use crate::workspace::commit::ending::{self, Ending};
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::publish::is_overwritten;
use crate::workspace::commit::record::Stage;
use crate::workspace::commit::{clear, emptied};
use crate::workspace::read::file_stamp::FileStamp;

/// A commit whose files are in place, and whose old files are not cleared away yet.
#[must_use = "what a published commit displaced is cleared away, or by the next command"]
pub(crate) struct Published<'c> {
    attempt: Attempt<'c>,
    notices: Vec<Notice>,
    /// The stamp of the file that each has displaced.
    displaced: Vec<Option<FileStamp>>,
}

impl<'c> Published<'c> {
    pub(super) const fn new(attempt: Attempt<'c>, notices: Vec<Notice>, displaced: Vec<Option<FileStamp>>) -> Self {
        Self { attempt, notices, displaced }
    }

    /// Clears away what was displaced, and ends the record. What fails is left to the next command.
    pub(crate) fn finish(self, ending: &dyn Ending) -> Vec<Notice> {
        let Self { attempt, mut notices, displaced } = self;
        add_overwritten(&attempt, &mut notices);
        if let Err(error) = clear_away(&attempt, displaced, &mut notices, ending) {
            tracing::warn!(error, "the batch is applied; its record is left to be cleared by the next command");
        }
        notices
    }
}

/// Reads every file back, and notes those that another process has written since.
fn add_overwritten(attempt: &Attempt<'_>, notices: &mut Vec<Notice>) {
    attempt.tree.dirs.let_go();
    for (step, file) in attempt.steps.iter().zip(&attempt.record.files) {
        let planned = step.content.as_ref().map(|content| content.bytes.bytes());
        if is_overwritten(&attempt.tree, file, planned.as_deref()).unwrap_or(false) {
            notices.push(Notice::Overwritten { change: step.change });
        }
    }
}

fn clear_away(
    attempt: &Attempt<'_>,
    displaced: Vec<Option<FileStamp>>,
    notices: &mut Vec<Notice>,
    ending: &dyn Ending,
) -> Result<(), String> {
    let Attempt { workspace, journal, tree, record, steps, .. } = attempt;
    tree.dirs.let_go();
    journal.mark(Stage::Committed, Stage::Finishing).map_err(|error| error.to_string())?;
    for ((step, file), displaced) in steps.iter().zip(&record.files).zip(displaced) {
        let change = step.change;
        if let Some(name) = clear::clear(tree, file, displaced).map_err(|errno| errno.to_string())? {
            notices.push(Notice::Kept { change, name });
        }
    }
    emptied::remove(tree, record);
    let moved = tree.displacer.note(record.history.as_deref()).map_err(|errno| errno.to_string())?;
    sweep::bound(workspace, moved);
    let ended = ending::applied(workspace, journal, (Stage::Finishing, record), ending);
    ended.and_then(|()| attempt.drop_pointers()).map_err(|error| error.to_string())
}
