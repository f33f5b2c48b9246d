//! Commits a planned batch: every file gets its new bytes, or none does, whatever happens in between.

use aptix_model::failure::Failure;
use aptix_model::id::BatchId;

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::change::{self, Change};
use crate::workspace::commit::check::check;
use crate::workspace::commit::commit_error::CommitError;
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::record::{NewDir, Record, Taken};
use crate::workspace::commit::recovery;
use crate::workspace::commit::staged::Staged;
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::keep::ending::Keeping;
use crate::workspace::keep::history::draft;
use crate::workspace::keep::history::entries::Reversal;
use crate::workspace::keep::history::prune::{self, Retention};
use crate::workspace::keep::history::summary::Summary;
use crate::workspace::roots::workspace::Workspace;

/// The report that the server gets of a batch once it is applied, even if this process dies first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// Which batch.
    pub batch: BatchId,
    /// The report, in the form in which it will be sent.
    pub bytes: Vec<u8>,
}

/// What belongs to a commit besides its changes.
#[derive(Clone, Copy, Default)]
pub struct CommitOptions<'a> {
    /// What the caller checks once no other batch can be committed before this one.
    pub last_check: Option<&'a dyn Fn() -> Result<(), Failure>>,
    /// What the batch is called in the history, if not as in the receipt.
    pub name: Option<BatchId>,
    /// The batch that applies a prepared edit, which is marked as applied in the same step.
    pub prepared: Option<BatchId>,
    /// The report for the server; with it, the new contents are kept for the server.
    pub receipt: Option<&'a Receipt>,
    /// What is left on the clipboards of the session.
    pub clipboards: Option<&'a Taken>,
    /// Which entry of the history the changes take back.
    pub undoes: Option<&'a Reversal>,
    /// What the history says of the batch besides what it changed.
    pub summary: Option<&'a Summary>,
    /// How much is kept for undoing, this commit included.
    pub retention: Retention,
}

/// Commits changes, and makes the receipt and the new contents durable in the same step.
///
/// # Errors
/// Nothing has changed then, or everything was rolled back, or the error names what a person has to do.
pub fn commit(
    workspace: &Workspace,
    changes: &[Change<'_>],
    options: CommitOptions<'_>,
) -> Result<Vec<Notice>, CommitError> {
    let CommitOptions { last_check, name, prepared, receipt, clipboards, undoes, summary, retention } = options;
    let _locks = workspace.lock()?;
    let journal = recovery::recover(workspace, &Keeping)?;
    if changes.is_empty() && receipt.is_none() && clipboards.is_none() {
        return Ok(Vec::new());
    }
    last_check.map_or(Ok(()), |check| check()).map_err(|failure| CommitError::Refused(Box::new(failure)))?;
    check(workspace, changes)?;
    let batch = receipt.map(|receipt| receipt.batch.to_string());
    let name = name.map(|name| name.to_string()).or_else(|| batch.clone());
    let about = (name, summary.cloned());
    let history = (!changes.is_empty()).then(|| draft::draft(workspace, changes, about, undoes, retention.bytes));
    let history = history.transpose()?;
    let steps = change::steps(changes);
    let record = Record {
        history: history.as_ref().map(|history| history.id.clone()),
        clipboards: clipboards.cloned(),
        prepared: prepared.map(|batch| batch.to_string()),
        batch,
        emptied: undoes.map_or_else(Vec::new, |undoes| made_by(workspace, undoes)),
        ..Record::draft(workspace, &steps)
    };
    let attempt = Attempt {
        workspace,
        journal,
        tree: WorkTree::of(workspace),
        steps,
        record,
        receipt: receipt.map_or(&[], |receipt| &receipt.bytes),
        history: history.as_ref(),
        notices: Vec::new(),
    };
    let mut notices = Staged::stage(attempt)?.record()?.publish()?.finish(&Keeping);
    prune::bound(workspace, retention);
    notices.extend(history.filter(|history| !history.is_whole).map(|_| Notice::NotUndoable));
    Ok(notices)
}

/// The directories that a batch had made in roots of this workspace, parents first: its undo removes them.
fn made_by(workspace: &Workspace, undone: &Reversal) -> Vec<NewDir> {
    let in_root = undone.dirs.iter().filter_map(|made| {
        let root = workspace.roots().iter().position(|root| root.path() == made.root)?;
        Some(NewDir { root, parent: made.parent.clone(), name: made.name.clone() })
    });
    in_root.collect()
}
