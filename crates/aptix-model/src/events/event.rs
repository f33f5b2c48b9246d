//! The events in the life of a batch or a call, and the lines that each of them is in a log.

use core::time::Duration;

use super::cause::{about, causes};
use super::line::Line;
use super::trace::{TARGET, Trace, shown};
use crate::batch::{Batch, CreateFile, FileEdit};
use crate::create_file_code;
use crate::digest::Sha256Digest;
use crate::failure::Failure;
use crate::id::Revision;
use crate::report::{Outcome, Report, Written};
use crate::state::BatchState;

/// The tool whose every call TUL-004 6 demands to be logged.
const CREATE_FILE: &str = "workspace_create_file";
/// The line about a file that was to be created, of the program that writes files.
const EXECUTED: &str = "Tool.CreateFile.Executed";
/// The same, of the server.
const RECEIVED: &str = "Tool.CreateFile.ResultReceived";

/// What happened.
#[derive(Clone, Copy, Debug)]
pub enum Event<'a> {
    /// A batch came and was understood.
    Received(&'a Batch),
    /// The server keeps the batch.
    Stored(&'a Batch, Revision),
    /// The server has the batch already, under the same request id.
    Repeated(BatchState),
    /// The server is about to send the batch to its agent.
    Forwarded(&'a Batch),
    /// A person agreed to what has this digest.
    Agreed(Sha256Digest),
    /// A dry run found nothing that it would be refused for.
    Checked(&'a Batch),
    /// The edit is planned, and kept to be applied by another call.
    Prepared(&'a Batch),
    /// Its files are as described.
    Applied(&'a Batch, &'a Report),
    /// Another batch is taken back: the id of that one.
    Undone(&'a Batch, &'a str),
    /// Nothing is stored or written: why not. The batch is absent if it could not be understood.
    Refused(Option<&'a Batch>, &'a [Failure]),
    /// A call that is not about to change files was refused.
    CallRefused(&'a [Failure]),
    /// The server knows how the batch ended; with it the batch and its report, where files were to be created.
    Reported(BatchState, Option<(&'a Batch, &'a Report)>),
    /// Its author withdrew the batch.
    Cancelled,
    /// Its owner let the prepared batch be applied.
    Freed,
    /// A person refused the batch.
    Rejected,
    /// A person approved the batch, which waited for that at the server.
    Approved,
    /// The time in which the prepared batch could be applied is over.
    Expired,
    /// The agent stopped its work on a batch that was withdrawn.
    Withdrawn,
}

impl Trace {
    /// Logs an event, and what the tool concerned demands beside it (TUL-004 6). `elapsed` is the time since this program got
    /// the batch or the call, by a monotonic clock.
    pub fn log(&self, elapsed: Duration, event: Event<'_>) {
        if tracing::enabled!(target: TARGET, tracing::Level::WARN) {
            event.lines(self, &mut |line| line.write(self, elapsed));
        }
    }
}

impl Event<'_> {
    const fn name(&self) -> &'static str {
        match self {
            Self::Received(_) => "Batch.Received",
            Self::Stored(..) => "Batch.Stored",
            Self::Repeated(_) => "Batch.Repeated",
            Self::Forwarded(_) => "Batch.Forwarded",
            Self::Agreed(_) => "Batch.Agreed",
            Self::Checked(_) => "Batch.Checked",
            Self::Prepared(_) => "Batch.Prepared",
            Self::Applied(..) => "Batch.Applied",
            Self::Undone(..) => "Batch.Undone",
            Self::Refused(..) => "Batch.Refused",
            Self::CallRefused(_) => "Call.Refused",
            Self::Reported(..) => "Batch.Reported",
            Self::Cancelled => "Batch.Cancelled",
            Self::Freed => "Batch.Freed",
            Self::Rejected => "Batch.Rejected",
            Self::Approved => "Batch.Approved",
            Self::Expired => "Batch.Expired",
            Self::Withdrawn => "Batch.Withdrawn",
        }
    }

    /// Hands over the lines of the event: its own, then one for each file that it creates.
    fn lines(&self, trace: &Trace, put: &mut dyn FnMut(Line)) {
        put(self.own(trace));
        let executes = trace.via.executes() && !trace.is_dry_run;
        match *self {
            Self::Forwarded(batch) => created(batch).for_each(|(_, file)| put(forwarded(file))),
            Self::Applied(batch, report) if report.outcome == Outcome::Partial => {
                put_partial(EXECUTED, batch, report, put);
            }
            Self::Applied(batch, report) => put_results(EXECUTED, batch, Ok(report), put),
            Self::Refused(Some(batch), failures) if executes => put_results(EXECUTED, batch, Err(failures), put),
            Self::Refused(None, failures) if executes && trace.tool.as_deref() == Some(CREATE_FILE) => {
                put(result(EXECUTED, None, Err(failures.first())));
            }
            Self::Reported(BatchState::Applied, Some((batch, report))) => {
                put_results(RECEIVED, batch, Ok(report), put);
            }
            Self::Reported(BatchState::Partial, Some((batch, report))) => put_partial(RECEIVED, batch, report, put),
            Self::Reported(_, Some((batch, report))) => put_results(RECEIVED, batch, Err(&report.failures), put),
            _ => {}
        }
    }

    fn own(&self, trace: &Trace) -> Line {
        let line = Line { dry_run: trace.is_dry_run.then_some(true), ..Line::new(self.name()) };
        let of_batch = |line: Line, batch: &Batch| {
            let changes = batch.files.iter().map(|file| file.edit.change_count()).sum();
            Line { files: Some(batch.files.len()), changes: Some(changes), ..line }
        };
        match *self {
            Self::Received(batch) | Self::Forwarded(batch) | Self::Checked(batch) | Self::Prepared(batch) => {
                of_batch(line, batch)
            }
            Self::Applied(batch, report) if report.outcome == Outcome::Partial => {
                let line = Line { state: Some(BatchState::Partial.word()), ..line };
                of_batch(blamed(line, &report.failures), batch)
            }
            Self::Applied(batch, _) => of_batch(line, batch),
            Self::Stored(batch, revision) => of_batch(Line { revision: Some(revision.0), ..line }, batch),
            Self::Undone(batch, reverts) => of_batch(Line { reverts: Some(shown(reverts)), ..line }, batch),
            Self::Repeated(state) | Self::Reported(state, _) => Line { state: Some(state.word()), ..line },
            Self::Agreed(subject) => Line { subject: Some(subject), ..line },
            Self::Refused(batch, failures) => {
                let line = blamed(line, failures);
                batch.into_iter().fold(line, of_batch)
            }
            Self::CallRefused(failures) => blamed(line, failures),
            Self::Cancelled | Self::Freed | Self::Rejected | Self::Approved | Self::Expired | Self::Withdrawn => line,
        }
    }
}

/// The line with the reasons of a refusal, the decisive one first.
fn blamed(line: Line, failures: &[Failure]) -> Line {
    let first = failures.first();
    Line {
        reason: first.map(|failure| failure.reason.code()),
        doc_path: first.and_then(|failure| failure.doc_path.as_deref().or(failure.path.as_deref())).map(shown),
        count: Some(failures.len()),
        causes: Some(causes(failures)),
        ..line
    }
}

/// A file that is to be created: its path, and how.
type Created<'a> = (&'a str, &'a CreateFile);

/// The files that a batch creates, each with its position.
fn created(batch: &Batch) -> impl Iterator<Item = (usize, Created<'_>)> {
    batch.files.iter().enumerate().filter_map(|(index, file)| match &file.edit {
        FileEdit::CreateFile(create) => Some((index, (file.target.as_str(), create))),
        _ => None,
    })
}

fn forwarded((path, create): Created<'_>) -> Line {
    Line {
        tool: Some(CREATE_FILE),
        path: Some(shown(path)),
        overwrite: Some(create.overwrite),
        ..Line::new("Tool.CreateFile.Forwarded")
    }
}

/// Hands over a line for each file that was to be created. A file is blamed for its own failures and for those of the whole
/// batch, and not for those of other files.
fn put_results(name: &'static str, batch: &Batch, outcome: Result<&Report, &[Failure]>, put: &mut dyn FnMut(Line)) {
    for (index, file) in created(batch) {
        let outcome = match outcome {
            Ok(report) => Ok(report.files.get(index).and_then(|file| file.written)),
            Err(failures) => Err(about(failures, index)),
        };
        put(result(name, Some(file), outcome));
    }
}

/// As [`put_results`], of a batch that was applied file by file.
fn put_partial(name: &'static str, batch: &Batch, report: &Report, put: &mut dyn FnMut(Line)) {
    for (index, file) in created(batch) {
        let done = report.files.get(index).filter(|file| file.status.is_applied());
        let outcome = done.map(|file| file.written).ok_or_else(|| about(&report.failures, index));
        put(result(name, Some(file), outcome));
    }
}

/// What became of a file: what was written, or why nothing was. Without a file it is a call that names none.
fn result(name: &'static str, file: Option<Created<'_>>, outcome: Result<Option<Written>, Option<&Failure>>) -> Line {
    let written = outcome.ok().flatten();
    let failure = outcome.err().flatten();
    Line {
        tool: Some(CREATE_FILE),
        path: file.map(|(path, _)| shown(path)),
        overwrite: file.map(|(_, create)| create.overwrite),
        success: Some(outcome.is_ok()),
        error_code: failure.map(create_file_code::of),
        size_bytes: written.map(|written| written.size_bytes),
        hash: written.map(|written| written.sha256),
        ..Line::new(name)
    }
}
