//! New text converted to the form of its place: its lines end like the file's, are indented like the lines
//! that were found, and lack the blank lines at its edges that the file lacks as well.

use alloc::vec::Vec;
use core::ops::Range;

use memchr::memchr_iter;

use crate::text::edit::slice;
use crate::text::find::{Needle, Place, Shift, Unshiftable, is_blank};
use crate::text::lines::{Terminator, Text};

/// Text that takes the place of a range of bytes.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fitted {
    /// The bytes to remove.
    pub(crate) range: Range<usize>,
    /// The bytes to add.
    pub(crate) bytes: Vec<u8>,
    /// Whether its lines had other terminators.
    pub(crate) has_other_ends: bool,
}

/// Converts text to the form of a place where a needle was found. Lines that the needle and the text have in common at
/// either end stay as they are in the file.
///
/// # Errors
/// When a line cannot be indented like the lines that were found.
pub(crate) fn fit(text: &Text<'_>, needle: &Needle<'_>, place: &Place, new: &str) -> Result<Fitted, Unshiftable> {
    let known = needle.as_lines();
    place.shift.check(known.iter().copied(), new.split('\n').map(str::as_bytes))?;
    let mut old = needle.lines_within(place.dropped).ok_or(Unshiftable::Misplaced)?.to_vec();
    let found = slice(text.bytes(), place.range.clone());
    let is_terminated = found.ends_with(b"\n") && memchr_iter(b'\n', found).count() == old.len();
    if is_terminated {
        old.push(b"");
    }
    let (mut lines, dropped) = trimmed(split(new), place.dropped, is_terminated || place.is_open);
    if place.is_open && lines.len() > 1 && lines.last().is_some_and(|line| line.text.is_empty()) {
        lines.pop();
    }
    let mut range = place.range.clone();
    if let (true, [NewLine { text: "", .. }]) = (place.is_open, lines.as_slice()) {
        // The last line is removed, and the one above it becomes the one without terminator.
        let head = slice(text.bytes(), text.start()..range.start);
        if head.ends_with(b"\n") {
            range.start -= Terminator::at_end_of(head).as_bytes().len();
        }
        return Ok(Fitted { range, ..Fitted::default() });
    }
    let most = old.len().min(lines.len());
    let is_kept = |(old, new): &(&&[u8], &NewLine<'_>)| **old == new.text.as_bytes();
    let head = old.iter().zip(&lines).take(most.saturating_sub(1)).take_while(is_kept).count();
    let tail = old.iter().rev().zip(lines.iter().rev()).take(most - head).take_while(is_kept).count();
    let (start, end) = (nth_start(found, head), nth_start(found, old.len() - tail));
    range.end = if tail > 0 { range.start + end } else { range.end };
    range.start += start;
    // Behind the end of a line, text continues that line; in the place of a blank one, it begins one.
    let above = slice(text.bytes(), 0..place.range.start);
    let begins_line = place.range.start <= text.start() || above.ends_with(b"\n");
    let begins_indented = begins_line || old.first().is_some_and(|line| !is_blank(line));
    let mut fitted = Fitted { bytes: Vec::with_capacity(new.len()), range: range.clone(), has_other_ends: false };
    let mut ends = Ends::of(text, range);
    let last = lines.len() - 1;
    for (position, line) in lines.iter().enumerate().take(lines.len() - tail).skip(head) {
        let is_shifted = !is_blank(line.text.as_bytes()) && (position > 0 || begins_indented);
        let shift = if is_shifted { &place.shift } else { &Shift::None };
        let (indent, rest) = shift.apply(line.text, dropped + position + 1, known)?;
        fitted.bytes.extend_from_slice(indent.as_bytes());
        fitted.bytes.extend_from_slice(rest.as_bytes());
        if position < last {
            fitted.end_line(line, ends.next());
        }
    }
    Ok(fitted)
}

/// Where the line starts above which there are so many; the end, if there are fewer.
fn nth_start(bytes: &[u8], above: usize) -> usize {
    match above.checked_sub(1) {
        None => 0,
        Some(feeds) => memchr_iter(b'\n', bytes).nth(feeds).map_or(bytes.len(), |feed| feed + 1),
    }
}

/// Lines without the blank ones at the edges that the file does not have either, and how many those are above.
fn trimmed<'t>(
    mut lines: Vec<NewLine<'t>>,
    (above, below): (usize, usize),
    keeps_terminator: bool,
) -> (Vec<NewLine<'t>>, usize) {
    let blank = |line: &NewLine<'_>| is_blank(line.text.as_bytes());
    let leading = lines.iter().take((lines.len() - 1).min(above)).take_while(|line| blank(line)).count();
    lines.drain(..leading);
    for _ in 0..below {
        match lines.as_slice() {
            [.., line, last] if keeps_terminator && last.text.is_empty() && blank(line) => {
                lines.remove(lines.len() - 2);
            }
            [_, .., last] if !keeps_terminator && blank(last) => {
                lines.pop();
            }
            _ => break,
        }
    }
    (lines, leading)
}

