//! Line changes lowered to a [`TextEdit`]: numbers to byte ranges, new lines to the file's own terminators.
//!
//! An unterminated file is edited as if its last line ended like the line above it; in the end the last
//! terminator is taken away again, so that unterminated stays unterminated whatever lines are added or removed. If the
//! last line is then blank it does not show as a line: reports do not count it, and a warning reports it.

use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::report::{ChangeReport, Tier, Warning};

use crate::findings::warning;
use crate::shown::counted;
use crate::text::edit::{TextEdit, slice};
use crate::text::lines::{BOM, Cursor, Terminator, Text};
use crate::text::outcome::{change_report, narrow};

/// One change of lines. Insert, replace and delete are all "below `above` lines, `removed` lines are removed and
/// `new_lines` added".
///
/// A patch may have a great many: positions and line numbers take no more room than they need.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineChange<'a> {
    index: u32,
    above: u32,
    /// The removed lines, verbatim.
    pub expected: &'a [String],
    /// The new lines.
    pub new_lines: &'a [String],
}

impl<'a> LineChange<'a> {
    /// Positions and lines that are in memory are far fewer than 2^32, and line numbers end at 2^31.
    pub(crate) fn new(index: usize, above: usize, expected: &'a [String], new_lines: &'a [String]) -> Self {
        Self { index: narrow(index), above: narrow(above), expected, new_lines }
    }

    /// Position of the change in its file patch, from 0.
    #[must_use]
    pub const fn index(&self) -> usize {
        self.index as usize
    }

    /// How many lines lie above.
    #[must_use]
    pub const fn above(&self) -> usize {
        self.above as usize
    }

    /// How many lines are removed: as many as are expected.
    #[must_use]
    pub const fn removed(&self) -> usize {
        self.expected.len()
    }
}

/// Why a change does not fit the file.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum LinePatchError {
    #[error("the change names line {named}, and the file has {}", counted(*lines, "line"))]
    PastEnd { named: usize, lines: usize },
    #[error("line {} is not the expected line", first + index)]
    Expected {
        /// First line of the range.
        first: usize,
        /// Byte offset of that line.
        offset: usize,
        /// How many lines of the range are as expected before this one.
        index: usize,
    },
    #[error("line {line} has {found} bytes, and a line to be edited has at most {limit}")]
    LongLine { line: usize, found: usize, limit: usize },
    #[error("the first new line begins with U+FEFF, and at the top of the file that would become its byte order mark")]
    ByteOrderMark,
}

/// A line patch as one edit of bytes.
#[derive(Debug)]
pub(crate) struct Lowered {
    pub(crate) edit: TextEdit,
    /// One entry for each change, in the patch's order.
    pub(crate) changes: Vec<ChangeReport>,
    /// Whether the last line is blank and, being unterminated, does not show as a line.
    pub(crate) hides_blank_line: bool,
    /// Whether the last line got the terminator that it lacked, because lines are added below it.
    pub(crate) joins_last_line: bool,
}

/// Lowers changes, sorted top to bottom and disjoint, to one edit of the text's bytes.
///
/// # Errors
/// Every change that does not fit, by its position in `changes`.
pub(crate) fn lower(
    text: &Text<'_>,
    changes: &[LineChange<'_>],
    line_limit: usize,
) -> Result<Lowered, Vec<(usize, LinePatchError)>> {
    let mut errors = Vec::new();
    let new_lines = changes.iter().flat_map(|change| change.new_lines);
    let new_bytes = new_lines.map(|line| line.len() + Terminator::CrLf.as_bytes().len());
    let mut edit = TextEdit::with_capacity(changes.len(), new_bytes.fold(0, usize::saturating_add));
    let mut reports = vec![change_report(Tier::Exact, 1, 0, 0); changes.len()];
    let mut cursor = text.cursor();
    let mut end = End::new(text);
    let (mut added, mut removed) = (0, 0);
    for (position, change) in changes.iter().enumerate() {
        if let Err(error) = splice(text, change, line_limit, &mut cursor, &mut edit, &mut end) {
            errors.push((position, error));
        }
        if let Some(report) = reports.get_mut(change.index()) {
            let above = (change.above() + added).saturating_sub(removed);
            *report = change_report(Tier::Exact, 1, above, change.new_lines.len());
        }
        added += change.new_lines.len();
        removed += change.removed();
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let lines = (text.lines() + added).saturating_sub(removed);
    let hides_blank_line = end.restore(text, &mut edit) && lines > 0;
    if hides_blank_line {
        let last = narrow(lines - 1);
        for report in &mut reports {
            report.start_line = report.start_line.min(last + 1);
            report.end_line = report.end_line.min(last);
        }
    }
    Ok(Lowered { edit, changes: reports, hides_blank_line, joins_last_line: end.is_joined })
}

/// The changes that take `changes` back, in the line numbers of their result.
pub(crate) fn undo<'a>(changes: &[LineChange<'a>]) -> Vec<LineChange<'a>> {
    let (mut added, mut removed) = (0, 0);
    let inverse = changes.iter().map(|change| {
        let above = (change.above() + added).saturating_sub(removed);
        added += change.new_lines.len();
        removed += change.removed();
        LineChange::new(change.index(), above, change.new_lines, change.expected)
    });
    inverse.collect()
}

