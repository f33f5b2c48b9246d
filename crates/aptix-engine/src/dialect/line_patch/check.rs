//! The changes of a line patch: numbers, lines, order, overlap (TUL-002 5 and 6).

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Change, LinePatch, Operation};
use aptix_model::digest::Sha256Digest;
use aptix_model::lines::{LineAnchor, LineError, LineNumber, LineRange};

use crate::checking::site::{Keys, Site};
use crate::checking::violation::Violation;
use crate::target::Base;
use crate::text::line_changes::LineChange;

/// Checks a line patch: the stated digest, and its changes.
pub(crate) fn check<'a>(patch: &'a LinePatch, site: &mut Site<'_, 'a>) -> Option<(Base, Vec<LineChange<'a>>)> {
    let digest = patch.original_sha256.parse::<Sha256Digest>();
    let digest = digest.map_err(|error| site.report("originalSha256", || Violation::Digest(error))).ok();
    let lines = check_changes(&patch.changes, site);
    Some((Base::MustMatch(digest?), lines?))
}

/// Checks changes one by one and against each other; `None` when anything is wrong.
fn check_changes<'a>(changes: &'a [Change], site: &mut Site<'_, 'a>) -> Option<Vec<LineChange<'a>>> {
    if changes.is_empty() {
        site.report("changes", || Violation::Empty { what: "change" });
        return None;
    }
    let mut valid = Vec::with_capacity(changes.len());
    let mut before = Before::default();
    let mut keys = Keys::default();
    for (index, change) in changes.iter().enumerate() {
        site.change = Some(index);
        site.check_text("changeKey", change.key.as_deref());
        keys.check("changeKey", index, change.key.as_deref(), site);
        site.check_text("description", change.description.as_deref());
        if let Some((change, removed)) = check_one(index, &change.operation, site) {
            before.check(&change, removed, site);
            valid.push(change);
        }
    }
    site.change = None;
    // An insert after a line may be listed before a change of that very line; what counts from here on is the place.
    // Sorting needs room of its own, so it is not done for nothing.
    if !valid.is_sorted_by_key(LineChange::above) {
        valid.sort_by_key(LineChange::above);
    }
    (valid.len() == changes.len()).then_some(valid)
}

/// Checks one change by itself; `None` when its place is not known. Also returns how many lines it removes: while
/// anything is wrong that need not be how many it expects.
fn check_one<'a>(index: usize, operation: &'a Operation, site: &mut Site<'_, 'a>) -> Option<(LineChange<'a>, usize)> {
    match operation {
        Operation::Insert { after_line, new_lines } => {
            if new_lines.is_empty() {
                site.report("newLines", || Violation::EmptyNewLines);
            }
            check_lines("newLines", new_lines, true, site);
            let anchor = located("afterLine", LineAnchor::new(*after_line), site)?;
            Some((LineChange::new(index, anchor.get(), &[], new_lines), 0))
        }
        Operation::Replace { start_line, end_line, expected_original_lines, new_lines } => {
            if new_lines.is_empty() {
                site.report("newLines", || Violation::UseDelete);
            }
            check_lines("newLines", new_lines, true, site);
            check_range(index, (*start_line, *end_line), expected_original_lines, new_lines, site)
        }
        Operation::Delete { start_line, end_line, expected_original_lines } => {
            check_range(index, (*start_line, *end_line), expected_original_lines, &[], site)
        }
    }
}

fn check_range<'a>(
    index: usize,
    (start, end): (i64, i64),
    expected: &'a [String],
    new_lines: &'a [String],
    site: &mut Site<'_, 'a>,
) -> Option<(LineChange<'a>, usize)> {
    check_lines("expectedOriginalLines", expected, false, site);
    let start = located("startLine", LineNumber::new(start), site);
    let end = located("endLine", LineNumber::new(end), site);
    let range = located("endLine", LineRange::new(start?, end?), site)?;
    let removed = range.count();
    if expected.len() != removed {
        site.report("expectedOriginalLines", || Violation::ExpectedCount { range: removed, found: expected.len() });
    }
    Some((LineChange::new(index, range.start().get() - 1, expected, new_lines), removed))
}

fn located<T>(field: &str, number: Result<T, LineError>, site: &mut Site<'_, '_>) -> Option<T> {
    number.map_err(|error| site.report(field, || Violation::Line(error))).ok()
}

fn check_lines(field: &str, lines: &[String], is_new: bool, site: &mut Site<'_, '_>) {
    for (index, line) in lines.iter().enumerate() {
        site.check_line(|| format!("{field}[{index}]"), is_new, line);
    }
}

/// The changes seen so far, as far as a later one can be out of order with them or overlap them.
#[derive(Default)]
struct Before {
    /// Where the change before is listed: its `afterLine` or `startLine`, and its position.
    last: Option<(usize, usize)>,
    /// The last replaced or deleted range: first and last line, and its position.
    range: Option<(usize, usize, usize)>,
    /// The last insert: its `afterLine` and its position.
    insert: Option<(usize, usize)>,
}

impl Before {
    fn check(&mut self, change: &LineChange<'_>, removed: usize, site: &mut Site<'_, '_>) {
        let is_insert = removed == 0;
        let line = if is_insert { change.above() } else { change.above() + 1 };
        let field = if is_insert { "afterLine" } else { "startLine" };
        let last_line = change.above() + removed;
        if let Some((other_line, other)) = self.last.filter(|(other_line, _)| *other_line > line) {
            site.report(field, || Violation::Order { line, other, other_line });
            // One step back is one violation: what follows is measured against this change.
            *self = Self::default();
        } else if let Some((first, last, other)) =
            self.range.filter(|(_, last, _)| if is_insert { line < *last } else { line <= *last })
        {
            site.report(field, || Violation::Overlap { line, other, first, last });
        } else if let Some((_, other)) =
            self.insert.filter(|(after, _)| !is_insert && *after == line && last_line > line)
        {
            site.report(field, || Violation::InsertInside { line, other, last: last_line });
        }
        self.last = Some((line, change.index()));
        if is_insert {
            self.insert = Some((line, change.index()));
        } else if self.range.is_none_or(|(_, last, _)| last < last_line) {
            self.range = Some((line, last_line, change.index()));
        }
    }
}
