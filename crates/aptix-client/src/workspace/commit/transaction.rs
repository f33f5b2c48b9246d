//! Commits a planned batch: every file gets its new bytes, or none does, whatever happens in between.

mod refused;

use aptix_model::id::BatchId;

use crate::workspace::Workspace;
use crate::workspace::commit::change::{self, Change, Step};
use crate::workspace::commit::journal::{Journal, JournalError, Record, Stage};
use crate::workspace::commit::publish::{self, Ground, PublishError};
use crate::workspace::commit::recovery;
use crate::workspace::commit::staging::Made;
use crate::workspace::commit::{emptied, staging};
use crate::workspace::fs::disk;
use crate::workspace::keep::clipboards::Taken;
use crate::workspace::keep::history::{self, Retention, Reversal};
use crate::workspace::keep::outbox::contents;
use crate::workspace::read::snapshot::Stamp;
pub use refused::{CommitError, FileFault};
pub use staging::Loss;

use std::os::fd::OwnedFd;

/// How many new files are held open, written and then flushed at the same time.
const FLUSHED_TOGETHER: usize = 256;

/// What the server is to be told about a batch once it is applied, even if this process dies first.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Receipt {
    /// Which batch.
    pub batch: BatchId,
    /// The report, in the form in which it will be sent.
    pub bytes: Vec<u8>,
}

/// Something that somebody should know although the commit succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Somebody wrote the old file while it was being replaced; what they wrote was kept under this name beside it.
    Kept {
        /// Position among the changes.
        change: usize,
        /// The name.
        name: String,
    },
    /// Somebody wrote the new file right after it was published.
    Overwritten {
        /// Position among the changes.
        change: usize,
    },
    /// The changes cannot be undone: what was in the files is more than is kept.
    NotUndoable,
    /// The system does not give the new file something that the old one had.
    Lost {
        /// Position among the changes.
        change: usize,
        /// What.
        loss: Loss,
    },
}

/// What belongs to a commit besides its changes.
#[derive(Clone, Copy, Default, Debug)]
pub struct Terms<'a> {
    /// What the batch is called in the history, if not as in the receipt.
    pub name: Option<BatchId>,
    /// What the server is to be told; with it, the new contents are kept for the server.
    pub receipt: Option<&'a Receipt>,
    /// What is left on the clipboards of the session.
    pub clipboards: Option<&'a Taken>,
    /// Which entry of the history the changes take back.
    pub undoes: Option<&'a Reversal>,
    /// How much is kept for undoing, this commit included.
    pub retention: Retention,
}