/// The warning about a blank last line that is not visible.
pub(crate) fn final_blank_line() -> Warning {
    let message =
        "the last line is blank and the file has no final newline, so the blank line is not visible as a line";
    warning("FINAL_BLANK_LINE", message)
}

/// Makes one change. After an error the edit is void, and the cursor ready for the next change.
fn splice(
    text: &Text<'_>,
    change: &LineChange<'_>,
    line_limit: usize,
    cursor: &mut Cursor<'_>,
    edit: &mut TextEdit,
    end: &mut End,
) -> Result<(), LinePatchError> {
    let named = change.above() + change.removed();
    cursor.seek(change.above()).map_err(|lines| LinePatchError::PastEnd { named, lines })?;
    let start = cursor.at();
    let mut terminator = if start == text.start() {
        end.above_first
    } else if end.is_below_last(text, start) {
        end.below_last
    } else {
        Terminator::at_end_of(slice(text.bytes(), 0..start))
    };
    edit.begin(start);
    let is_top = edit.is_at_top();
    if end.is_open && end.is_below_last(text, start) {
        edit.insert(end.joint.as_bytes());
        end.is_open = false;
        end.is_joined = !change.new_lines.is_empty();
    }
    let mut new_lines = change.new_lines.iter();
    for (index, expected) in change.expected.iter().enumerate() {
        let Some(found) = cursor.step_over(expected.as_bytes()) else {
            return Err(misfit(cursor, change, start, index, line_limit));
        };
        end.is_open &= found.is_some();
        terminator = found.unwrap_or(end.below_last);
        if let Some(line) = new_lines.next() {
            insert_line(edit, line, terminator);
            end.last_written = terminator;
        }
    }
    for line in new_lines {
        insert_line(edit, line, terminator);
        end.last_written = terminator;
    }
    edit.remove_to(cursor.at());
    let has_mark = |line: &String| line.as_bytes().starts_with(BOM);
    if is_top && change.new_lines.first().is_some_and(has_mark) { Err(LinePatchError::ByteOrderMark) } else { Ok(()) }
}

fn insert_line(edit: &mut TextEdit, line: &str, terminator: Terminator) {
    edit.insert(line.as_bytes());
    // Of a known length each: a copy of an unknown one is a call.
    match terminator {
        Terminator::Lf => edit.insert(b"\n"),
        Terminator::CrLf => edit.insert(b"\r\n"),
    }
}

/// What is wrong with the line below the cursor, which is not the expected one.
fn misfit(
    cursor: &mut Cursor<'_>,
    change: &LineChange<'_>,
    offset: usize,
    index: usize,
    line_limit: usize,
) -> LinePatchError {
    let line = cursor.above() + 1;
    let found = cursor.clone().next().map_or(0, <[u8]>::len);
    let named = change.above() + change.removed();
    if let Err(lines) = cursor.seek(named) {
        LinePatchError::PastEnd { named, lines }
    } else if found > line_limit {
        LinePatchError::LongLine { line, found, limit: line_limit }
    } else {
        LinePatchError::Expected { first: change.above() + 1, offset, index }
    }
}

/// What lines at either end of a file end with, and whether the end of the file still is as it was.
struct End {
    /// The terminator of lines added above line 1.
    above_first: Terminator,
    /// What an unterminated last line would end with, and lines added below it do.
    below_last: Terminator,
    /// The terminator between an unterminated last line and lines added below it.
    joint: Terminator,
    /// Whether the last kept line is an unterminated one.
    is_open: bool,
    /// Whether the last kept line, an unterminated one, got a terminator.
    is_joined: bool,
    /// The terminator of the line written last.
    last_written: Terminator,
}

impl End {
    fn new(text: &Text<'_>) -> Self {
        let below_last = if text.is_unterminated() { text.last_terminator() } else { Terminator::Lf };
        // With a line feed alone, a carriage return that is text would become part of the terminator.
        let joint = if text.bytes().ends_with(b"\r") { Terminator::CrLf } else { below_last };
        Self {
            above_first: text.first_terminator(),
            below_last,
            joint,
            is_open: text.is_unterminated(),
            is_joined: false,
            last_written: below_last,
        }
    }

    fn is_below_last(&self, text: &Text<'_>, offset: usize) -> bool {
        offset == text.bytes().len() && text.is_unterminated()
    }

    /// Takes the last terminator away from an edit that reached the end of an unterminated file. Whether nothing is
    /// then left of the last line.
    fn restore(&self, text: &Text<'_>, edit: &mut TextEdit) -> bool {
        let Some(last) = edit.last().filter(|last| self.is_below_last(text, last.end)) else { return false };
        if !edit.shorten_last(self.last_written.as_bytes().len()) && last.start > text.start() {
            let above = slice(text.bytes(), 0..last.start);
            edit.reach_up(Terminator::at_end_of(above).as_bytes().len());
        }
        match edit.last_text() {
            [.., byte] => *byte == b'\n',
            [] => {
                let kept = edit.last().map_or(0, |last| last.start);
                text.bytes().get(text.start()..kept).is_none_or(|kept| kept.is_empty() || kept.ends_with(b"\n"))
            }
        }
    }
}
