//! The second and third stage of a commit: its record says durably that the batch will be carried out; then every file has
//! its new bytes, durably, and nothing can roll it back.

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::commit_error::{CommitError, FileFault};
use crate::workspace::commit::displaced_writes::sweep;
use crate::workspace::commit::ending::{self, Ending};
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::publish::{is_overwritten, publish};
use crate::workspace::commit::record::Stage;
use crate::workspace::commit::{clear, rollback};
use crate::workspace::read::file_stamp::FileStamp;

/// A commit past its commit point. Nothing of it is visible yet.
#[must_use = "a recorded commit is published, or carried on by the next command"]
pub(crate) struct Recorded<'c>(pub(super) Attempt<'c>);

/// A commit whose files are in place, and whose old files are not cleared away yet.
#[must_use = "what a published commit displaced is cleared away, or by the next command"]
pub(crate) struct Published<'c> {
    attempt: Attempt<'c>,
    /// The stamp of the file that each has displaced.
    displaced: Vec<Option<FileStamp>>,
}

impl<'c> Recorded<'c> {
    /// Publishes every file, or rolls back those that were published.
    ///
    /// # Errors
    /// Every file is as it was then, or a person is needed ([`CommitError::NeedsOperator`]).
    pub(crate) fn publish(self) -> Result<Published<'c>, CommitError> {
        let Attempt { tree, record, steps, .. } = &self.0;
        let mut displaced = Vec::with_capacity(record.files.len());
        for (step, file) in steps.iter().zip(&record.files) {
            // A directory that was taken out of the root since is not written in.
            tree.dirs.let_go();
            match publish(tree, file, step.original.map(|original| original.bytes.as_slice())) {
                Ok(stamp) => displaced.push(stamp),
                Err(fault) => {
                    // This one may have been in place for a moment.
                    let error = match roll_back(&self.0, (step.change, fault), displaced.len() + 1) {
                        CommitError::RolledBack { change, fault } if displaced.is_empty() => {
                            CommitError::File { change, fault }
                        }
                        error => error,
                    };
                    let names = clear::kept(tree, record);
                    return Err(match names.is_empty() {
                        true => error,
                        false => CommitError::Kept { error: Box::new(error), names },
                    });
                }
            }
        }
        if let Err(errno) = clear::sync_dirs(tree, record) {
            let fault = FileFault::System { doing: "make the directory durable", errno };
            return Err(roll_back(&self.0, (0, fault), record.files.len()));
        }
        Ok(Published { attempt: self.0, displaced })
    }
}

/// Rolls the first so many files back, and clears all of them away.
fn roll_back(attempt: &Attempt<'_>, (change, fault): (usize, FileFault), published: usize) -> CommitError {
    let Attempt { journal, tree, record, .. } = attempt;
    // Should the mark fail, recovery finds every file back in its old state and draws the same conclusion.
    let marked = journal.advance(Stage::Committed, Stage::Undoing);
    if let Err(cause) = rollback::roll_back(tree, record, record.files.iter().skip(published)) {
        let stage = if marked.is_ok() { Stage::Undoing } else { Stage::Committed };
        return CommitError::NeedsOperator { change, fault, cause, record: journal.path(stage.name()) };
    }
    if let Err(error) = attempt.forget() {
        tracing::warn!(%error, "the record of a batch that was rolled back is left to be cleared by the next command");
    }
    CommitError::RolledBack { change, fault }
}

impl Published<'_> {
    /// Clears away what was displaced, and ends the record. What fails is left to the next command.
    pub(crate) fn finish(mut self, ending: &dyn Ending) -> Vec<Notice> {
        self.add_overwritten();
        if let Err(error) = self.clear_away(ending) {
            tracing::warn!(error, "the batch is applied; its record is left to be cleared by the next command");
        }
        self.attempt.notices
    }

    /// Reads every file back, and notes those that another process has written since.
    fn add_overwritten(&mut self) {
        let Attempt { tree, record, steps, notices, .. } = &mut self.attempt;
        tree.dirs.let_go();
        for (step, file) in steps.iter().zip(&record.files) {
            let planned = step.content.as_ref().map(|content| content.bytes.bytes());
            if is_overwritten(tree, file, planned.as_deref()).unwrap_or(false) {
                notices.push(Notice::Overwritten { change: step.change });
            }
        }
    }

    fn clear_away(&mut self, ending: &dyn Ending) -> Result<(), String> {
        let Attempt { workspace, journal, tree, record, steps, notices, .. } = &mut self.attempt;
        tree.dirs.let_go();
        journal.mark(Stage::Committed, Stage::Finishing).map_err(|error| error.to_string())?;
        for ((step, file), displaced) in steps.iter().zip(&record.files).zip(&self.displaced) {
            let change = step.change;
            if let Some(name) = clear::clear(tree, file, *displaced).map_err(|errno| errno.to_string())? {
                notices.push(Notice::Kept { change, name });
            }
        }
        clear::remove_emptied(tree, record);
        let moved = tree.displacer.note(record.history.as_deref()).map_err(|errno| errno.to_string())?;
        sweep::bound(workspace, moved);
        let ended = ending::applied(workspace, journal, (Stage::Finishing, record), ending);
        ended.and_then(|()| self.attempt.drop_pointers()).map_err(|error| error.to_string())
    }
}
