//! One attempt to commit: its changes, its record, and the journal and directories that it works with.

use crate::workspace::commit::change::{self, Change, Step};
use crate::workspace::commit::commit_error::CommitError;
use crate::workspace::commit::history_draft::HistoryDraft;
use crate::workspace::commit::journal::Journal;
use crate::workspace::commit::journal_error::JournalError;
use crate::workspace::commit::record::{NewDir, Record, Stage};
use crate::workspace::commit::taken::Taken;
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::commit::{clear, draft, ending};
use crate::workspace::roots::workspace::Workspace;

/// What a commit does besides changing files.
#[derive(Clone, Default)]
pub(crate) struct Besides<'c> {
    /// Whose receipt the record holds, and the receipt; then the new contents are kept for the server.
    pub(crate) batch: Option<String>,
    pub(crate) receipt: &'c [u8],
    /// What is left on the clipboards of the session.
    pub(crate) clipboards: Option<&'c Taken>,
    /// What is needed to undo the changes.
    pub(crate) history: Option<&'c HistoryDraft>,
    /// Directories that are removed at the end if they are empty, parents first.
    pub(crate) emptied: Vec<NewDir>,
}

/// A commit under way. Whoever has it holds the commit locks of all roots.
pub(crate) struct Attempt<'c> {
    pub(super) workspace: &'c Workspace,
    pub(super) journal: Journal<'c>,
    pub(super) tree: WorkTree<'c>,
    /// What happens to each file of the record, in the same order.
    pub(super) steps: Vec<Step<'c>>,
    pub(super) record: Record,
    pub(super) receipt: &'c [u8],
    pub(super) history: Option<&'c HistoryDraft>,
}

impl<'c> Attempt<'c> {
    /// Decides every name. Touches nothing.
    pub(crate) fn new(
        workspace: &'c Workspace,
        journal: Journal<'c>,
        changes: &[Change<'c>],
        besides: Besides<'c>,
    ) -> Self {
        let Besides { batch, receipt, clipboards, history, emptied } = besides;
        let steps = change::steps(changes);
        let record = Record {
            history: history.map(|history| history.id.clone()),
            clipboards: clipboards.cloned(),
            batch,
            emptied,
            ..draft::draft(workspace, &steps)
        };
        Self { workspace, journal, tree: WorkTree::of(workspace), steps, record, receipt, history }
    }

    /// Clears away a commit that failed before anything was published; gives what its failure comes to.
    pub(super) fn abandon(self, error: CommitError) -> CommitError {
        let unstaged = clear::unstage(&self.tree, &self.record).map_err(|errno| errno.to_string());
        let cleared = unstaged.and_then(|()| self.forget().map_err(|error| error.to_string()));
        match cleared {
            Ok(()) => error,
            Err(cause) if self.journal.may_be_committed() => {
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
        self.journal.end()?;
        self.drop_pointers()
    }

    /// Forgets in the journals of the other roots where the record is.
    pub(super) fn drop_pointers(&self) -> Result<(), JournalError> {
        self.other_journals().try_for_each(|journal| journal?.drop_pointer())
    }

    /// The journals of the roots whose batch is recorded in that of another root.
    pub(super) fn other_journals(&self) -> impl Iterator<Item = Result<Journal<'c>, JournalError>> {
        let workspace = self.workspace;
        let others = workspace.roots().iter().filter(|root| root.state().path() != self.journal.state().path());
        others.map(|root| Journal::open(workspace.disk(), root.state()))
    }
}
