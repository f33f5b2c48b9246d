//! The one canonical edit: sorted, disjoint replacements of byte ranges of a base.
//!
//! Replacements that touch are one. The new text of all of them lies in one buffer, so that an edit of
//! a hundred thousand lines is two allocations.

use alloc::vec::Vec;
use core::ops::Range;

/// Sorted, disjoint replacements of byte ranges of a base.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct TextEdit {
    texts: Vec<u8>,
    cuts: Vec<Cut>,
}

/// One replacement; its text begins where that of the cut before ends.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Cut {
    start: usize,
    end: usize,
    text_end: usize,
}

/// Why replacements are no edit.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("replacements must be sorted and disjoint: bytes {}..{} come after a replacement that ends at byte {end}", range.start, range.end)]
pub struct OverlapError {
    /// The range that is reversed, or starts before the one listed before it ends.
    pub range: Range<usize>,
    /// Where the replacement listed before ends.
    pub end: usize,
}

impl TextEdit {
    /// An edit without replacements yet, with room for so many, and for so many bytes of new text.
    pub(crate) fn with_capacity(replacements: usize, text: usize) -> Self {
        Self { texts: Vec::with_capacity(text), cuts: Vec::with_capacity(replacements) }
    }

    /// Puts replacements together, each a byte range of the base and the text that takes its place.
    ///
    /// # Errors
    /// When a range is reversed, or starts before the one listed before it ends.
    pub fn new<T: AsRef<[u8]>>(
        replacements: impl IntoIterator<Item = (Range<usize>, T)>,
    ) -> Result<Self, OverlapError> {
        let mut edit = Self::default();
        for (range, text) in replacements {
            let end = edit.end().unwrap_or(0);
            if range.start < end || range.end < range.start {
                return Err(OverlapError { range, end });
            }
            edit.begin(range.start);
            edit.insert(text.as_ref());
            edit.remove_to(range.end);
        }
        edit.drop_empty_end();
        Ok(edit)
    }

    /// The replacements, top to bottom. No two of them touch.
    pub fn replacements(&self) -> impl Iterator<Item = (Range<usize>, &[u8])> {
        let mut text_start = 0;
        self.cuts.iter().map(move |cut| {
            let text = slice(&self.texts, text_start..cut.text_end);
            text_start = cut.text_end;
            (cut.start..cut.end, text)
        })
    }

