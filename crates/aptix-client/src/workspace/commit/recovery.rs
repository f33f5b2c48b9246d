//! Recovers a commit whose process died: it is carried on if it can be, else rolled back.
//!
//! Either way the tree is whole. What fits neither is left alone, and the root takes no batch until a person has looked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::workspace::commit::commit_error::{CLEAR_AWAY, FileFault, RecoveryError};
use crate::workspace::commit::ending::{self, Ending};
use crate::workspace::commit::file_state::{FileState, file_state};
use crate::workspace::commit::journal::{Journal, JournalError};
use crate::workspace::commit::publish::publish;
use crate::workspace::commit::record::{FileStep, Record, Stage};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::commit::{clear, orphans, rollback, swap, written_ahead};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::roots::root::{self, Root};
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::unfinished;
use crate::workspace::roots::workspace::Workspace;

/// Recovers every root of a workspace; returns the journal that the next batch is recorded in. The caller holds the locks.
pub(crate) fn recover<'w>(workspace: &'w Workspace, ending: &dyn Ending) -> Result<Journal<'w>, RecoveryError> {
    let recovery = Recovery { workspace, ending };
    let primary = Journal::open(workspace.disk(), workspace.primary().state())?;
    recovery.recover_root(workspace.primary(), &primary)?;
    for other in workspace.roots().iter().filter(|root| root.state().path() != primary.state.path()) {
        let journal = Journal::open(workspace.disk(), other.state())?;
        recovery.recover_root(other, &journal)?;
    }
    Ok(primary)
}

/// Recovers what was left half-way in these very directories when they had other paths: their state is found by path, so
/// that it is not theirs any more. Where every root had to be looked at for that, the register of unfinished batches is made
/// anew, if it may be.
pub(crate) fn recover_moved(
    workspace: &Workspace,
    ending: &dyn Ending,
    may_register: bool,
) -> Result<(), RecoveryError> {
    let own: Vec<_> = workspace.roots().iter().map(|root| root.state().path()).collect();
    let state = workspace.primary().state();
    let suspects = unfinished::suspects(workspace.disk(), state).map_err(JournalError::State)?;
    let mut left = Vec::new();
    for state in suspects.states.iter().filter(|state| !own.contains(&state.path())) {
        let Some(journal) = Journal::find(workspace.disk(), state)? else { continue };
        match journal.read() {
            Ok(Some((_, record))) if has_root_of(workspace, &record) => {
                let _lock = state.lock_commit().map_err(JournalError::State)?;
                Recovery { workspace, ending }.recover_journal(&journal)?;
                journal.leave();
            }
            Ok(Some(_)) => left.push(state.clone()),
            Ok(None) if may_register && unfinished::is_entered(state) => {
                // Its last batch has ended; or a process is about to write a record, and holds the lock.
                if let Ok(_lock) = state.try_lock_commit() {
                    journal.leave();
                }
            }
            Ok(None) => {}
            Err(error) => {
                tracing::warn!(%error, "a record of another root cannot be read");
                left.push(state.clone());
            }
        }
    }
    if may_register {
        unfinished::complete(workspace.disk(), state, &suspects, &left);
    }
    Ok(())
}

/// The paths of the roots that recovery would write in, besides those of the workspace, as far as they can be found: what
/// cannot be read here is met again by recovery, which reports it.
pub(crate) fn reach(workspace: &Workspace) -> Vec<PathBuf> {
    let find = |state: &StateDir| Journal::find(workspace.disk(), state).ok().flatten();
    let own = || workspace.roots().iter().filter_map(|root| find(root.state()));
    let pointed_to = own().filter_map(|journal| find(&journal.pointer().ok()??));
    let suspects = unfinished::suspects(workspace.disk(), workspace.primary().state());
    let suspects = suspects.map_or_else(|_| Vec::new(), |found| found.states);
    let journals = own().chain(pointed_to).chain(suspects.iter().filter_map(find));
    let records = journals.filter_map(|journal| Some(journal.read().ok()??.1));
    let own_records = records.filter(|record| has_root_of(workspace, record));
    own_records.flat_map(|record| record.roots).map(|mark| PathBuf::from(mark.path)).collect()
}

/// Whether a record is of a root of the workspace, whatever path it had.
fn has_root_of(workspace: &Workspace, record: &Record) -> bool {
    record.roots.iter().any(|mark| workspace.roots().iter().any(|root| root.is_marked(mark)))
}

struct Recovery<'w> {
    workspace: &'w Workspace,
    ending: &'w dyn Ending,
}

