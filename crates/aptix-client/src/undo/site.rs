//! Where a batch is undone: the workspace as it is, and what later batches did to the files.

use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::Reason;

use crate::apply::find::{Found, Search};
use crate::workspace::keep::history::entries::Entry;
use crate::workspace::keep::history::past_file::PastFile;
use crate::workspace::read::place::Claim;
use crate::workspace::roots::workspace::Workspace;

/// Where a batch is undone.
pub(super) struct UndoSite<'a> {
    pub(super) workspace: &'a Workspace,
    pub(super) search: Search<'a>,
    /// What came after the batch, newest first.
    pub(super) later: &'a [Entry],
}

impl UndoSite<'_> {
    /// Notes that a file that the batch moved is moved back, so that its name is free.
    pub(super) fn leave(&mut self, file: &PastFile) {
        let root = self.workspace.roots().iter().position(|root| root.path() == file.root);
        let path = file.moved_to.as_deref().and_then(|path| WorkspacePath::new(path).ok());
        if let Some((root, path)) = root.zip(path) {
            self.search.leave_in(root, &path);
        }
    }

    /// What there is now at a path in the root of a file.
    pub(super) fn find(&mut self, index: usize, file: &PastFile, path: &str, claim: Claim) -> Result<Found, Failure> {
        let mut roots = self.workspace.roots().iter();
        let root = roots.position(|root| root.path() == file.root).ok_or_else(|| {
            let message = format!("the batch changed files in {} as well", file.root.display());
            Failure::new(Reason::InvalidRequest, message).hint("name this root, too, with --root")
        })?;
        let path = WorkspacePath::new(path)
            .map_err(|error| Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()))?;
        self.search.find_in(index, (root, &path), claim)
    }

    /// How an author would name a path in the root of a file.
    pub(super) fn name(&self, file: &PastFile, path: &str) -> String {
        let mut roots = self.workspace.roots().iter();
        match roots.find(|root| root.path() == file.root) {
            Some(root) if self.workspace.roots().len() > 1 => format!("{}/{path}", root.name()),
            _ => path.to_owned(),
        }
    }

    /// The batch that, as the last one that came later, moved the file at a path away or deleted it, and where it went.
    pub(super) fn taken_by(&self, file: &PastFile, path: &str) -> Option<(&Entry, Option<&str>)> {
        let mut later = self.later.iter().flat_map(|entry| entry.files.iter().map(move |past| (entry, past)));
        let is_of = |past: &PastFile| past.path == path || past.moved_to.as_deref() == Some(path);
        let (entry, past) = later.find(|(_, past)| past.root == file.root && is_of(past))?;
        let is_taken = past.path == path && (past.moved_to.is_some() || past.after.is_none());
        is_taken.then_some((entry, past.moved_to.as_deref()))
    }

    /// That a file is not where the batch left it.
    pub(super) fn gone(&self, file: &PastFile, path: &str) -> Failure {
        let (message, hint) = match self.taken_by(file, path) {
            Some((batch, to)) => {
                let deed = to.map_or_else(|| "deleted it".to_owned(), |to| format!("moved it to {to:?}"));
                let name = batch.name();
                (format!("batch {name}, which came later, {deed}"), format!("undo that one first: `aptix undo {name}`"))
            }
            None => (
                "the file was removed after the batch, so that there is nothing to undo the edit in".to_owned(),
                "bring the file back to this path first".to_owned(),
            ),
        };
        Failure::new(Reason::FileMissing, message).hint(hint)
    }
}
