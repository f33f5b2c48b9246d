//! What a commit left behind when its process died: carried on if it can be, taken back otherwise.
//!
//! Both ends are whole. What fits neither is left alone, and the root takes no batch until a person has looked.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::commit::file_state::{self, Direction, Standing};
use crate::workspace::commit::journal::{FileStep, Journal, JournalError, Record, Stage};
use crate::workspace::commit::publish::{self, Ground, PublishError};
use crate::workspace::commit::{emptied, orphans, written_ahead};
use crate::workspace::fs::errno;
use crate::workspace::roots::root::{self, Root};
use crate::workspace::roots::state::StateDir;

/// What is done with a batch that is at its end.
const CLEAR_AWAY: &str = "clear away";

/// Why a root is not ready for a batch.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A root that took part in the commit cannot be opened.
    #[error("cannot open {}, a root of the batch recorded in {}: {errno}", root.display(), record.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// The record.
        record: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// At the path of a root that took part in the commit there is another directory now.
    #[error(
        "{} is not the directory any more that it was when the batch recorded in {} stopped half-way",
        root.display(),
        record.display()
    )]
    Replaced {
        /// The root.
        root: PathBuf,
        /// The record.
        record: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {doing} the batch recorded in {}: {errno}", record.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The record.
        record: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// The files fit neither end.
    #[error(
        "an earlier batch stopped half-way, recorded in {}; these files are neither as before nor as planned: {}",
        record.display(),
        files.join(", ")
    )]
    Torn {
        /// The record.
        record: PathBuf,
        /// The real paths of the files.
        files: Vec<String>,
    },
    /// Batches that only an earlier version can bring to their end.
    #[error(
        "{} holds batches of durability mode `journal`, which earlier versions had and this one cannot settle",
        path.display()
    )]
    WrittenAhead {
        /// The file.
        path: PathBuf,
    },
}

impl RecoveryError {
    /// Whether a batch that is carried out cannot be cleared away because the disk is full. Its files can be read as they are.
    pub(in crate::workspace) fn is_for_lack_of_room(&self) -> bool {
        matches!(self, Self::System { doing: CLEAR_AWAY, errno: Errno::NOSPC | Errno::DQUOT, .. })
    }

    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Journal(error) => error.failure(),
            Self::System { errno, .. } if self.is_for_lack_of_room() => errno::write_failure(*errno, self.to_string()),
            Self::WrittenAhead { path } => {
                Failure::new(Reason::NeedsOperator, self.to_string()).hint(written_ahead::hint(path))
            }
            Self::Root { .. } | Self::Replaced { .. } | Self::Torn { .. } | Self::System { .. } => {
                Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR)
            }
        }
    }
}

/// Brings every root of a workspace to one end of whatever was left half-way; gives the journal that the next batch is
/// recorded in. Holds nothing but the caller's lock.
pub(in crate::workspace) fn recover(workspace: &Workspace) -> Result<Journal<'_>, RecoveryError> {
    let primary = Journal::open(workspace.disk(), workspace.primary().state())?;
    recover_root(workspace, workspace.primary(), &primary)?;
    for other in workspace.roots().iter().filter(|root| root.state().path() != primary.state().path()) {
        recover_root(workspace, other, &Journal::open(workspace.disk(), other.state())?)?;
    }
    Ok(primary)
}