impl Recovery<'_> {
    fn recover_root(&self, own: &Root, journal: &Journal<'_>) -> Result<(), RecoveryError> {
        let Self { workspace, ending } = *self;
        let sweep_orphans = || {
            let swept = orphans::sweep(workspace, own, ending);
            swept.map_err(journal.failed("clear away what is lost from"))
        };
        if journal.is_empty()? {
            return Ok(());
        }
        written_ahead::settle(journal)?;
        // After a power cut there may be more than one.
        while self.recover_journal(journal)? {}
        // A record of a commit that had begun to stage and cannot be read: a power cut took it.
        if journal.may_be_in(Stage::Staging) {
            sweep_orphans()?;
        }
        journal.end(&[Stage::Staging])?;
        let Some(primary) = journal.pointer()? else { return Ok(()) };
        let is_held = workspace.roots().iter().any(|root| root.state().path() == primary.path());
        let _lock = if is_held { None } else { Some(primary.lock_commit().map_err(JournalError::State)?) };
        let recorded = Journal::open(workspace.disk(), &primary)?;
        if !self.recover_journal(&recorded)? {
            sweep_orphans()?;
        }
        Ok(journal.drop_pointer()?)
    }

    /// Recovers the batch that a journal records; returns whether there was one.
    fn recover_journal(&self, journal: &Journal<'_>) -> Result<bool, RecoveryError> {
        let recorded = journal.read()?;
        recorded.as_ref().map_or(Ok(()), |(stage, record)| self.recover_batch(journal, *stage, record))?;
        Ok(recorded.is_some())
    }

    fn recover_batch(&self, journal: &Journal<'_>, stage: Stage, record: &Record) -> Result<(), RecoveryError> {
        let path = journal.path(stage.name());
        if record.ahead.is_some() {
            return Err(RecoveryError::WrittenAhead { path });
        }
        let tree = open_tree(self.workspace, record, &path)?;
        let system = |doing| {
            let record = path.clone();
            move |errno| RecoveryError::System { doing, record, errno }
        };
        let end = |stage| {
            clear::remove_emptied(&tree, record);
            Ok(ending::applied(self.workspace, journal, (stage, record), self.ending)?)
        };
        let finish = || {
            clear::clear_all(&tree, record, record.history.as_deref()).map_err(system(CLEAR_AWAY))?;
            end(Stage::Finishing)
        };
        match stage {
            Stage::Staging => {
                clear::unstage(&tree, record).map_err(system("clear away"))?;
                ending::discard(journal, record)?;
                return Ok(journal.end(&[Stage::Staging])?);
            }
            Stage::Finishing => return finish(),
            Stage::Committed | Stage::Undoing => {}
        }
        let states = file_states(&tree, record).map_err(system("look at"))?;
        if stage == Stage::Committed {
            // Before the record of a batch is removed, everything is durable; a power cut may revert that removal, and nothing else.
            if is_over(&states) && record.boot != self.workspace.disk().boot() {
                return end(stage);
            }
            if states.iter().all(|(_, state)| state.can_be_published()) {
                carry_on(&tree, record, &states).map_err(system("carry on"))?;
                journal.mark(stage, Stage::Finishing)?;
                return finish();
            }
        }
        let stuck = states.iter().filter(|(_, state)| !state.can_be_rolled_back());
        let files: Vec<_> = stuck.map(|(file, _)| file.real()).collect();
        if !files.is_empty() {
            return Err(RecoveryError::Torn { record: path, files });
        }
        if stage == Stage::Committed {
            journal.advance(stage, Stage::Undoing)?;
        }
        // Until it was being rolled back, no published file had left its place again.
        let staged = states.iter().filter(|(_, state)| stage == Stage::Committed && *state == FileState::Staged);
        rollback::roll_back(&tree, record, staged.map(|(file, _)| *file)).map_err(system("take back"))?;
        ending::discard(journal, record)?;
        Ok(journal.end(&[stage, Stage::Undoing])?)
    }
}

/// Whether nothing is staged or kept any more: then everything was published and cleared away, whatever another process has
/// done to the files since.
fn is_over(states: &[(&FileStep, FileState)]) -> bool {
    let mut outcomes = states.iter();
    let any_done = outcomes.clone().any(|(_, state)| *state != FileState::Cleared);
    any_done
        && outcomes.all(|(file, state)| match state {
            FileState::Finished | FileState::Gone | FileState::Foreign | FileState::Cleared => true,
            // Of a new file nothing is kept beside it.
            FileState::Published | FileState::Overwritten => file.before.is_none(),
            FileState::Staged | FileState::Outrun | FileState::Displaced => false,
        })
}

fn file_states<'r>(tree: &WorkTree<'_>, record: &'r Record) -> Result<Vec<(&'r FileStep, FileState)>, Errno> {
    tree.dirs.let_go();
    let mut found = Vec::new();
    for file in &record.files {
        let dir = tree.dirs.find_dir(file.root, &file.dir)?;
        dir.as_deref().map_or(Ok(()), |dir| swap::settle(tree.disk, dir, file))?;
        found.push((file, file_state(dir.as_deref(), file)?));
    }
    Ok(found)
}

fn carry_on(tree: &WorkTree<'_>, record: &Record, states: &[(&FileStep, FileState)]) -> Result<(), Errno> {
    for (file, _) in states.iter().filter(|(_, state)| *state == FileState::Staged) {
        publish(tree, file, None).map_err(|fault| match fault {
            FileFault::System { errno, .. } => errno,
            // A file that another process changes meanwhile is looked at again the next time.
            _ => Errno::AGAIN,
        })?;
    }
    clear::sync_dirs(tree, record)
}

/// The roots of a record: those of the workspace as they are held, others opened anew.
fn open_tree<'w>(workspace: &'w Workspace, record: &Record, path: &Path) -> Result<WorkTree<'w>, RecoveryError> {
    let mut roots = Vec::new();
    for mark in &record.roots {
        if let Some(root) = workspace.roots().iter().find(|root| root.is_marked(mark)) {
            roots.push((root.held(), root.state().clone()));
            continue;
        }
        let root = PathBuf::from(&mark.path);
        let failed = |errno| RecoveryError::Root { root: root.clone(), record: path.to_owned(), errno };
        let held = beneath::open_held(&root).map_err(|error| failed(errno::of(&error)))?;
        // The number of a device may be another one after a boot.
        if root::mark(&held, &root).map_err(failed)?.inode != mark.inode {
            return Err(RecoveryError::Replaced { root, record: path.to_owned() });
        }
        let state = workspace.primary().state().of_other_root(&root);
        let state = state.ok_or_else(|| failed(Errno::NOENT))?;
        roots.push((Arc::new(held), state));
    }
    Ok(WorkTree::new(workspace.disk(), roots))
}
