//! Brings what a commit left behind when its process died to one of its ends: carried on if it can be, else rolled back.
//!
//! Both ends are whole. What fits neither is left alone, and the root takes no batch until a person has looked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustix::io::Errno;

use crate::workspace::commit::ending::{self, Ending};
use crate::workspace::commit::file_state::{Direction, FileState, file_state};
use crate::workspace::commit::journal::{Journal, Unfinished};
use crate::workspace::commit::journal_error::JournalError;
use crate::workspace::commit::publish::publish;
use crate::workspace::commit::record::{FileStep, Record, Stage};
use crate::workspace::commit::recovery_error::{CLEAR_AWAY, RecoveryError};
use crate::workspace::commit::swap::{self, PublishError};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::commit::{clear, emptied, orphans, rollback, written_ahead};
use crate::workspace::fs::beneath;
use crate::workspace::roots::root::{self, Root};
use crate::workspace::roots::state::StateDir;
use crate::workspace::roots::workspace::Workspace;

/// Brings every root of a workspace to one end of whatever was left half-way; gives the journal that the next batch is
/// recorded in. Holds nothing but the caller's lock.
pub(crate) fn recover<'w>(workspace: &'w Workspace, ending: &dyn Ending) -> Result<Journal<'w>, RecoveryError> {
    let primary = Journal::open(workspace.disk(), workspace.primary().state())?;
    recover_root(workspace, workspace.primary(), &primary, ending)?;
    for other in workspace.roots().iter().filter(|root| root.state().path() != primary.state().path()) {
        recover_root(workspace, other, &Journal::open(workspace.disk(), other.state())?, ending)?;
    }
    Ok(primary)
}

fn recover_root(
    workspace: &Workspace,
    own: &Root,
    journal: &Journal<'_>,
    ending: &dyn Ending,
) -> Result<(), RecoveryError> {
    written_ahead::settle(journal)?;
    // After a power cut there may be more than one.
    while recover_journal(workspace, journal, ending)? == Recorded::Batch {}
    if journal.has_leftover() {
        if journal.has_lost() {
            orphans::sweep(workspace, own, ending).map_err(journal.failed("clear away what is lost from"))?;
        }
        journal.end()?;
    }
    let Some(primary) = journal.pointer()? else { return Ok(()) };
    let is_held = workspace.roots().iter().any(|root| root.state().path() == primary.path());
    let _lock = if is_held { None } else { Some(primary.lock_commit().map_err(JournalError::State)?) };
    let recorded = recover_journal(workspace, &Journal::open(workspace.disk(), &primary)?, ending)?;
    if recorded == Recorded::Nothing {
        orphans::sweep(workspace, own, ending).map_err(journal.failed("clear away what is lost from"))?;
    }
    Ok(journal.drop_pointer()?)
}

/// Whether there was anything to be brought to an end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Recorded {
    Batch,
    Nothing,
}

/// Brings to an end what was left half-way in these very directories when they had other paths: their state is found by
/// path, so that it is not theirs any more.
pub(crate) fn recover_moved(workspace: &Workspace, ending: &dyn Ending) -> Result<(), RecoveryError> {
    let own: Vec<_> = workspace.roots().iter().map(|root| root.state().path()).collect();
    let others = workspace.primary().state().siblings().map_err(JournalError::State)?;
    for state in others.iter().filter(|state| !own.contains(&state.path())) {
        let Some(journal) = Journal::find(workspace.disk(), state)? else { continue };
        let record = match journal.read() {
            Ok(Some(Unfinished { record, .. })) => record,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "a record of another root cannot be read");
                continue;
            }
        };
        if record.roots.iter().any(|mark| workspace.roots().iter().any(|root| root.is_marked(mark))) {
            let _lock = state.lock_commit().map_err(JournalError::State)?;
            recover_journal(workspace, &journal, ending)?;
        }
    }
    Ok(())
}