fn recover_root(workspace: &Workspace, own: &Root, journal: &Journal<'_>) -> Result<(), RecoveryError> {
    written_ahead::settle(journal)?;
    // After a power cut there may be more than one.
    while recover_journal(workspace, journal)? == Recorded::Batch {}
    if journal.has_leftover() {
        if journal.has_lost() {
            orphans::sweep(workspace, own).map_err(journal.failed("clear away what is lost from"))?;
        }
        journal.end()?;
    }
    let Some(primary) = journal.pointer()? else { return Ok(()) };
    let is_held = workspace.roots().iter().any(|root| root.state().path() == primary.path());
    let _lock = if is_held { None } else { Some(primary.lock_commit().map_err(JournalError::State)?) };
    let recorded = recover_journal(workspace, &Journal::open(workspace.disk(), &primary)?)?;
    if recorded == Recorded::Nothing {
        orphans::sweep(workspace, own).map_err(journal.failed("clear away what is lost from"))?;
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
pub(in crate::workspace) fn recover_moved(workspace: &Workspace) -> Result<(), RecoveryError> {
    let own: Vec<_> = workspace.roots().iter().map(|root| root.state().path()).collect();
    let others = workspace.primary().state().siblings().map_err(JournalError::State)?;
    for state in others.iter().filter(|state| !own.contains(&state.path())) {
        let Some(journal) = Journal::find(workspace.disk(), state)? else { continue };
        let record = match journal.read() {
            Ok(Some((_, record))) => record,
            Ok(None) => continue,
            Err(error) => {
                tracing::warn!(%error, "a record of another root cannot be read");
                continue;
            }
        };
        if record.roots.iter().any(|mark| workspace.roots().iter().any(|root| root.is_marked(mark))) {
            let _lock = state.lock_commit().map_err(JournalError::State)?;
            recover_journal(workspace, &journal)?;
        }
    }
    Ok(())
}

/// The paths of the roots that recovery would write in, besides those of the workspace, as far as that can be told: what
/// cannot be read here is met again by recovery, which reports it.
pub(in crate::workspace) fn reach(workspace: &Workspace) -> Vec<PathBuf> {
    let find = |state: &StateDir| Journal::find(workspace.disk(), state).ok().flatten();
    let own = || workspace.roots().iter().filter_map(|root| find(root.state()));
    let pointed_to = own().filter_map(|journal| find(&journal.pointer().ok()??));
    let siblings = workspace.primary().state().siblings().unwrap_or_default();
    let records = own().chain(pointed_to).chain(siblings.iter().filter_map(find));
    let records = records.filter_map(|journal| Some(journal.read().ok()??.1));
    let is_own =
        |record: &Record| record.roots.iter().any(|mark| workspace.roots().iter().any(|root| root.is_marked(mark)));
    records.filter(is_own).flat_map(|record| record.roots).map(|mark| PathBuf::from(mark.path)).collect()
}

fn recover_journal(workspace: &Workspace, journal: &Journal<'_>) -> Result<Recorded, RecoveryError> {
    let Some((stage, record)) = journal.read()? else { return Ok(Recorded::Nothing) };
    bring_to_an_end(workspace, journal, stage, &record).map(|()| Recorded::Batch)
}

fn bring_to_an_end(
    workspace: &Workspace,
    journal: &Journal<'_>,
    stage: Stage,
    record: &Record,
) -> Result<(), RecoveryError> {
    let path = journal.path(stage.name());
    if record.ahead.is_some() {
        return Err(RecoveryError::WrittenAhead { path });
    }
    let ground = open_ground(workspace, record, &path)?;
    let system = |doing| {
        let record = path.clone();
        move |errno| RecoveryError::System { doing, record, errno }
    };
    if stage == Stage::Staging {
        publish::unstage(&ground, record).map_err(system("clear away"))?;
        journal.discard(record)?;
        return Ok(journal.end_at(&[stage])?);
    }
    if stage == Stage::Finishing {
        publish::clear_all(&ground, record, record.history.as_deref()).map_err(system(CLEAR_AWAY))?;
        emptied::remove(&ground, record);
        return Ok(journal.end_applied(record, stage)?);
    }
    let standings = look_around(&ground, record).map_err(system("look at"))?;
    let stuck = |direction| -> Vec<String> {
        let stuck = standings.iter().filter(|(_, standing)| !standing.can_go(direction));
        stuck.map(|(file, _)| file.real()).collect()
    };
    // Before the record of a batch goes, everything is durable; a power cut may bring it back, and nothing else.
    if stage == Stage::Committed && is_over(&standings) && record.boot != workspace.disk().boot() {
        emptied::remove(&ground, record);
        return Ok(journal.end_applied(record, stage)?);
    }
    if stage == Stage::Committed && stuck(Direction::Forward).is_empty() {
        carry_on(&ground, record, &standings).map_err(system("carry on"))?;
        journal.mark(stage, Stage::Finishing)?;
        publish::clear_all(&ground, record, record.history.as_deref()).map_err(system(CLEAR_AWAY))?;
        emptied::remove(&ground, record);
        return Ok(journal.end_applied(record, Stage::Finishing)?);
    }
    let files = stuck(Direction::Back);
    if !files.is_empty() {
        return Err(RecoveryError::Torn { record: path, files });
    }
    if stage == Stage::Committed {
        journal.advance(stage, Stage::Undoing)?;
    }
    // Until it was being taken back, nothing had left its place again.
    let staged = standings.iter().filter(|(_, standing)| stage == Stage::Committed && *standing == Standing::Staged);
    take_back(&ground, record, staged.map(|(file, _)| *file)).map_err(system("take back"))?;
    journal.discard(record)?;
    Ok(journal.end_at(&[stage, Stage::Undoing])?)
}

/// Whether nothing is staged or kept any more: then everything was published and cleared away, whatever somebody has
/// done to the files since.
fn is_over(standings: &[(&FileStep, Standing)]) -> bool {
    let mut outcomes = standings.iter();
    let any_done = outcomes.clone().any(|(_, standing)| *standing != Standing::Cleared);
    any_done
        && outcomes.all(|(file, standing)| match standing {
            Standing::Finished | Standing::Gone | Standing::Foreign | Standing::Cleared => true,
            // Of a new file nothing is kept beside it.
            Standing::Published | Standing::Overwritten => file.before.is_none(),
            Standing::Staged | Standing::Outrun | Standing::Displaced => false,
        })
}

fn look_around<'r>(ground: &Ground<'_>, record: &'r Record) -> Result<Vec<(&'r FileStep, Standing)>, Errno> {
    ground.let_go();
    let mut found = Vec::new();
    for file in &record.files {
        let dir = publish::settle_in(ground, file)?;
        found.push((file, file_state::standing(dir.as_deref(), file)?));
    }
    Ok(found)
}

fn carry_on(ground: &Ground<'_>, record: &Record, standings: &[(&FileStep, Standing)]) -> Result<(), Errno> {
    for (file, _) in standings.iter().filter(|(_, standing)| *standing == Standing::Staged) {
        publish::publish(ground, file, None).map_err(errno_of)?;
    }
    publish::sync_dirs(ground, record)
}

/// Takes every file back, last one first, and clears everything away; `unpublished` are files that were never put in place. One
/// that cannot be taken back keeps no other
/// from it; then nothing is cleared away.
pub(in crate::workspace) fn take_back<'f>(
    ground: &Ground<'_>,
    record: &Record,
    unpublished: impl IntoIterator<Item = &'f FileStep>,
) -> Result<(), Errno> {
    ground.let_go();
    let mut taken = Ok(());
    for file in record.files.iter().rev() {
        taken = taken.and(publish::withdraw(ground, file).map_err(errno_of));
    }
    publish::sync_dirs(ground, record)?;
    taken?;
    publish::drop_unpublished(ground, unpublished)?;
    publish::clear_all(ground, record, None)?;
    publish::remove_dirs(ground, record)
}