/// Commits changes, and makes the receipt and the new contents durable in the same step.
///
/// # Errors
/// Nothing has changed then, or everything was put back, or the error says that a person is needed.
pub fn commit(workspace: &Workspace, changes: &[Change<'_>], terms: Terms<'_>) -> Result<Vec<Notice>, CommitError> {
    let Terms { name, receipt, clipboards, undoes, retention } = terms;
    let _locks = workspace.lock()?;
    let journal = recovery::recover(workspace)?;
    if changes.is_empty() && receipt.is_none() && clipboards.is_none() {
        return Ok(Vec::new());
    }
    check(workspace, changes)?;
    let ground = ground(workspace);
    let steps = change::steps(changes);
    let batch = receipt.map(|receipt| receipt.batch.to_string());
    let called = name.map(|name| name.to_string()).or_else(|| batch.clone());
    let past = (!changes.is_empty()).then(|| history::draft(workspace, changes, called, undoes, retention));
    let past = past.transpose().map_err(journal.failed_beside("keep a history beside"))?;
    let mut record = Record {
        history: past.as_ref().map(|past| past.id.clone()),
        clipboards: clipboards.cloned(),
        emptied: emptied::of(workspace, undoes),
        ..staging::draft(workspace, &steps, batch)
    };
    let prepared = prepare(workspace, &ground, &journal, &mut record, &steps, receipt).and_then(|notices| {
        if let Some(past) = &past {
            let failed = journal.failed_beside("keep a history beside");
            history::write(ground.disk, journal.state(), &past.id, &past.bytes).map_err(failed)?;
        }
        journal.advance(Stage::Staging, Stage::Committed)?;
        Ok(notices)
    });
    let mut notices = match prepared {
        Ok(notices) => notices,
        Err(error) => return Err(abandon(workspace, &ground, &journal, &record, error)),
    };
    let displaced = publish_all(workspace, &ground, &journal, &record, &steps)?;
    notices.extend(finish(workspace, &ground, &journal, &record, &steps, displaced));
    workspace.bound_history(past.as_ref().map_or(0, |past| past.bytes.len() as u64), retention);
    notices.extend(past.filter(|past| !past.is_whole).map(|_| Notice::NotUndoable));
    Ok(notices)
}

/// Looks for what would make a commit of these changes fail, as far as that can be seen without touching anything.
///
/// # Errors
/// Names the first change that could not be made.
pub fn check(workspace: &Workspace, changes: &[Change<'_>]) -> Result<(), CommitError> {
    let ground = ground(workspace);
    let mut checked = staging::Checked::new();
    for step in &change::steps(changes) {
        staging::check(&ground, step, &mut checked)
            .map_err(|fault| CommitError::File { change: step.change, fault })?;
    }
    Ok(())
}

fn ground(workspace: &Workspace) -> Ground<'_> {
    let roots = workspace.roots().iter().map(|root| (root.held(), root.state().clone()));
    Ground::new(workspace.disk(), roots.collect()).of_a_result()
}

/// Whose a file is that has to be durable before the commit point.
#[derive(Clone, Copy)]
enum Whose {
    /// That of a change, by position.
    Change(usize),
    /// The server's.
    Content,
    /// The commit's own.
    Record,
}

/// Makes files durable, and closes them.
fn flush(ground: &Ground<'_>, journal: &Journal<'_>, open: &mut Vec<(Whose, OwnedFd)>) -> Result<(), CommitError> {
    let (whose, files): (Vec<Whose>, Vec<OwnedFd>) = open.drain(..).unzip();
    disk::sync_all(ground.disk, &files).map_err(|(index, errno)| match whose.get(index) {
        Some(Whose::Change(change)) => {
            let fault = FileFault::System { doing: "make it durable", errno };
            CommitError::File { change: *change, fault }
        }
        Some(Whose::Content) => journal.failed("keep contents beside")(errno).into(),
        Some(Whose::Record) | None => journal.failed("write")(errno).into(),
    })
}

/// Everything up to the commit point. The record keeps only the directories that had to be made.
fn prepare(
    workspace: &Workspace,
    ground: &Ground<'_>,
    journal: &Journal<'_>,
    record: &mut Record,
    steps: &[Step<'_>],
    receipt: Option<&Receipt>,
) -> Result<Vec<Notice>, CommitError> {
    for root in workspace.roots().iter().filter(|root| root.state().path() != journal.state().path()) {
        Journal::open(workspace.disk(), root.state())?.point_to(journal.state())?;
    }
    let receipt = receipt.map_or(&[][..], |receipt| receipt.bytes.as_slice());
    let begin = |record: &Record| journal.begin(record, receipt);
    let mut begun = begin(record)?;
    let (journal_failed, beside_failed) =
        (journal.failed("keep contents beside"), journal.failed_beside("keep contents beside"));
    let contents = match &record.batch {
        Some(batch) => Some(contents::open(ground.disk, journal.state(), batch).map_err(&beside_failed)?),
        None => None,
    };
    for made in record.dirs.clone() {
        let path = if made.parent.is_empty() { made.name.clone() } else { format!("{}/{}", made.parent, made.name) };
        let needs =
            |step: &&Step<'_>| step.place.root == made.root && std::path::Path::new(&step.place.dir).starts_with(&path);
        let change = steps.iter().find(needs).map_or(0, |step| step.change);
        let failed = |errno| CommitError::File { change, fault: FileFault::MakeDir { errno } };
        if staging::make_dir(ground, &made).map_err(failed)? == Made::Elsewhere {
            record.dirs.retain(|dir| *dir != made);
            begun = begin(record)?;
        }
    }
    let mut notices = Vec::new();
    let mut stamps = Vec::with_capacity(steps.len());
    let mut open = Vec::new();
    ground.let_go();
    for (step, file) in steps.iter().zip(&record.files) {
        let change = step.change;
        let Some(content) = step.content else {
            stamps.push(None);
            continue;
        };
        let bytes = content.bytes.bytes();
        let new = staging::stage(ground, file, step, &bytes).map_err(|fault| CommitError::File { change, fault })?;
        stamps.push(Some(new.stamp));
        notices.extend(new.losses.into_iter().map(|loss| Notice::Lost { change, loss }));
        let kept = match &contents {
            Some(contents) => contents::put(ground.disk, contents, content.digest, &bytes).map_err(&journal_failed)?,
            None => None,
        };
        open.push((Whose::Change(change), new.file));
        open.extend(kept.map(|file| (Whose::Content, file)));
        if open.len() >= FLUSHED_TOGETHER {
            flush(ground, journal, &mut open)?;
        }
    }
    open.push((Whose::Record, begun));
    flush(ground, journal, &mut open)?;
    if let Some(contents) = &contents {
        contents::sync(ground.disk, journal.state(), contents).map_err(&beside_failed)?;
    }
    ground.let_go();
    for ((step, file), staged) in steps.iter().zip(&record.files).zip(stamps) {
        let change = step.change;
        staging::recheck(ground, file, step.original, staged).map_err(|fault| CommitError::File { change, fault })?;
    }
    Ok(notices)
}

/// Clears away a commit that failed before anything was published, and says what its failure comes to.
fn abandon(
    workspace: &Workspace,
    ground: &Ground<'_>,
    journal: &Journal<'_>,
    record: &Record,
    error: CommitError,
) -> CommitError {
    let cleared = publish::unstage(ground, record).map_err(|errno| errno.to_string()).and_then(|()| {
        journal
            .discard(record)
            .and_then(|()| journal.end())
            .and_then(|()| drop_pointers(workspace))
            .map_err(|error| error.to_string())
    });
    match cleared {
        Ok(()) => error,
        Err(cause) if journal.may_be_committed() => {
            CommitError::Undecided { error: Box::new(error), cause, record: journal.path(Stage::Committed.name()) }
        }
        Err(cause) => {
            tracing::warn!(cause, "files of a refused batch are left to be cleared by the next command");
            error
        }
    }
}

fn drop_pointers(workspace: &Workspace) -> Result<(), JournalError> {
    let primary = workspace.primary().state().path();
    let others = workspace.roots().iter().filter(|root| root.state().path() != primary);
    others.into_iter().try_for_each(|root| Journal::open(workspace.disk(), root.state())?.drop_pointer())
}

/// Publishes every file, or takes back those that were; gives the stamp of the file that each has displaced.
fn publish_all(
    workspace: &Workspace,
    ground: &Ground<'_>,
    journal: &Journal<'_>,
    record: &Record,
    steps: &[Step<'_>],
) -> Result<Vec<Option<Stamp>>, CommitError> {
    let mut published = Vec::with_capacity(record.files.len());
    for (step, file) in steps.iter().zip(&record.files) {
        // A directory that was taken out of the root since is not written in.
        ground.let_go();
        match publish::publish(ground, file, step.original.map(|original| original.bytes.as_slice())) {
            Ok(displaced) => published.push(displaced),
            Err(error) => {
                let is_first = published.is_empty();
                // This one may have been in place for a moment.
                let error =
                    take_back(workspace, ground, journal, record, (step.change, fault(error)), published.len() + 1);
                let error = match error {
                    CommitError::RolledBack { change, fault } if is_first => CommitError::File { change, fault },
                    error => error,
                };
                let names = publish::kept(ground, record);
                return Err(match names.is_empty() {
                    true => error,
                    false => CommitError::Kept { error: Box::new(error), names },
                });
            }
        }
    }
    if let Err(errno) = publish::sync_dirs(ground, record) {
        let fault = FileFault::System { doing: "make the directory durable", errno };
        return Err(take_back(workspace, ground, journal, record, (0, fault), record.files.len()));
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

/// Takes the first so many files back, and clears all of them away.
fn take_back(
    workspace: &Workspace,
    ground: &Ground<'_>,
    journal: &Journal<'_>,
    record: &Record,
    (change, fault): (usize, FileFault),
    published: usize,
) -> CommitError {
    // Should the mark fail, recovery finds every file back in its old state and draws the same conclusion.
    let marked = journal.advance(Stage::Committed, Stage::Undoing);
    if let Err(cause) = recovery::take_back(ground, record, record.files.iter().skip(published)) {
        let stage = if marked.is_ok() { Stage::Undoing } else { Stage::Committed };
        return CommitError::NeedsOperator { change, fault, cause, record: workspace.record_path(stage.name()) };
    }
    let ended = journal.discard(record).and_then(|()| journal.end()).and_then(|()| drop_pointers(workspace));
    if let Err(error) = ended {
        tracing::warn!(%error, "the record of a batch that was put back is left to be cleared by the next command");
    }
    CommitError::RolledBack { change, fault }
}

/// Everything after the last file was published: nothing in here can take the batch back.
fn finish(
    workspace: &Workspace,
    ground: &Ground<'_>,
    journal: &Journal<'_>,
    record: &Record,
    steps: &[Step<'_>],
    displaced: Vec<Option<Stamp>>,
) -> Vec<Notice> {
    let mut notices = Vec::new();
    ground.let_go();
    for (step, file) in steps.iter().zip(&record.files) {
        let planned = step.content.as_ref().map(|content| content.bytes.bytes());
        if publish::is_overwritten(ground, file, planned.as_deref()).unwrap_or(false) {
            notices.push(Notice::Overwritten { change: step.change });
        }
    }
    ground.let_go();
    let clear = || -> Result<(), String> {
        journal.mark(Stage::Committed, Stage::Finishing).map_err(|error| error.to_string())?;
        for ((step, file), displaced) in steps.iter().zip(&record.files).zip(displaced) {
            let change = step.change;
            if let Some(name) = publish::clear(ground, file, displaced).map_err(|errno| errno.to_string())? {
                notices.push(Notice::Kept { change, name });
            }
        }
        emptied::remove(ground, record);
        let moved = ground.displacer.note(record.history.as_deref()).map_err(|errno| errno.to_string())?;
        workspace.bound_displaced(moved);
        let ended = journal.end_applied(record, Stage::Finishing).and_then(|()| drop_pointers(workspace));
        ended.map_err(|error| error.to_string())
    };
    if let Err(error) = clear() {
        tracing::warn!(error, "the batch is applied; its record is left to be cleared by the next command");
    }
    notices
}