    /// The replacements, with ranges that end where the base does.
    fn within<'e>(&'e self, base: &[u8]) -> impl Iterator<Item = (Range<usize>, &'e [u8])> + use<'e> {
        let end = base.len();
        self.replacements().map(move |(range, text)| (range.start.min(end)..range.end.min(end), text))
    }

    /// Whether the replacements are sorted and disjoint, lie in a base of so many bytes, and share out all of their text. An
    /// edit of which this is false is a defect of what made it.
    #[must_use]
    pub fn fits(&self, base: usize) -> bool {
        let mut above = (0, 0);
        let is_next = |cut: &Cut| {
            let (end, text_end) = core::mem::replace(&mut above, (cut.end, cut.text_end));
            end <= cut.start && cut.start <= cut.end && text_end <= cut.text_end
        };
        let is_sorted = self.cuts.iter().all(is_next);
        is_sorted && above.0 <= base && above.1 == self.texts.len()
    }

    /// How many bytes the base has once every replacement is made, if it has so many now.
    #[must_use]
    pub fn length_after(&self, base: usize) -> usize {
        let removed: usize = self.cuts.iter().map(|cut| cut.end.min(base) - cut.start.min(base)).sum();
        base - removed + self.texts.len()
    }

    /// Whether all new text is ASCII.
    pub(crate) const fn is_ascii(&self) -> bool {
        self.texts.as_slice().is_ascii()
    }

    /// Where the first replacement starts.
    #[must_use]
    pub fn start(&self) -> Option<usize> {
        self.cuts.first().map(|cut| cut.start)
    }

    /// The base with every replacement made, in one pass. Ranges beyond the base count as empty ones at its end.
    #[must_use]
    pub fn apply(&self, base: &[u8]) -> Vec<u8> {
        let removed: usize = self.cuts.iter().map(|cut| cut.end - cut.start).sum();
        let mut result = Vec::with_capacity((base.len() + self.texts.len()).saturating_sub(removed));
        let mut kept = 0;
        for (range, text) in self.replacements() {
            result.extend_from_slice(slice(base, kept..range.start));
            result.extend_from_slice(text);
            kept = range.end;
        }
        result.extend_from_slice(slice(base, kept..base.len()));
        result
    }

    /// Whether applying to `base` gives `base` again. Stops at the first difference.
    #[must_use]
    pub fn is_identity(&self, base: &[u8]) -> bool {
        let (mut kept, mut at) = (0, 0);
        let rest = (base.len()..base.len(), &[][..]);
        for (range, text) in self.within(base).chain([rest]) {
            let start = at + (range.start - kept);
            let end = start + text.len();
            // Kept bytes that have not moved need no look.
            let is_kept = at == kept || slice(base, at..start) == slice(base, kept..range.start);
            if !is_kept || slice(base, start..end) != text {
                return false;
            }
            (kept, at) = (range.end, end);
        }
        at == base.len()
    }

    /// The edit that turns the result of this one back into `base`.
    #[must_use]
    pub fn invert(&self, base: &[u8]) -> Self {
        let mut inverse = Self::default();
        let (mut kept, mut at) = (0, 0);
        for (range, text) in self.within(base) {
            at += range.start - kept;
            inverse.begin(at);
            inverse.insert(slice(base, range.clone()));
            at += text.len();
            inverse.remove_to(at);
            kept = range.end;
        }
        inverse
    }

    /// Both edits as one of this edit's base; `later` speaks of this edit's result.
    #[must_use]
    pub fn then(&self, later: &Self) -> Self {
        let mut pieces = self.pieces();
        let mut folded = Self::default();
        folded.begin(0);
        let mut at = 0;
        for (range, text) in later.replacements() {
            take(&mut pieces, range.start - at, |piece| folded.push(piece));
            take(&mut pieces, range.end - range.start, |_| {});
            folded.insert(text);
            at = range.end;
        }
        pieces.into_iter().rev().for_each(|piece| folded.push(piece));
        folded.drop_empty_end();
        folded
    }

    /// The byte range of the last replacement.
    pub(crate) fn last(&self) -> Option<Range<usize>> {
        self.cuts.last().map(|cut| cut.start..cut.end)
    }

    /// Where the last replacement ends.
    pub(crate) fn end(&self) -> Option<usize> {
        self.cuts.last().map(|cut| cut.end)
    }

    /// Starts a replacement at `start`, which is not before [`TextEdit::end`]; at it, the last one continues.
    pub(crate) fn begin(&mut self, start: usize) {
        if self.end() != Some(start) {
            self.drop_empty_end();
            self.cuts.push(Cut { start, end: start, text_end: self.texts.len() });
        }
    }

    /// Adds to the text of the replacement that was begun last; it counts from [`TextEdit::remove_to`] on.
    pub(crate) fn insert(&mut self, text: &[u8]) {
        self.texts.extend_from_slice(text);
    }

    /// Lets the replacement that was begun last, with all text added to it, reach to `end` of the base.
    pub(crate) fn remove_to(&mut self, end: usize) {
        if let Some(cut) = self.cuts.last_mut() {
            *cut = Cut { start: cut.start, end, text_end: self.texts.len() };
        }
    }

    /// The text of the last replacement.
    pub(crate) fn last_text(&self) -> &[u8] {
        let start = self.cuts.iter().rev().nth(1).map_or(0, |cut| cut.text_end);
        slice(&self.texts, start..self.texts.len())
    }

    /// Whether the text of the replacement that was begun last would be the first of the result.
    pub(crate) fn is_at_top(&self) -> bool {
        self.texts.is_empty() && matches!(self.cuts.as_slice(), [Cut { start: 0, .. }])
    }

    /// Shortens the text of the last replacement by `count` bytes, if it has any.
    pub(crate) fn shorten_last(&mut self, count: usize) -> bool {
        let start = self.cuts.iter().rev().nth(1).map_or(0, |cut| cut.text_end);
        let Some(cut) = self.cuts.last_mut().filter(|cut| cut.text_end > start) else { return false };
        cut.text_end = cut.text_end.saturating_sub(count).max(start);
        self.texts.truncate(cut.text_end);
        true
    }

    /// Lets the last replacement reach `count` bytes further up, and makes it one with another that it then touches.
    pub(crate) fn reach_up(&mut self, count: usize) {
        let Some(mut last) = self.cuts.pop() else { return };
        last.start = last.start.saturating_sub(count);
        if let Some(cut) = self.cuts.last_mut().filter(|cut| cut.end >= last.start) {
            *cut = Cut { start: cut.start, ..last };
        } else {
            self.cuts.push(last);
        }
    }

    /// The parts of the result, the last one first. The base may be of any length.
    fn pieces(&self) -> Vec<Piece<'_>> {
        let mut pieces = Vec::with_capacity(2 * self.cuts.len() + 1);
        let mut kept = 0;
        for (range, text) in self.replacements() {
            pieces.push(Piece::Kept(kept..range.start));
            pieces.push(Piece::New(text));
            kept = range.end;
        }
        pieces.push(Piece::Kept(kept..usize::MAX));
        pieces.reverse();
        pieces
    }

    /// Adds a piece of an edited text to a fold.
    fn push(&mut self, piece: Piece<'_>) {
        match piece {
            Piece::New(text) => self.insert(text),
            Piece::Kept(range) => {
                self.remove_to(range.start);
                self.begin(range.end);
            }
        }
    }

    /// Where a place of the base is in the result; one inside a replacement counts as where that starts.
    pub(crate) fn moved(&self, offset: usize) -> usize {
        self.moved_range(&(offset..offset)).start
    }

    /// Where a range of the base is in the result, replacements that reach into it included.
    pub(crate) fn moved_range(&self, range: &Range<usize>) -> Range<usize> {
        let mut moved = range.clone();
        let (mut kept, mut at) = (0, 0);
        for (cut, text) in self.replacements() {
            if cut.start > range.end || (cut.start == range.end && !range.is_empty()) {
                break;
            }
            at += cut.start - kept;
            let after = at + text.len();
            if cut.end <= range.start {
                moved = after + (range.start - cut.end)..after + (range.end - cut.end);
            } else {
                moved.start = if cut.start < range.start { at } else { moved.start };
                moved.end = if cut.end <= range.end { after + (range.end - cut.end) } else { after };
            }
            (kept, at) = (cut.end, after);
        }
        moved
    }

    /// The bytes it takes up, more or less.
    pub(crate) const fn size(&self) -> usize {
        self.texts.len() + self.cuts.len() * size_of::<Cut>()
    }

    /// The edit once everything is in it.
    pub(crate) fn finished(mut self) -> Self {
        self.drop_empty_end();
        self
    }

    /// Forgets a last replacement of nothing by nothing.
    fn drop_empty_end(&mut self) {
        let text_start = self.cuts.iter().rev().nth(1).map_or(0, |cut| cut.text_end);
        if self.cuts.last().is_some_and(|cut| cut.start == cut.end && cut.text_end == text_start) {
            self.cuts.pop();
        }
    }
}