/// A file that changes under recovery's hands is looked at again the next time.
const fn errno_of(error: PublishError) -> Errno {
    match error {
        PublishError::System(errno) => errno,
        PublishError::Changed | PublishError::Exists | PublishError::ParentGone => Errno::AGAIN,
    }
}

/// The roots of a record: those of the workspace as they are held, others opened anew.
fn open_ground<'w>(workspace: &'w Workspace, record: &Record, path: &Path) -> Result<Ground<'w>, RecoveryError> {
    let mut roots = Vec::new();
    for mark in &record.roots {
        if let Some(root) = workspace.roots().iter().find(|root| root.is_marked(mark)) {
            roots.push((root.held(), root.state().clone()));
            continue;
        }
        let root = PathBuf::from(&mark.path);
        let failed = |errno| RecoveryError::Root { root: root.clone(), record: path.to_owned(), errno };
        let held = root::open_held(&root).map_err(|error| failed(Errno::from_io_error(&error).unwrap_or(Errno::IO)))?;
        // The number of a device may be another one after a boot.
        if root::mark(&held, &root).map_err(failed)?.inode != mark.inode {
            return Err(RecoveryError::Replaced { root, record: path.to_owned() });
        }
        let state = workspace.primary().state().of_other_root(&root);
        let state = state.ok_or_else(|| failed(Errno::NOENT))?;
        roots.push((Arc::new(held), state));
    }
    Ok(Ground::new(workspace.disk(), roots))
}
