//! The passages of a large file that a batch changed, before and after it, with whole lines around them: kept in the place of
//! the file where they are much smaller.
//!
//! The text of a passage after the batch occurs once in the file that the batch left, so that it can be found again in a file
//! that was edited elsewhere since. Encoded, each number takes eight bytes, little-endian: the bytes of the file after, the
//! number of passages, and of each its offset after, the lines between it and the passage above, and the lengths of its texts
//! before and after; then those texts, in the same order.

use std::ops::Range;

use aptix_engine::text::edit::TextEdit;
use memchr::memmem::Finder;
use memchr::{memchr, memchr_iter, memrchr};

use super::edited::{NUMBER, number};

/// Numbers of one passage.
const NUMBERS: usize = 4;
/// Lines around a change: as many as a diff shows or, where the passage occurs more than once with them, or with those on one
/// side alone, more.
const CONTEXTS: [usize; 3] = [3, 12, 48];
/// Bytes that are searched, at most, to find out what occurs once; for a passage and its halves in one go.
const SEARCHED: usize = 256 << 20;
/// The passages take at most such a part of the file; else nothing more is searched.
const LARGEST_PART: usize = 8;

/// The passages of one file, top to bottom; no two of them touch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passages {
    passages: Vec<Passage>,
    /// Bytes of the file after the batch.
    size: usize,
}

/// Whole lines that a batch changed, and lines around them that it did not.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Passage {
    /// Offset of its text after the batch, in the file as the batch left it.
    pub(crate) start: usize,
    /// Lines between it and the passage above, or the beginning of the file.
    pub(crate) gap: usize,
    pub(crate) before: Vec<u8>,
    pub(crate) after: Vec<u8>,
}

/// A change: bytes of the file before, and those in their place.
#[derive(Clone)]
struct Change {
    old: Range<usize>,
    new: Range<usize>,
}

/// How often a text occurs in another.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Occurs {
    Never,
    Once(usize),
    Repeatedly,
}

impl Passages {
    /// The passages of the edit of the bytes before that makes the bytes after; `None` where they would be large, or cannot be made
    /// to occur once.
    pub(crate) fn of(before: &[u8], after: &[u8], edit: &TextEdit) -> Option<Self> {
        let mut found: Vec<(Range<usize>, Vec<Change>)> = Vec::new();
        let mut spare = SEARCHED.checked_sub(edit.replacements().count().checked_mul(after.len())?)?;
        let mut above = (0, 0);
        for (old, text) in edit.replacements() {
            let start = above.1 + old.start.checked_sub(above.0)?;
            let change = Change { new: start..start + text.len(), old };
            above = (change.old.end, change.new.end);
            let mut place = unique(before, after, &change, &mut spare)?;
            let mut changes = vec![change];
            // What touches is one passage.
            while let Some((last, mut earlier)) = found.pop_if(|(last, _)| last.end >= place.start) {
                place = last.start.min(place.start)..last.end.max(place.end);
                earlier.append(&mut changes);
                changes = earlier;
            }
            found.push((place, changes));
        }
        let mut end = 0;
        let passages = found.into_iter().map(|(place, changes)| {
            let (first, last) = (changes.first()?, changes.last()?);
            let gap = memchr_iter(b'\n', after.get(end..place.start)?).count();
            end = place.end;
            Some(Passage { gap, ..Passage::around(before, after, [first, last], &place)? })
        });
        let passages = Self { passages: passages.collect::<Option<_>>()?, size: after.len() };
        passages.restores(before, after).then_some(passages)
    }

    /// Whether the file after, with the texts before put back, is the file before. Compares both where they lie, and copies
    /// neither.
    fn restores(&self, before: &[u8], after: &[u8]) -> bool {
        let (mut rest, mut end) = (before, 0);
        for Passage { start, before, after: text, .. } in &self.passages {
            let kept = after.get(end..*start);
            let Some(below) = kept.and_then(|kept| rest.strip_prefix(kept)?.strip_prefix(before.as_slice())) else {
                return false;
            };
            (rest, end) = (below, start + text.len());
        }
        after.get(end..) == Some(rest)
    }

