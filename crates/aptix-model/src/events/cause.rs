//! Why something was refused, in a log: codes, places and names, and no word of a document or a file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::trace::shown;
use crate::failure::Failure;
use crate::reason::Reason;

/// Failures that one line names; it counts all.
const NAMED: usize = 20;

/// The failures, each with its place, its reason, and what failed validation.
#[must_use]
pub fn causes(failures: &[Failure]) -> String {
    let named: Vec<_> = failures.iter().take(NAMED).map(cause).collect();
    named.join("; ")
}

/// The failure that is to blame for a file: its own first one, else one of the whole batch.
pub(super) fn about(failures: &[Failure], file: usize) -> Option<&Failure> {
    let of = |index: Option<usize>| failures.iter().find(move |failure| failure.file_index == index);
    of(Some(file)).or_else(|| of(None))
}

fn cause(failure: &Failure) -> String {
    let mut places: Vec<String> = Vec::new();
    places.extend(failure.doc_path.as_deref().or(failure.path.as_deref()).map(shown));
    // People count from 1, as in messages.
    places.extend(failure.change_index.map(|change| format!("change {}", change + 1)));
    places.extend(failure.line.map(|line| format!("line {line}")));
    let place = if places.is_empty() { String::new() } else { format!("{}: ", places.join(", ")) };
    let detail = failure.detail.map(|detail| format!(" ({detail})")).unwrap_or_default();
    let field = failure.field.as_deref().map(|field| format!(" in {}", shown(field))).unwrap_or_default();
    let why = if is_of_the_system(failure.reason) { format!(": {}", shown(&failure.message)) } else { String::new() };
    format!("{place}{}{detail}{field}{why}", failure.reason.code())
}

/// Whether the message of every such failure is about the machine: paths and errors of the system. Others may quote.
const fn is_of_the_system(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::DirectoryCreateFailed
            | Reason::NeedsOperator
            | Reason::ReadFailed
            | Reason::ResourceExhausted
            | Reason::Unavailable
            | Reason::WorkspaceBusy
            | Reason::WriteFailed
    )
}
