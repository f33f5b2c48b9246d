//! The changes of one hunk made at its place: byte by byte, or with the line endings that the file has there.

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Hunk, LineKind};
use aptix_model::report::{Tier, Warning};

use super::place::{Place, Sides, without_end};
use crate::findings::warning;
use crate::text::edit::{TextEdit, slice};
use crate::text::lines::{Terminator, Text};

/// Makes the changes of one hunk at its place.
pub(super) fn splice(text: &Text<'_>, sides: &Sides<'_>, place: &Place, edit: &mut TextEdit) {
    if place.tier == Tier::Exact {
        return splice_bytes(sides.hunk, place.range.start, edit);
    }
    if place.range.end == text.bytes().len() && text.is_unterminated() {
        splice_end(text, sides.hunk, &place.range, edit);
    } else {
        splice_lines(text, sides.hunk, &place.range, edit);
    }
}

fn splice_bytes(hunk: &Hunk, start: usize, edit: &mut TextEdit) {
    let mut at = start;
    for line in &hunk.lines {
        match line.kind {
            LineKind::Context => at += line.bytes.len(),
            LineKind::Removed => {
                edit.begin(at);
                at += line.bytes.len();
                edit.remove_to(at);
            }
            LineKind::Added => {
                edit.begin(at);
                edit.insert(&line.bytes);
                edit.remove_to(at);
            }
        }
    }
}

/// The ends that new lines get: those of the lines whose place they take, one by one, then that of the line above.
struct Ends {
    above: Terminator,
    gone: Vec<Terminator>,
    used: usize,
}

impl Ends {
    fn new(text: &Text<'_>, start: usize) -> Self {
        let above = if start <= text.start() {
            text.first_terminator()
        } else {
            Terminator::at_end_of(slice(text.bytes(), 0..start))
        };
        Self { above, gone: Vec::new(), used: 0 }
    }

    fn keep(&mut self, end: Terminator) {
        *self = Self { above: end, gone: Vec::new(), used: 0 };
    }

    fn remove(&mut self, end: Terminator) {
        self.gone.push(end);
        self.above = end;
    }

    fn next(&mut self) -> Terminator {
        let end = self.gone.get(self.used).copied().unwrap_or(self.above);
        self.used += 1;
        end
    }
}

/// Makes the changes of a hunk whose lines are the file's except for their ends; all of them have one.
fn splice_lines(text: &Text<'_>, hunk: &Hunk, range: &Range<usize>, edit: &mut TextEdit) {
    let mut ends = Ends::new(text, range.start);
    let mut cursor = text.cursor_at(range.start, 0);
    for line in &hunk.lines {
        let start = cursor.at();
        if line.kind == LineKind::Added {
            edit.begin(start);
            edit.insert(without_end(&line.bytes));
            edit.insert(ends.next().as_bytes());
            edit.remove_to(start);
            continue;
        }
        cursor.next();
        let end = Terminator::at_end_of(slice(text.bytes(), start..cursor.at()));
        if line.kind == LineKind::Context {
            ends.keep(end);
        } else {
            ends.remove(end);
            edit.begin(start);
            edit.remove_to(cursor.at());
        }
    }
}

/// The same where the file ends with an unterminated line: its end stays as it was, whatever lines are added or removed.
fn splice_end(text: &Text<'_>, hunk: &Hunk, range: &Range<usize>, edit: &mut TextEdit) {
    let bytes = text.bytes();
    let mut ends = Ends::new(text, range.start);
    let mut cursor = text.cursor_at(range.start, 0);
    let mut new = Vec::new();
    // A hunk without context is never matched with other line ends, so that at least one line is left.
    let mut last = Terminator::Lf;
    for line in &hunk.lines {
        let (content, end) = if line.kind == LineKind::Added {
            (without_end(&line.bytes), ends.next())
        } else {
            let start = cursor.at();
            let content = cursor.next().unwrap_or_default();
            let is_last = cursor.at() == bytes.len();
            let found = Terminator::at_end_of(slice(bytes, start..cursor.at()));
            let end = if is_last { text.last_terminator() } else { found };
            if line.kind == LineKind::Removed {
                ends.remove(end);
                continue;
            }
            ends.keep(end);
            (content, end)
        };
        new.extend_from_slice(content);
        new.extend_from_slice(end.as_bytes());
        last = end;
    }
    new.truncate(new.len().saturating_sub(last.as_bytes().len()));
    edit.begin(range.start);
    edit.insert(&new);
    edit.remove_to(bytes.len());
}

/// The warning about lines of a diff that end differently than those of the file.
pub(super) fn ends_kept() -> Warning {
    let message = "lines of the diff end differently than those of the file, which keeps its line endings";
    warning("LINE_ENDINGS_KEPT", message)
}
