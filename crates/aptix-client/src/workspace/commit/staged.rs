//! The first stage of a commit: every new file is complete and durable beside the old one, and the record says which.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::change::Step;
use crate::workspace::commit::commit_error::{CommitError, FileFault};
use crate::workspace::commit::journal::Journal;
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::record::{NewDir, Stage};
use crate::workspace::commit::recorded::Recorded;
use crate::workspace::commit::{contents, history_draft, staging};
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::roots::unfinished;

/// How many new files are held open, written and then flushed at the same time.
const FLUSHED_TOGETHER: usize = 256;

/// A commit whose files are staged. Nothing of it is visible yet.
#[must_use = "what is staged is recorded or stays behind"]
pub(crate) struct Staged<'c>(Attempt<'c>);

impl<'c> Staged<'c> {
    /// Stages every file, and checks again that each one is as it was read.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub(crate) fn stage(mut attempt: Attempt<'c>) -> Result<Self, CommitError> {
        match prepare(&mut attempt) {
            Ok(()) => Ok(Self(attempt)),
            Err(error) => Err(attempt.abandon(error)),
        }
    }

    /// Passes the commit point: from here on the batch is carried out, whatever happens.
    ///
    /// # Errors
    /// Nothing has changed then, or the next command finds out ([`CommitError::Undecided`]).
    pub(crate) fn record(self) -> Result<Recorded<'c>, CommitError> {
        match pass_commit_point(&self.0) {
            Ok(()) => Ok(Recorded(self.0)),
            Err(error) => Err(self.0.abandon(error)),
        }
    }
}

fn pass_commit_point(attempt: &Attempt<'_>) -> Result<(), CommitError> {
    let journal = &attempt.journal;
    if let Some(draft) = attempt.history {
        let failed = journal.failed("keep a history beside");
        history_draft::write(attempt.tree.disk, draft).map_err(failed)?;
    }
    Ok(journal.advance(Stage::Staging, Stage::Committed)?)
}

/// Everything before the history and the commit point. The record keeps only the directories that had to be made.
fn prepare(attempt: &mut Attempt<'_>) -> Result<(), CommitError> {
    for journal in attempt.other_journals() {
        journal?.point_to(&attempt.journal.state)?;
    }
    unfinished::enter(attempt.tree.disk, &attempt.journal.state)?;
    let mut begun = attempt.journal.begin(&attempt.record, attempt.receipt)?;
    let beside_failed = attempt.journal.failed_beside("keep contents beside");
    let contents = match &attempt.record.batch {
        Some(batch) => Some(contents::open(attempt.tree.disk, &attempt.journal.state, batch).map_err(&beside_failed)?),
        None => None,
    };
    for dir in attempt.record.dirs.clone() {
        if !make_dir(attempt, &dir)? {
            attempt.record.dirs.retain(|made| *made != dir);
            begun = attempt.journal.begin(&attempt.record, attempt.receipt)?;
        }
    }
    let mut open = Vec::new();
    let stamps = write(attempt, contents.as_ref(), &mut open)?;
    open.push((Whose::Record, begun));
    let Attempt { journal, tree, steps, record, .. } = attempt;
    flush(tree.disk, journal, &mut open)?;
    if let Some(contents) = &contents {
        contents::sync(tree.disk, &journal.state, contents).map_err(&beside_failed)?;
    }
    tree.dirs.let_go();
    for ((step, file), staged) in steps.iter().zip(&record.files).zip(stamps) {
        let change = step.change;
        staging::recheck(tree, file, step.original, staged).map_err(|fault| CommitError::File { change, fault })?;
    }
    Ok(())
}

/// Makes a directory of the record, as [`staging::make_dir`]; its failure is that of the first change that needs it.
fn make_dir(attempt: &Attempt<'_>, dir: &NewDir) -> Result<bool, CommitError> {
    let path = if dir.parent.is_empty() { dir.name.clone() } else { format!("{}/{}", dir.parent, dir.name) };
    let needs = |step: &&Step<'_>| step.place.root == dir.root && Path::new(&step.place.dir).starts_with(&path);
    let change = attempt.steps.iter().find(needs).map_or(0, |step| step.change);
    staging::make_dir(&attempt.tree, dir)
        .map_err(|errno| CommitError::File { change, fault: FileFault::MakeDir { errno } })
}

/// Writes each new file beside the old one, and its content for the server; those that are not durable yet are added to
/// `open`. Returns the stamp of each staged file, in the order of the record; `None` where a file is only removed.
fn write(
    attempt: &mut Attempt<'_>,
    contents: Option<&OwnedFd>,
    open: &mut Vec<(Whose, OwnedFd)>,
) -> Result<Vec<Option<FileStamp>>, CommitError> {
    let Attempt { journal, tree, steps, record, notices, .. } = attempt;
    let mut stamps = Vec::with_capacity(steps.len());
    tree.dirs.let_go();
    for (step, file) in steps.iter().zip(&record.files) {
        let change = step.change;
        let Some(content) = step.content else {
            stamps.push(None);
            continue;
        };
        let bytes = content.bytes.bytes();
        let new = staging::stage(tree, file, step, &bytes).map_err(|fault| CommitError::File { change, fault })?;
        stamps.push(Some(new.stamp));
        notices.extend(new.losses.into_iter().map(|loss| Notice::Lost { change, loss }));
        open.push((Whose::Change(change), new.file));
        if let Some(contents) = contents {
            let kept = contents::put(tree.disk, contents, content.digest, &bytes);
            let kept = kept.map_err(journal.failed("keep contents beside"))?;
            open.extend(kept.map(|file| (Whose::Content, file)));
        }
        if open.len() >= FLUSHED_TOGETHER {
            flush(tree.disk, journal, open)?;
        }
    }
    Ok(stamps)
}

/// The owner of a file that has to be durable before the commit point.
#[derive(Clone, Copy)]
enum Whose {
    /// The change at this position.
    Change(usize),
    /// The server.
    Content,
    /// The commit.
    Record,
}

/// Makes files durable, and closes them.
fn flush(disk: &dyn Disk, journal: &Journal<'_>, open: &mut Vec<(Whose, OwnedFd)>) -> Result<(), CommitError> {
    let (whose, files): (Vec<Whose>, Vec<OwnedFd>) = open.drain(..).unzip();
    disk::sync_all(disk, &files).map_err(|(index, errno)| match whose.get(index) {
        Some(Whose::Change(change)) => {
            let fault = FileFault::System { doing: "make it durable", errno };
            CommitError::File { change: *change, fault }
        }
        Some(Whose::Content) => journal.failed("keep contents beside")(errno).into(),
        Some(Whose::Record) | None => journal.failed("write")(errno).into(),
    })
}
