//! The second stage of a commit: its record says durably that the batch will be carried out.

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::commit_error::{CommitError, FileFault};
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::publish::publish;
use crate::workspace::commit::published::Published;
use crate::workspace::commit::record::Stage;
use crate::workspace::commit::swap::PublishError;
use crate::workspace::commit::{clear, rollback};
use crate::workspace::read::file_stamp::FileStamp;

/// A commit past its commit point. Nothing of it is visible yet.
#[must_use = "a recorded commit is published, or carried on by the next command"]
pub(crate) struct Recorded<'c> {
    attempt: Attempt<'c>,
    notices: Vec<Notice>,
}

impl<'c> Recorded<'c> {
    pub(super) const fn new(attempt: Attempt<'c>, notices: Vec<Notice>) -> Self {
        Self { attempt, notices }
    }

    /// Publishes every file, or rolls back those that were published.
    ///
    /// # Errors
    /// Every file is as it was then, or a person is needed ([`CommitError::NeedsOperator`]).
    pub(crate) fn publish(self) -> Result<Published<'c>, CommitError> {
        let Self { attempt, notices } = self;
        let displaced = publish_all(&attempt)?;
        Ok(Published::new(attempt, notices, displaced))
    }
}

/// Publishes every file, or rolls back; gives the stamp of the file that each has displaced.
fn publish_all(attempt: &Attempt<'_>) -> Result<Vec<Option<FileStamp>>, CommitError> {
    let Attempt { tree, record, steps, .. } = attempt;
    let mut published = Vec::with_capacity(record.files.len());
    for (step, file) in steps.iter().zip(&record.files) {
        // A directory that was taken out of the root since is not written in.
        tree.dirs.let_go();
        match publish(tree, file, step.original.map(|original| original.bytes.as_slice())) {
            Ok(displaced) => published.push(displaced),
            Err(error) => {
                // This one may have been in place for a moment.
                let error = roll_back(attempt, (step.change, fault(error)), published.len() + 1);
                let error = match error {
                    CommitError::RolledBack { change, fault } if published.is_empty() => {
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
        return Err(roll_back(attempt, (0, fault), record.files.len()));
    }
    Ok(published)
}

const fn fault(error: PublishError) -> FileFault {
    match error {
        PublishError::Changed => FileFault::Changed { current: None },
        PublishError::Exists => FileFault::Exists,
        PublishError::ParentGone => FileFault::ParentGone,
        PublishError::System(errno) => FileFault::System { doing: "put the new file in place", errno },
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
