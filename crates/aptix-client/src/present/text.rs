//! What became of a batch as text for people, in which nothing can hide, with the colours of a terminal.

use std::fmt::Write as _;

use anstyle::AnsiColor;
use aptix_model::failure::{Failure, Visible};
use aptix_model::report::{FileStatus, Report};

use super::answer::BatchView;
use super::description::described;
use super::diff::{ShownLine, add_notes, show_diff};
use super::untrusted::Quoted;
use crate::apply::path_style::PathStyle;

/// What there is to see of a batch: what it is known as, its diff, and a line for each file; what it asks for, while nothing
/// has become of it. Neither its warnings nor why it was refused, which have lines of their own.
#[must_use]
pub fn batch_text(view: &BatchView<'_>) -> String {
    let mut text = String::new();
    if let Some(stored) = view.stored.filter(|stored| !stored.ids.is_empty()) {
        let _ = write!(text, "batch {} {}", stored.id, stored.state);
        let _ = match &view.batch.label {
            Some(label) => writeln!(text, " {}", Quoted(label)),
            None => writeln!(text),
        };
    }
    match view.outcome {
        Ok(Some(report)) => add_report(&mut text, report, view),
        Ok(None) => show_diff(&mut text, &view.batch.files.iter().flat_map(described).collect::<Vec<_>>(), &[""; 0]),
        Err(_) => {}
    }
    text
}

fn add_report(text: &mut String, report: &Report, &BatchView { dry_run, paths, .. }: &BatchView<'_>) {
    let changed =
        report.files.iter().filter(|file| file.status != FileStatus::Unchanged && paths == PathStyle::WithRoot);
    let names: Vec<_> = changed.map(|file| paths.name(&file.path, &file.doc_path)).collect();
    show_diff(text, report.diff.as_bytes(), &names);
    let would = if dry_run { "would be " } else { "" };
    for file in &report.files {
        let _ = write!(text, "{would}{} {}", file.status.word(), Visible(&paths.name(&file.path, &file.doc_path)));
        if let Some(path) = &file.renamed_to {
            let _ = write!(text, " to {}", Visible(&paths.name(path, &file.doc_path)));
        }
        text.push('\n');
        add_notes(text, file);
    }
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
