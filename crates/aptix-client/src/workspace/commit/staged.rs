//! The first stage of a commit: every new file is complete and durable beside the old one, and the record says which.

use std::os::fd::OwnedFd;
use std::path::Path;

use crate::workspace::commit::attempt::Attempt;
use crate::workspace::commit::change::Step;
use crate::workspace::commit::commit_error::{CommitError, FileFault};
use crate::workspace::commit::notice::Notice;
use crate::workspace::commit::record::{NewDir, Stage};
use crate::workspace::commit::recorded::Recorded;
use crate::workspace::commit::staging::{self, Made};
use crate::workspace::commit::{contents, history_draft};
use crate::workspace::fs::disk;
use crate::workspace::read::file_stamp::FileStamp;

/// How many new files are held open, written and then flushed at the same time.
const FLUSHED_TOGETHER: usize = 256;

/// A commit whose files are staged. Nothing of it is visible yet.
#[must_use = "what is staged is recorded or stays behind"]
pub(crate) struct Staged<'c> {
    attempt: Attempt<'c>,
    notices: Vec<Notice>,
}

impl<'c> Staged<'c> {
    /// Stages every file, and checks again that each one is as it was read.
    ///
    /// # Errors
    /// Nothing has changed then.
    pub(crate) fn stage(mut attempt: Attempt<'c>) -> Result<Self, CommitError> {
        match prepare(&mut attempt) {
            Ok(notices) => Ok(Self { attempt, notices }),
            Err(error) => Err(attempt.abandon(error)),
        }
    }

    /// Passes the commit point: from here on the batch is carried out, whatever happens.
    ///
    /// # Errors
    /// Nothing has changed then, or the next command finds out ([`CommitError::Undecided`]).
    pub(crate) fn record(self) -> Result<Recorded<'c>, CommitError> {
        let Self { attempt, notices } = self;
        match pass_commit_point(&attempt) {
            Ok(()) => Ok(Recorded::new(attempt, notices)),
            Err(error) => Err(attempt.abandon(error)),
        }
    }
}

fn pass_commit_point(attempt: &Attempt<'_>) -> Result<(), CommitError> {
    let journal = &attempt.journal;
    if let Some(draft) = attempt.history {
        let failed = journal.failed_beside("keep a history beside");
        history_draft::write(attempt.tree.disk, journal.state(), draft).map_err(failed)?;
    }
    Ok(journal.advance(Stage::Staging, Stage::Committed)?)
}

/// Everything before the history and the commit point. The record keeps only the directories that had to be made.
fn prepare(attempt: &mut Attempt<'_>) -> Result<Vec<Notice>, CommitError> {
    for journal in attempt.other_journals() {
        journal?.point_to(attempt.journal.state())?;
    }
    let mut begun = attempt.journal.begin(&attempt.record, attempt.receipt)?;
    let beside_failed = attempt.journal.failed_beside("keep contents beside");
    let contents = match &attempt.record.batch {
        Some(batch) => Some(contents::open(attempt.tree.disk, attempt.journal.state(), batch).map_err(&beside_failed)?),
        None => None,
    };
    for dir in attempt.record.dirs.clone() {
        if make_dir(attempt, &dir)? == Made::Elsewhere {
            attempt.record.dirs.retain(|made| *made != dir);
            begun = attempt.journal.begin(&attempt.record, attempt.receipt)?;
        }
    }
    let Written { notices, stamps, mut open } = write(attempt, contents.as_ref())?;
    open.push((Whose::Record, begun));
    flush(attempt, &mut open)?;
    if let Some(contents) = &contents {
        contents::sync(attempt.tree.disk, attempt.journal.state(), contents).map_err(&beside_failed)?;
    }
    attempt.tree.dirs.let_go();
    for ((step, file), staged) in attempt.steps.iter().zip(&attempt.record.files).zip(stamps) {
        let change = step.change;
        staging::recheck(&attempt.tree, file, step.original, staged)
            .map_err(|fault| CommitError::File { change, fault })?;
    }
    Ok(notices)
}

/// Makes a directory of the record; its failure is that of the first change that needs it.
fn make_dir(attempt: &Attempt<'_>, dir: &NewDir) -> Result<Made, CommitError> {
    let path = if dir.parent.is_empty() { dir.name.clone() } else { format!("{}/{}", dir.parent, dir.name) };
    let needs = |step: &&Step<'_>| step.place.root == dir.root && Path::new(&step.place.dir).starts_with(&path);
    let change = attempt.steps.iter().find(needs).map_or(0, |step| step.change);
    staging::make_dir(&attempt.tree, dir)
        .map_err(|errno| CommitError::File { change, fault: FileFault::MakeDir { errno } })
}

/// Files that are staged and not all durable yet.
struct Written {
    notices: Vec<Notice>,
    /// The stamp of each staged file, in the order of the record; `None` where a file only goes.
    stamps: Vec<Option<FileStamp>>,
    open: Vec<(Whose, OwnedFd)>,
}

/// Writes each new file beside the old one, and its content for the server.
fn write(attempt: &Attempt<'_>, contents: Option<&OwnedFd>) -> Result<Written, CommitError> {
    let tree = &attempt.tree;
    let stamps = Vec::with_capacity(attempt.steps.len());
    let mut written = Written { notices: Vec::new(), stamps, open: Vec::new() };
    tree.dirs.let_go();
    for (step, file) in attempt.steps.iter().zip(&attempt.record.files) {
        let change = step.change;
        let Some(content) = step.content else {
            written.stamps.push(None);
            continue;
        };
        let bytes = content.bytes.bytes();
        let new = staging::stage(tree, file, step, &bytes).map_err(|fault| CommitError::File { change, fault })?;
        written.stamps.push(Some(new.stamp));
        written.notices.extend(new.losses.into_iter().map(|loss| Notice::Lost { change, loss }));
        let kept = match contents {
            Some(contents) => contents::put(tree.disk, contents, content.digest, &bytes)
                .map_err(attempt.journal.failed("keep contents beside"))?,
            None => None,
        };
        written.open.push((Whose::Change(change), new.file));
        written.open.extend(kept.map(|file| (Whose::Content, file)));
        if written.open.len() >= FLUSHED_TOGETHER {
            flush(attempt, &mut written.open)?;
        }
    }
    Ok(written)
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
fn flush(attempt: &Attempt<'_>, open: &mut Vec<(Whose, OwnedFd)>) -> Result<(), CommitError> {
    let journal = &attempt.journal;
    let (whose, files): (Vec<Whose>, Vec<OwnedFd>) = open.drain(..).unzip();
    disk::sync_all(attempt.tree.disk, &files).map_err(|(index, errno)| match whose.get(index) {
        Some(Whose::Change(change)) => {
            let fault = FileFault::System { doing: "make it durable", errno };
            CommitError::File { change: *change, fault }
        }
        Some(Whose::Content) => journal.failed("keep contents beside")(errno).into(),
        Some(Whose::Record) | None => journal.failed("write")(errno).into(),
    })
}