    /// Top to bottom.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Passage> {
        self.passages.iter()
    }

    /// Bytes of the file as the batch left it.
    pub(crate) const fn size_after(&self) -> usize {
        self.size
    }

    /// Bytes of the file before the batch.
    pub(super) fn size_before(&self) -> usize {
        self.edit().length_after(self.size)
    }

    /// The edit of the file as the batch left it that makes the one before.
    fn edit(&self) -> TextEdit {
        let places = self.iter().map(|passage| (passage.start..passage.start + passage.after.len(), &passage.before));
        TextEdit::new(places).unwrap_or_default()
    }

    /// The file before the batch, from the one that it left; `None` for a file that is too short.
    pub(super) fn before(&self, after: &[u8]) -> Option<Vec<u8>> {
        let edit = self.edit();
        edit.fits(after.len()).then(|| edit.apply(after))
    }

    /// The file that the batch left, from the one before; `None` for a file that is too short.
    pub(super) fn after(&self, before: &[u8]) -> Option<Vec<u8>> {
        let (mut came, mut gone) = (0, 0);
        let places = self.iter().map(|passage| {
            let start = (passage.start + gone).saturating_sub(came);
            (came, gone) = (came + passage.after.len(), gone + passage.before.len());
            (start..start + passage.before.len(), &passage.after)
        });
        let edit = TextEdit::new(places).ok()?;
        edit.fits(before.len()).then(|| edit.apply(before))
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut bytes = Vec::new();
        let mut push = |number: usize| bytes.extend_from_slice(&(number as u64).to_le_bytes());
        [self.size, self.passages.len()].into_iter().for_each(&mut push);
        for Passage { start, gap, before, after } in &self.passages {
            [*start, *gap, before.len(), after.len()].into_iter().for_each(&mut push);
        }
        let texts = self.passages.iter().flat_map(|passage| [&passage.before, &passage.after]);
        texts.for_each(|text| bytes.extend_from_slice(text));
        bytes
    }

    /// The encoded passages; `None` where they are not whole, not in order, or not within the file.
    pub(super) fn decode(encoded: &[u8]) -> Option<Self> {
        let (size, rest) = number(encoded)?;
        let (count, rest) = number(rest)?;
        let (mut numbers, mut texts) = rest.split_at_checked(count.checked_mul(NUMBERS * NUMBER)?)?;
        let (mut passages, mut end) = (Vec::with_capacity(count), 0);
        for _ in 0..count {
            let (start, rest) = number(numbers)?;
            let (gap, rest) = number(rest)?;
            let (before, rest) = number(rest)?;
            let (after, rest) = number(rest)?;
            let (before, others) = texts.split_at_checked(before)?;
            let (after, others) = others.split_at_checked(after)?;
            (numbers, texts) = (rest, others);
            let is_next = start >= end && !after.is_empty();
            end = start.checked_add(after.len()).filter(|end| is_next && gap <= *end && *end <= size)?;
            passages.push(Passage { start, gap, before: before.to_owned(), after: after.to_owned() });
        }
        texts.is_empty().then_some(Self { passages, size })
    }
}

impl Passage {
    /// The passage in this place of the bytes after, from the first and the last change in it; its gap is not known yet.
    fn around(before: &[u8], after: &[u8], [first, last]: [&Change; 2], place: &Range<usize>) -> Option<Self> {
        let start = first.old.start.checked_sub(first.new.start.checked_sub(place.start)?)?;
        let old = start..last.old.end + place.end.checked_sub(last.new.end)?;
        let (before, after) = (before.get(old)?.to_owned(), after.get(place.clone())?.to_owned());
        Some(Self { start: place.start, gap: 0, before, after })
    }

    /// Its text after the batch: the lines above those that the batch changed, those, and the lines below.
    pub(crate) fn parts(&self) -> [&[u8]; 3] {
        let lines = |text| <[u8]>::split_inclusive(text, |byte| *byte == b'\n').collect::<Vec<_>>();
        let (before, after) = (lines(&self.before), lines(&self.after));
        let above = before.iter().zip(&after).take_while(|(before, after)| before == after).count();
        let (before, rest) = (before.get(above..).unwrap_or_default(), after.get(above..).unwrap_or_default());
        let below = before.iter().rev().zip(rest.iter().rev()).take_while(|(before, after)| before == after).count();
        let bytes = |count: usize| after.iter().take(count).map(|line| line.len()).sum();
        let (above, rest) = self.after.split_at(bytes(above));
        let (left, below) = rest.split_at(bytes(after.len() - below) - above.len());
        [above, left, below]
    }

