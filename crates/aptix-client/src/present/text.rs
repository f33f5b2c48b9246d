//! What became of a batch as text for people, in which nothing can hide, with the colours of a terminal.

use std::collections::HashMap;
use std::fmt::Write as _;

use anstyle::AnsiColor;
use aptix_model::batch_event::EventFacts;
use aptix_model::failure::{Failure, Visible};
use aptix_model::report::Report;
use aptix_model::tools::result::BatchResult;
use aptix_model::tools::result::file_object::status;

use super::diff::{ShownLine, add_notes, show_diff};
use super::untrusted::Quoted;
use super::utc::utc;
use super::view::{BatchView, Subject, state_for_people};

/// What there is to see of a batch: what it takes back, its diff and a line for each file; what it asks for, while nothing has
/// become of it. Of a record also what it is known as, and why it was refused, at the change that was. The warnings, and why a
/// command was refused, have lines of their own.
#[must_use]
pub fn batch_text(view: &BatchView<'_>) -> String {
    let mut text = if view.is_record { head(view) } else { String::new() };
    view.steps.iter().for_each(|step| add_step(&mut text, step));
    if view.is_record || view.outcome.is_ok() {
        add_undone(&mut text, view);
    }
    match view.outcome {
        Ok(Some(report)) => add_report(&mut text, report, view),
        Ok(None) => {
            show_diff(&mut text, view.subject.asked().as_bytes());
            let result = view.result();
            if !result.state().is_open() {
                add_files(&mut text, &result);
            }
        }
        Err(_) if view.is_record => {
            let result = view.result();
            add_tried(&mut text, view.subject, &result);
            add_files(&mut text, &result);
        }
        Err(_) => {}
    }
    text
}

/// What a batch is known as, its state and its label: a line, if it is kept anywhere.
#[must_use]
pub fn head(view: &BatchView<'_>) -> String {
    let Some(stored) = &view.stored else { return String::new() };
    let label = view.subject.label().map_or_else(String::new, |label| format!(" {}", Quoted(label)));
    format!("batch {} {}{label}\n", stored.id, state_for_people(stored.state))
}

/// A line that says what was done to a batch, when, by whom, and why.
pub(super) fn add_step(text: &mut String, step: &EventFacts) {
    let EventFacts { kind, at, actor, reason, .. } = step;
    let by = by(actor.kind.word(), actor.name.as_deref(), reason.as_deref());
    let _ = writeln!(text, "{}  {}{by}", utc(at.0), kind.word().to_ascii_lowercase());
}

/// How many more there are than what is named.
pub(crate) fn and_more(more: usize) -> String {
    if more > 0 { format!(" and {more} more") } else { String::new() }
}

/// Who took a step, and why, as it follows a word for the step.
pub(crate) fn by(actor: &str, name: Option<&str>, reason: Option<&str>) -> String {
    let mut text = format!(" by {}", actor.to_ascii_lowercase());
    if let Some(name) = name {
        let _ = write!(text, " {}", Quoted(name));
    }
    if let Some(reason) = reason {
        let _ = write!(text, ": {}", Quoted(reason));
    }
    text
}

/// A line that names the batch that is taken back.
fn add_undone(text: &mut String, view: &BatchView<'_>) {
    let Some(undone) = &view.undoes else { return };
    let word = if view.dry_run { "would undo" } else { "undid" };
    let label = undone.label.as_ref().map_or_else(String::new, |label| format!(" {}", Quoted(label)));
    let _ = writeln!(text, "{word} batch {}{label}", Visible(&undone.id));
}

fn add_report(text: &mut String, report: &Report, view: &BatchView<'_>) {
    show_diff(text, report.diff.as_bytes());
    for file in &report.files {
        let would = if view.dry_run && file.status.is_applied() { "would be " } else { "" };
        let _ = write!(text, "{would}{} {}", file.status.word(), Visible(&file.path));
        if let Some(path) = &file.renamed_to {
            let _ = write!(text, " to {}", Visible(path));
        }
        text.push('\n');
        add_notes(text, file);
    }
    if view.is_record {
        report.failures.iter().for_each(|failure| text.push_str(&failure_text(failure)));
    }
}

/// A line for each file of a batch that changed none.
fn add_files(text: &mut String, result: &BatchResult<'_>) {
    let failed = result.failed();
    for (index, file) in result.words.files.iter().enumerate() {
        let Some(asked) = &file.asked else { continue };
        let word = status(result, &failed, index).replace('_', " ");
        let _ = writeln!(text, "{word} {}", Visible(asked.path));
    }
}

/// What a batch asked for, with each failure below the change that it names, or below the file, or at the end.
fn add_tried(text: &mut String, subject: Subject<'_>, result: &BatchResult<'_>) {
    let files = &result.words.files;
    let place = |failure: &Failure| {
        let index = result.file_of(failure)?;
        let file = files.get(index).filter(|file| file.asked.is_some())?;
        Some((index, result.change_of(failure).filter(|change| *change < file.change_count)))
    };
    let mut by_place: HashMap<_, Vec<&Failure>> = HashMap::new();
    result.failures().iter().for_each(|failure| by_place.entry(place(failure)).or_default().push(failure));
    let mut add = |text: &mut String, place: Option<(usize, Option<usize>)>| {
        let here = by_place.remove(&place).unwrap_or_default();
        here.into_iter().for_each(|failure| text.push_str(&failure_text(failure)));
    };
    for (index, parts) in subject.parts().iter().enumerate() {
        for (at, part) in parts.iter().enumerate() {
            show_diff(text, part);
            add(text, Some((index, at.checked_sub(1))));
        }
    }
    add(text, None);
}

/// Why a batch was refused: the message, the nearest lines of the file, the hint.
#[must_use]
pub fn failure_text(failure: &Failure) -> String {
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