/// Text in the place of a range, its lines ended like the lines of that range.
pub(crate) fn fit_ends(text: &Text<'_>, range: Range<usize>, new: &str) -> Fitted {
    let lines = split(new);
    let mut ends = Ends::of(text, range.clone());
    let mut fitted = Fitted { bytes: Vec::with_capacity(new.len()), range, has_other_ends: false };
    let last = lines.len() - 1;
    for (position, line) in lines.iter().enumerate() {
        fitted.bytes.extend_from_slice(line.text.as_bytes());
        if position < last {
            fitted.end_line(line, ends.next());
        }
    }
    fitted
}

impl Fitted {
    fn end_line(&mut self, line: &NewLine<'_>, end: Option<Terminator>) {
        let end = end.unwrap_or(line.end);
        self.has_other_ends |= end != line.end;
        self.bytes.extend_from_slice(end.as_bytes());
    }
}

/// A line of new text; the last one is what follows the last terminator, often nothing.
struct NewLine<'t> {
    text: &'t str,
    end: Terminator,
}

fn split(new: &str) -> Vec<NewLine<'_>> {
    let mut lines: Vec<NewLine<'_>> = Vec::with_capacity(1 + memchr_iter(b'\n', new.as_bytes()).count());
    let mut rest = new;
    while let Some((line, below)) = rest.split_once('\n') {
        lines.push(match line.strip_suffix('\r') {
            Some(text) => NewLine { text, end: Terminator::CrLf },
            None => NewLine { text: line, end: Terminator::Lf },
        });
        rest = below;
    }
    lines.push(NewLine { text: rest, end: Terminator::Lf });
    lines
}

/// The terminators of the lines of a range, the last one again and again.
struct Ends<'t> {
    text: &'t Text<'t>,
    at: usize,
    end: usize,
    /// None as long as no line of the file has one.
    last: Option<Terminator>,
}

impl<'t> Ends<'t> {
    fn of(text: &'t Text<'t>, range: Range<usize>) -> Self {
        let bytes = text.bytes();
        let head = slice(bytes, text.start()..range.start);
        let last = match text.next_feed(range.start) {
            // Lines that are only added end like the line above them.
            _ if range.is_empty() && head.ends_with(b"\n") => Some(Terminator::at_end_of(head)),
            Some(feed) => Some(Terminator::at_end_of(slice(bytes, 0..feed + 1))),
            None => (text.lines_above(bytes.len()) > 0).then(|| text.last_terminator()),
        };
        Self { text, at: range.start, end: range.end, last }
    }

    fn next(&mut self) -> Option<Terminator> {
        match self.text.next_feed(self.at).filter(|feed| *feed < self.end) {
            Some(feed) => {
                self.at = feed + 1;
                self.last = Some(Terminator::at_end_of(slice(self.text.bytes(), 0..self.at)));
            }
            None => self.at = self.end,
        }
        self.last
    }
}