    /// Where its text after the batch is in a file; what may be a copy of one that was edited on one side counts as repeated.
    pub(crate) fn find(&self, file: &[u8]) -> Occurs {
        match occurrences(file, &self.after) {
            Occurs::Once(at) if self.is_repeated_beside(file, at) => Occurs::Repeatedly,
            found => found,
        }
    }

    /// Whether what the batch left is elsewhere than there too with the lines above alone, or with those below alone. The end of
    /// the file stands for lines that are not there.
    fn is_repeated_beside(&self, file: &[u8], at: usize) -> bool {
        let [above, left, below] = self.parts();
        let is_above = match above.is_empty() {
            true => at > 0 && !left.is_empty() && file.starts_with(left),
            false => are_repeated_lines(file, &[above, left].concat()),
        };
        let is_below = match below.is_empty() {
            true => at + self.after.len() < file.len() && !left.is_empty() && file.ends_with(left),
            false => are_repeated_lines(file, &[left, below].concat()),
        };
        is_above || is_below
    }
}

/// The lines of the text after around a change, that together occur once in it; if possible also without those on one side.
fn unique(before: &[u8], after: &[u8], change: &Change, spare: &mut usize) -> Option<Range<usize>> {
    // In repeated lines a diff shows the change below the last line that fits.
    let (old, new) = (before.get(change.old.start..)?, after.get(change.new.start..)?);
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let low = change.new.end + same.saturating_sub(change.old.len().min(change.new.len()));
    let mut whole = None;
    for (wider, lines) in CONTEXTS.into_iter().enumerate() {
        let place = lines_above(after, change.new.start, lines)..lines_below(after, low, lines);
        let searched = if wider > 0 { after.len() } else { 0 };
        let text = after.get(place.clone()).filter(|text| text.len() <= after.len() / LARGEST_PART);
        let (Some(text), Some(rest)) = (text, spare.checked_sub(searched)) else { break };
        *spare = rest;
        if occurrences(after, text) == Occurs::Once(place.start) {
            let passage = Passage::around(before, after, [change, change], &place);
            if passage.is_none_or(|passage| !passage.is_repeated_beside(after, place.start)) {
                return Some(place);
            }
            whole.get_or_insert(place);
        }
    }
    // After later edits its undo is refused: what is like it on one side might be it.
    whole
}

/// How often a text that is not empty occurs, also within itself.
fn occurrences(text: &[u8], part: &[u8]) -> Occurs {
    let finder = Finder::new(part);
    let find = |from: usize| text.get(from..).and_then(|rest| Some(from + finder.find(rest)?));
    let Some(first) = find(0).filter(|_| !part.is_empty()) else { return Occurs::Never };
    if find(first + 1).is_some() { Occurs::Repeatedly } else { Occurs::Once(first) }
}

/// Whether lines occur more than once, each time as whole lines.
fn are_repeated_lines(text: &[u8], lines: &[u8]) -> bool {
    // Without an end of line they can only be the last ones.
    let can_be = lines.ends_with(b"\n");
    match occurrences(text, &[b"\n", lines].concat()) {
        Occurs::Repeatedly => can_be,
        Occurs::Once(_) => can_be && text.starts_with(lines),
        Occurs::Never => false,
    }
}

/// Where the line starts that is so many above the one that `at` lies in.
fn lines_above(text: &[u8], at: usize, count: usize) -> usize {
    let start = |at: usize| text.get(..at).and_then(|above| memrchr(b'\n', above)).map_or(0, |feed| feed + 1);
    (0..count).fold(start(at), |at, _| start(at.saturating_sub(1)))
}

