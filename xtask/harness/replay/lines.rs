//! Files as lines, how two of them differ, and whether a difference is one of lines only.

use similar::{Algorithm, DiffTag, capture_diff_slices};
use std::ops::Range;

pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";

/// A line with what ends it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Line<'a> {
    pub(crate) whole: &'a [u8],
}

impl<'a> Line<'a> {
    pub(crate) fn text(self) -> &'a [u8] {
        let head = self.whole.strip_suffix(b"\n").unwrap_or(self.whole);
        if head.len() < self.whole.len() { head.strip_suffix(b"\r").unwrap_or(head) } else { head }
    }

    pub(crate) fn end(self) -> &'a [u8] {
        &self.whole[self.text().len()..]
    }
}

pub(crate) fn lines(bytes: &[u8]) -> Vec<Line<'_>> {
    bytes.split_inclusive(|byte| *byte == b'\n').map(|whole| Line { whole }).collect()
}

/// Lines of the old text, by position, and the lines of the new text that take their place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Change {
    pub(crate) old: Range<usize>,
    pub(crate) new: Range<usize>,
}

/// The changes that make one text of another, top to bottom.
pub(crate) fn changes(before: &[Line<'_>], after: &[Line<'_>]) -> Vec<Change> {
    let ops = capture_diff_slices(Algorithm::Myers, before, after);
    ops.iter()
        .filter(|op| op.tag() != DiffTag::Equal)
        .map(|op| Change { old: op.old_range(), new: op.new_range() })
        .collect()
}

/// Why a change cannot be expressed in lines that get the terminators of their neighbours; `None` if it can.
pub(crate) fn beyond_lines(before: &[Line<'_>], after: &[Line<'_>], changes: &[Change]) -> Option<&'static str> {
    let starts = |lines: &[Line<'_>]| lines.first().is_some_and(|line| line.whole.starts_with(BOM));
    if starts(before) != starts(after) {
        return Some("the byte order mark changes");
    }
    let is_open = |lines: &[Line<'_>]| lines.last().is_some_and(|line| line.end().is_empty());
    if is_open(before) != is_open(after) {
        return Some("the final newline changes");
    }
    let count = before.len();
    let end_of = |index: usize| match before[index].end() {
        // An unterminated last line counts as ended like the one above it.
        b"" if index > 0 => before[index - 1].end(),
        b"" => b"\n",
        end => end,
    };
    for change in changes {
        let removed = change.old.len();
        for (position, new) in after[change.new.clone()].iter().enumerate() {
            if memchr::memchr(b'\r', new.text()).is_some() {
                return Some("a new line has a carriage return in it");
            }
            let expected = match (removed, change.old.start) {
                (0, 0) if count == 0 => b"\n",
                (0, 0) => end_of(0),
                (0, start) => end_of(start - 1),
                (_, start) => end_of(start + position.min(removed - 1)),
            };
            if new.end() != expected && !new.end().is_empty() {
                return Some("line terminators change");
            }
        }
    }
    None
}
