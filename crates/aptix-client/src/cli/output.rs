//! What commands print: the fixed JSON object, or text for people in which nothing can hide.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::AnsiColor;
use aptix_model::batch::Batch;
use aptix_model::failure::{Failure, Visible};
use aptix_model::report::{FileStatus, Report};
use serde::Serialize;

use crate::apply::Refusal;
use crate::present::answer::{Shown, answer};

use super::Exit;
use super::progress;
use crate::present::description::described;
use crate::present::diff::{Paths, ShownLine, add_notes, show_diff, show_diff_under};
use crate::present::untrusted::Quoted;

/// How a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

impl Form {
    pub(super) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Prints what there is to say about a batch.
pub(super) fn show(form: Form, shown: &Shown<'_>) -> Exit {
    progress::end();
    match form {
        Form::Json => print_json(shown),
        Form::Text => print_text(shown),
    }
}

/// Prints why there is nothing to say about any batch.
pub(super) fn show_refusal(form: Form, refusal: &Refusal) {
    let batch = Batch::default();
    show(
        form,
        &Shown {
            batch: &batch,
            dry_run: false,
            paths: Paths::InRoot,
            stored: None,
            outcome: Err(refusal),
            warnings: &[],
        },
    );
}

/// Prints the JSON object of a command that ended before it could say anything else; to people it is said elsewhere.
pub(super) fn show_broken_off(form: Form, why: Failure) {
    if form == Form::Json {
        show_refusal(form, &why.into());
    }
}

/// Whether the one JSON object was printed, or is being printed.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints the one JSON object about a batch.
fn print_json(shown: &Shown<'_>) -> Exit {
    print_object(&answer(shown, command_for))
}

/// The command that takes a document of a dialect.
fn command_for(dialect: &str) -> Option<String> {
    Some(format!("aptix apply --dialect {dialect}"))
}

/// Prints a JSON object, unless there was one already: work that was broken off may still come to its end.
pub(super) fn print_object(object: &impl Serialize) -> Exit {
    if ANSWERED.swap(true, Ordering::SeqCst) {
        return Exit::Done;
    }
    match serde_json::to_string_pretty(object) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => {
            say(&format!("error: cannot print the answer: {error}"));
            Exit::Environment
        }
    }
}

/// Prints the diff and one line a file to stdout, or what is wrong to stderr.
fn print_text(shown: &Shown<'_>) -> Exit {
    let mut head = String::new();
    if let Some(stored) = shown.stored.filter(|stored| !stored.ids.is_empty()) {
        let _ = write!(head, "batch {} {}", stored.id, stored.state);
        let _ = match &shown.batch.label {
            Some(label) => writeln!(head, " {}", Quoted(label)),
            None => writeln!(head),
        };
    }
    let of_report = shown.outcome.ok().flatten().map_or(&[][..], |report| &report.warnings);
    for warning in shown.warnings.iter().chain(of_report) {
        say(&format!("warning: {}: {}", warning.code, Visible(&warning.message)));
    }
    match shown.outcome {
        Ok(Some(report)) => print(&(head + &text_of(report, shown.dry_run, shown.paths))),
        Ok(None) => {
            show_diff(&mut head, &shown.batch.files.iter().flat_map(described).collect::<Vec<_>>());
            print(&head)
        }
        Err(refusal) => {
            print(&head);
            refusal.failures.iter().for_each(|failure| say(text_of_failure(failure).trim_end()));
            Exit::Refused
        }
    }
}

fn text_of(report: &Report, dry_run: bool, paths: Paths) -> String {
    let mut text = String::new();
    let changed = report.files.iter().filter(|file| file.status != FileStatus::Unchanged);
    let names: Vec<_> = changed.map(|file| paths.name(&file.path, &file.doc_path)).collect();
    match paths {
        Paths::InRoot => show_diff(&mut text, report.diff.as_bytes()),
        Paths::WithRoot => show_diff_under(&mut text, report.diff.as_bytes(), &names),
    }
    let would = if dry_run { "would be " } else { "" };
    for file in &report.files {
        let _ = write!(text, "{would}{} {}", file.status.word(), Visible(&paths.name(&file.path, &file.doc_path)));
        if let Some(path) = &file.renamed_to {
            let _ = write!(text, " to {}", Visible(&paths.name(path, &file.doc_path)));
        }
        text.push('\n');
        add_notes(&mut text, file);
    }
    text
}

fn text_of_failure(failure: &Failure) -> String {
    let style = AnsiColor::Red.on_default().bold();
    let mut text = format!("{style}error:{style:#} {}\n", ShownLine(&failure.to_string()));
    for excerpt in &failure.nearest {
        for (number, line) in (excerpt.start_line..).zip(excerpt.text.split('\n')) {
            let _ = writeln!(text, "  {number:>6} | {}", ShownLine(line));
        }
    }
    if let Some(digest) = failure.current_sha256 {
        let _ = writeln!(text, "  the file's SHA-256 is {digest}");
    }
    if failure.next_action.is_some() {
        text.push_str("  with --json comes the document corrected, ready to be sent\n");
    }
    if let Some(hint) = &failure.hint {
        let _ = writeln!(text, "  hint: {}", ShownLine(hint));
    }
    text
}

/// Prints to stdout, without colour where it is not wanted. Somebody who stopped listening is not an error.
pub(super) fn print(text: &str) -> Exit {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    let mut shown = anstream::AutoStream::new(Vec::new(), choice);
    match shown.write_all(text.as_bytes()) {
        Ok(()) => print_bytes(&shown.into_inner()),
        failed => printed(failed),
    }
}

/// Prints a file's bytes to stdout, as they are.
pub(super) fn print_bytes(bytes: &[u8]) -> Exit {
    let mut stdout = std::io::stdout().lock();
    printed(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

fn printed(written: std::io::Result<()>) -> Exit {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            Exit::Environment
        }
        _ => Exit::Done,
    }
}

/// Prints a line to stderr.
pub(super) fn say(text: &str) {
    progress::make_way();
    // There is nowhere left to complain to.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}