/// The paths of the roots that recovery would write in, besides those of the workspace, as far as that can be told: what
/// cannot be read here is met again by recovery, which reports it.
pub(crate) fn reach(workspace: &Workspace) -> Vec<PathBuf> {
    let find = |state: &StateDir| Journal::find(workspace.disk(), state).ok().flatten();
    let own = || workspace.roots().iter().filter_map(|root| find(root.state()));
    let pointed_to = own().filter_map(|journal| find(&journal.pointer().ok()??));
    let siblings = workspace.primary().state().siblings().unwrap_or_default();
    let records = own().chain(pointed_to).chain(siblings.iter().filter_map(find));
    let records = records.filter_map(|journal| Some(journal.read().ok()??.record));
    let is_own =
        |record: &Record| record.roots.iter().any(|mark| workspace.roots().iter().any(|root| root.is_marked(mark)));
    records.filter(is_own).flat_map(|record| record.roots).map(|mark| PathBuf::from(mark.path)).collect()
}

fn recover_journal(
    workspace: &Workspace,
    journal: &Journal<'_>,
    ending: &dyn Ending,
) -> Result<Recorded, RecoveryError> {
    let Some(unfinished) = journal.read()? else { return Ok(Recorded::Nothing) };
    bring_to_an_end(workspace, journal, &unfinished, ending).map(|()| Recorded::Batch)
}

fn bring_to_an_end(
    workspace: &Workspace,
    journal: &Journal<'_>,
    unfinished: &Unfinished,
    ending: &dyn Ending,
) -> Result<(), RecoveryError> {
    let Unfinished { stage, record } = unfinished;
    let path = journal.path(stage.name());
    if record.ahead.is_some() {
        return Err(RecoveryError::WrittenAhead { path });
    }
    let tree = open_tree(workspace, record, &path)?;
    let system = |doing| {
        let record = path.clone();
        move |errno| RecoveryError::System { doing, record, errno }
    };
    let finish = || -> Result<(), RecoveryError> {
        clear::clear_all(&tree, record, record.history.as_deref()).map_err(system(CLEAR_AWAY))?;
        emptied::remove(&tree, record);
        Ok(ending::applied(workspace, journal, (Stage::Finishing, record), ending)?)
    };
    match stage {
        Stage::Staging => {
            clear::unstage(&tree, record).map_err(system("clear away"))?;
            ending::discard(journal, record)?;
            return Ok(journal.end_at(&[Stage::Staging])?);
        }
        Stage::Finishing => return finish(),
        Stage::Committed | Stage::Undoing => {}
    }
    let states = file_states(&tree, record).map_err(system("look at"))?;
    // Before the record of a batch goes, everything is durable; a power cut may bring it back, and nothing else.
    if *stage == Stage::Committed && is_over(&states) && record.boot != workspace.disk().boot() {
        emptied::remove(&tree, record);
        return Ok(ending::applied(workspace, journal, (*stage, record), ending)?);
    }
    if *stage == Stage::Committed && stuck(&states, Direction::Forward).is_empty() {
        carry_on(&tree, record, &states).map_err(system("carry on"))?;
        journal.mark(*stage, Stage::Finishing)?;
        return finish();
    }
    let files = stuck(&states, Direction::Back);
    if !files.is_empty() {
        return Err(RecoveryError::Torn { record: path, files });
    }
    if *stage == Stage::Committed {
        journal.advance(*stage, Stage::Undoing)?;
    }
    // Until it was being rolled back, nothing had left its place again.
    let staged = states.iter().filter(|(_, state)| *stage == Stage::Committed && *state == FileState::Staged);
    rollback::roll_back(&tree, record, staged.map(|(file, _)| *file)).map_err(system("take back"))?;
    ending::discard(journal, record)?;
    Ok(journal.end_at(&[*stage, Stage::Undoing])?)
}

/// The real paths of the files that keep a batch from one of its ends.
fn stuck(states: &[(&FileStep, FileState)], direction: Direction) -> Vec<String> {
    let stuck = states.iter().filter(|(_, state)| !state.can_go(direction));
    stuck.map(|(file, _)| file.real()).collect()
}

/// Whether nothing is staged or kept any more: then everything was published and cleared away, whatever somebody has
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
        let dir = swap::settle_in(tree, file)?;
        found.push((file, file_state(dir.as_deref(), file)?));
    }
    Ok(found)
}

fn carry_on(tree: &WorkTree<'_>, record: &Record, states: &[(&FileStep, FileState)]) -> Result<(), Errno> {
    for (file, _) in states.iter().filter(|(_, state)| *state == FileState::Staged) {
        publish(tree, file, None).map_err(PublishError::errno)?;
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
        let held =
            beneath::open_held(&root).map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
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