/// A part of a result: kept from the base, or new.
enum Piece<'a> {
    Kept(Range<usize>),
    New(&'a [u8]),
}

impl<'a> Piece<'a> {
    fn len(&self) -> usize {
        match self {
            Self::Kept(range) => range.end - range.start,
            Self::New(text) => text.len(),
        }
    }

    /// The first bytes, at most `count`, and the others.
    fn split(self, count: usize) -> (Self, Self) {
        let count = count.min(self.len());
        match self {
            Self::Kept(range) => {
                let middle = range.start + count;
                (Self::Kept(range.start..middle), Self::Kept(middle..range.end))
            }
            Self::New(text) => {
                let (head, tail) = text.split_at(count);
                (Self::New(head), Self::New(tail))
            }
        }
    }
}

/// Takes `count` bytes of pieces from the end of `pieces`.
fn take<'a>(pieces: &mut Vec<Piece<'a>>, mut count: usize, mut each: impl FnMut(Piece<'a>)) {
    while count > 0 {
        let Some(piece) = pieces.pop() else { return };
        let (head, tail) = piece.split(count);
        count -= head.len();
        if tail.len() > 0 {
            pieces.push(tail);
        }
        each(head);
    }
}

/// The bytes of a range, as far as there are any.
pub(crate) fn slice(base: &[u8], range: Range<usize>) -> &[u8] {
    let (head, _) = base.split_at(range.end.min(base.len()));
    let (_, part) = head.split_at(range.start.min(head.len()));
    part
}
