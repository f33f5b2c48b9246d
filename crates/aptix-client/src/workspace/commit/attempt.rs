//! One attempt to commit: its changes, its record, and the journal and directories that it works with.

use crate::workspace::commit::change::Step;
use crate::workspace::commit::commit_error::CommitError;
use crate::workspace::commit::history_draft::HistoryDraft;
use crate::workspace::commit::journal::{Journal, JournalError};
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::record::{Record, Stage};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::commit::{clear, ending};
use crate::workspace::roots::workspace::Workspace;

/// A commit under way. Its owner holds the commit locks of all roots.
pub(crate) struct Attempt<'c> {
    pub(crate) workspace: &'c Workspace,
    pub(crate) journal: Journal<'c>,
    pub(crate) tree: WorkTree<'c>,
    /// What happens to each file of the record, in the same order.
    pub(crate) steps: Vec<Step<'c>>,
    pub(crate) record: Record,
    /// What the record holds for the server; with a batch in the record, the new contents are kept as well.
    pub(crate) receipt: &'c [u8],
    /// What is needed to undo the changes.
    pub(crate) history: Option<&'c HistoryDraft>,
    /// What the user should know should the commit succeed.
    pub(crate) notices: Vec<Notice>,
}

impl<'c> Attempt<'c> {
    /// Clears away a commit that failed before anything was published; returns the error that the caller gets.
    pub(super) fn abandon(self, error: CommitError) -> CommitError {
        let unstaged = clear::unstage(&self.tree, &self.record).map_err(|errno| errno.to_string());
        let cleared = unstaged.and_then(|()| self.forget().map_err(|error| error.to_string()));
        match cleared {
            Ok(()) => error,
            Err(cause) if self.journal.may_be_in(Stage::Committed) => {
                let record = self.journal.path(Stage::Committed.name());
                CommitError::Undecided { error: Box::new(error), cause, record }
            }
            Err(cause) => {
                tracing::warn!(cause, "files of a refused batch are left to be cleared by the next command");
                error
            }
        }
    }

    /// Forgets a commit that is not carried out: what was kept for it, its record, and the pointers to that.
    pub(super) fn forget(&self) -> Result<(), JournalError> {
        ending::discard(&self.journal, &self.record)?;
        self.journal.end(&Stage::ALL)?;
        self.drop_pointers()
    }

    /// Removes the pointers to the record from the journals of the other roots.
    pub(super) fn drop_pointers(&self) -> Result<(), JournalError> {
        self.other_journals().try_for_each(|journal| journal?.drop_pointer())
    }

    /// The journals of the roots whose batch is recorded in that of another root.
    pub(super) fn other_journals(&self) -> impl Iterator<Item = Result<Journal<'c>, JournalError>> {
        let workspace = self.workspace;
        let others = workspace.roots().iter().filter(|root| root.state().path() != self.journal.state.path());
        others.map(|root| Journal::open(workspace.disk(), root.state()))
    }
}