/// Where the line ends that is so many below the one that `at` lies in.
fn lines_below(text: &[u8], at: usize, count: usize) -> usize {
    let end = |at: usize| text.get(at..).and_then(|rest| memchr(b'\n', rest)).map_or(text.len(), |feed| at + feed + 1);
    (0..=count).fold(at, |at, _| end(at))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::keep::history::random_texts::Random;

    #[test]
    fn both_files_come_back_and_each_passage_occurs_once() {
        let (mut random, mut kept, mut joined) = (Random::new(3), 0, 0);
        for _ in 0..2_000 {
            let before = random.lines(400);
            let edit = random.edit(&before);
            let after = edit.apply(&before);
            let Some(passages) = Passages::of(&before, &after, &edit) else { continue };
            kept += 1;
            joined += usize::from(passages.passages.len() < edit.replacements().count());
            assert_eq!((passages.size_before(), passages.size_after()), (before.len(), after.len()));
            assert_eq!(passages.before(&after).as_ref(), Some(&before), "{edit:?}");
            assert_eq!(passages.after(&before).as_ref(), Some(&after), "{edit:?}");
            for passage in passages.iter() {
                assert_eq!(occurrences(&after, &passage.after), Occurs::Once(passage.start));
                let end = passage.start + passage.after.len();
                assert!(passage.start == 0 || after[passage.start - 1] == b'\n');
                assert!(end == after.len() || after[end - 1] == b'\n');
                // The lines around the change are those of both files, and enough for a diff.
                let same = passage.before.iter().zip(&passage.after).take_while(|(a, b)| a == b).count();
                let above = passage.after[..same].iter().filter(|byte| **byte == b'\n').count();
                assert!(above >= 3 || passage.start == 0, "{passage:?}");
                let bottom = |text: &[u8]| text[same..].iter().rev().copied().collect::<Vec<_>>();
                let (old, new) = (bottom(&passage.before), bottom(&passage.after));
                let same = old.iter().zip(&new).take_while(|(a, b)| a == b).count();
                let below = new[..same].iter().filter(|byte| **byte == b'\n').count();
                assert!(below >= 3 || end == after.len(), "{passage:?}");
            }
        }
        assert!(kept > 1_000 && joined > 100, "{kept}, {joined}");
    }

    #[test]
    fn what_cannot_be_made_to_occur_once_is_not_kept() {
        let of = |before: &str, after: &str, range: Range<usize>, text: &str| {
            assert_eq!([&before[..range.start], text, &before[range.end..]].concat(), after);
            Passages::of(before.as_bytes(), after.as_bytes(), &TextEdit::new([(range, text)]).unwrap())
        };
        let same = "same\n".repeat(1_000);
        assert_eq!(of(&same, &[&same, "same\n"].concat(), 50..50, "same\n"), None);
        // Once it differs it is found.
        let changed = [&same[..50], "other\n", &same[50..]].concat();
        assert_eq!(of(&same, &changed, 50..50, "other\n").unwrap().passages.len(), 1);
        // Between the same lines as another one, until it is seen with more of them.
        let block = |last: usize| "{\n  a\n  b\n  c\n}\n".repeat(30) + &format!("end {last}\n");
        let after: String = (0..20).map(block).collect();
        let at = after.find("end 7").unwrap() - 46;
        let before = [&after[..at], "odd", &after[at + 3..]].concat();
        let passages = of(&before, &after, at..at + 3, "  a").unwrap();
        let lines = passages.passages[0].after.iter().filter(|byte| **byte == b'\n').count();
        assert_eq!(lines, 48 + 1 + 48);
        // One line of the whole file.
        let line = "x".repeat(9_000);
        assert_eq!(of(&line, &format!("{}y{}", &line[..100], &line[101..]), 100..101, "y"), None);
    }

    #[test]
    fn damaged_passages_make_nothing_that_panics() {
        let mut random = Random::new(5);
        for _ in 0..2_000 {
            let before = random.lines(60);
            let edit = random.edit(&before);
            let after = edit.apply(&before);
            let Some(passages) = Passages::of(&before, &after, &edit) else { continue };
            let encoded = passages.encode();
            assert_eq!(Passages::decode(&encoded), Some(passages));
            let cut = random.below(encoded.len());
            assert_eq!(Passages::decode(&encoded[..cut]), None, "cut at {cut}");
            assert_eq!(Passages::decode(&[&encoded[..], b"x"].concat()), None);
            let mut altered = encoded.clone();
            altered[cut] ^= 1 << random.below(8);
            if let Some(passages) = Passages::decode(&altered) {
                drop((passages.before(&after), passages.after(&before), passages.size_before()));
            }
        }
        assert_eq!(Passages::decode(&[0xff; 16]), None);
    }
}
