//! Hunks lowered to a [`TextEdit`]: what goes and comes, between lines that stay untouched.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Hunk, LineKind};
use aptix_model::report::{ChangeReport, Tier, Warning};

use super::counts;
use super::made;
use super::place::{Place, Sides, changed, without_end};
use super::settle::{Above, Settled, settle};
use crate::already::Copy;
use crate::digest::Original;
use crate::findings::Findings;
use crate::plan::Work;
use crate::shown::counted;
use crate::text::edit::{TextEdit, slice};
use crate::text::lines::{Terminator, Text};
use crate::text::splice::narrow;

/// Hunks as one edit of bytes.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) edit: TextEdit,
    /// One entry for each hunk.
    pub(super) changes: Vec<ChangeReport>,
    pub(super) warnings: Vec<Warning>,
}

/// Lowers hunks, listed top to bottom, to one edit of a text's bytes. Where it is proven that the text is the one that
/// they were made from, they cannot have been made before.
///
/// # Errors
/// Every hunk without a place, or with one that is not below the hunk above.
pub(super) fn lower(
    text: &Text<'_>,
    hunks: &[Hunk],
    original: &Original<'_>,
    is_proven: bool,
    work: &mut Work<'_>,
) -> Result<Lowered, Findings> {
    let lines = hunks.iter().flat_map(|hunk| hunk.lines.iter().chain(&hunk.surplus));
    let new_bytes: usize = lines.map(|line| line.bytes.len() + 1).sum();
    work.take_room(new_bytes)?;
    let mut findings = Findings::default();
    let mut edit = TextEdit::with_capacity(hunks.len(), new_bytes);
    let mut changes = Vec::with_capacity(hunks.len());
    let mut moved = Moved::default();
    let mut keeps_ends = false;
    let mut notes = Vec::new();
    let mut above = Above::new(text, hunks);
    for (index, hunk) in hunks.iter().enumerate() {
        let settled = settle(text, hunk, &mut above, &edit, work);
        let others = hunks.get(index + 1..).unwrap_or_default();
        match made::check(text, hunk, others, settled, &above, is_proven, work) {
            Ok(Settled { reading, place }) => {
                let sides = Sides::of(&reading.hunk);
                let line = text.lines_above(place.range.start);
                let (lines, context) = changed(sides.hunk);
                let comes = lines.iter().filter(|line| line.kind != LineKind::Removed).count();
                let above_after = above.after(line) + context;
                changes.push(ChangeReport {
                    tier: place.tier,
                    candidates: 1,
                    start_line: narrow(above_after + 1),
                    end_line: narrow(above_after + comes),
                });
                if place.is_elsewhere {
                    moved.add(index, sides.hunk.old_start, line + 1);
                }
                keeps_ends |= place.tier == Tier::Eol;
                splice(text, &sides, &place, &mut edit);
                above.add(sides.hunk, place.range.end);
                notes.extend(reading.note.map(|note| (index, note)));
            }
            Err(failure) => {
                findings.add(|| failure.change(index).current(original.digest(0)));
                above.pass(hunk);
            }
        }
    }
    findings.check()?;
    let mut warnings = counts::warnings(hunks, &notes);
    warnings.extend(moved.warning());
    warnings.extend(keeps_ends.then(ends_kept));
    Ok(Lowered { edit: edit.finished(), changes, warnings })
}

/// Where the new lines of the first hunk stand, if those of every hunk stand where their headers put them, and the old
/// ones do not.
pub(super) fn is_applied(text: &Text<'_>, hunks: &[Hunk]) -> Option<Copy> {
    let mut copies = hunks.iter().map(|hunk| {
        let reading = counts::readings(hunk).into_iter().next()?;
        made::stands_where_stated(text, &Sides::of(&reading.hunk))
    });
    let first = copies.next()??;
    copies.all(|copy| copy.is_some()).then_some(first)
}

/// Hunks that do not stand where their headers say.
#[derive(Default)]
struct Moved {
    first: Option<(usize, i64, usize)>,
    others: usize,
}

impl Moved {
    fn add(&mut self, index: usize, stated: i64, line: usize) {
        if self.first.is_some() {
            self.others += 1;
        } else {
            self.first = Some((index, stated, line));
        }
    }

    fn warning(&self) -> Option<Warning> {
        let (index, stated, line) = self.first?;
        let others = match self.others {
            0 => String::new(),
            others => format!("; {} stand elsewhere too", counted(others, "other hunk")),
        };
        let message = format!(
            "the lines of hunk {} stand at line {line} and nowhere else, and its header says line {stated}{others}",
            index + 1
        );
        Some(Warning { code: "HUNK_OFFSET".to_string(), message, line: None })
    }
}

pub(super) fn ends_kept() -> Warning {
    Warning {
        code: "LINE_ENDINGS_KEPT".to_string(),
        message: "lines of the diff end differently than those of the file, which keeps its line endings".to_string(),
        line: None,
    }
}

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

/// Makes the changes of a hunk whose lines are the file's but for their ends; all of them have one.
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

/// The same where the file ends with an unterminated line: its end stays as it was, whatever lines come or go.
fn splice_end(text: &Text<'_>, hunk: &Hunk, range: &Range<usize>, edit: &mut TextEdit) {
    let bytes = text.bytes();
    let mut ends = Ends::new(text, range.start);
    let mut cursor = text.cursor_at(range.start, 0);
    let mut new = Vec::new();
    // A hunk without context is not matched but for line ends, so that at least one line is left.
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
