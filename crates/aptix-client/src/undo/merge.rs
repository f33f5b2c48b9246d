//! The way back of a file that was edited again since: what a batch did is undone, and what came later stays.

use std::ops::Range;
use std::time::{Duration, Instant};

use aptix_engine::text::edit::TextEdit;
use similar::{Algorithm, DiffOp};

/// How long two versions of a file are compared for the shortest difference; beyond, a longer one will do.
const PATIENCE: Duration = Duration::from_secs(2);

/// What helps where later edits are in the way.
pub(super) const HINT: &str = "undo the batches that came later first, newest first, or edit these lines by hand";

/// A place where a later edit is in the way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Clash {
    /// What the batch had left there.
    pub(crate) left: String,
    /// The lines that are there now, from 1; empty when the end is before the start.
    pub(crate) now: (usize, usize),
    /// Their text.
    pub(crate) text: String,
}

impl Clash {
    fn new(left: &[&[u8]], now: &[&[u8]], place: &Range<usize>) -> Self {
        let there = slice(now, place);
        // How lines end is shown where that is a difference.
        let ends = |end: &[u8]| left.iter().chain(there).all(|line| line.ends_with(end));
        let end = if ends(b"\r\n") { "\r\n" } else { "\n" };
        Self { left: shown(left, end), now: (place.start + 1, place.end), text: shown(there, end) }
    }
}

/// The edit of `now` that turns what differs between `before` and `after` back, and nothing else.
///
/// # Errors
/// Every place where `now` differs from `after` in the lines that would be turned back.
pub(crate) fn way_back(before: &[u8], after: &[u8], now: &[u8]) -> Result<TextEdit, Vec<Clash>> {
    let text = now;
    let (before, after, now) = (lines(before), lines(after), lines(now));
    let back = hunks(&after, &before);
    let later = hunks(&after, &now);
    let offsets = offsets(&now);
    let at = |line: usize| offsets.get(line).or(offsets.last()).copied().unwrap_or_default();
    let mut clashes = Vec::new();
    let mut replacements = Vec::new();
    for Hunk { from, to } in &back {
        let (shift, in_the_way) = around(from, &later);
        match in_the_way {
            None => {
                let start = from.start.saturating_add_signed(shift);
                let (place, old) = (at(start)..at(start + from.len()), slice(&before, to).concat());
                if is_glued(text, &place, &old) {
                    let beside = start.saturating_sub(1)..(start + from.len() + 1).min(now.len());
                    clashes.push(Clash::new(slice(&after, from), &now, &beside));
                }
                replacements.push((place, old));
            }
            // It was turned back by hand.
            Some(other) if other.from == *from && slice(&now, &other.to) == slice(&before, to) => {}
            Some(other) => clashes.push(Clash::new(slice(&after, from), &now, &other.to)),
        }
    }
    if !clashes.is_empty() {
        return Err(clashes);
    }
    // Hunks are in order and apart, and so are their places.
    Ok(TextEdit::new(replacements).unwrap_or_default())
}

/// The edit of one text that makes another, line by line.
pub(crate) fn line_edit(from: &[u8], to: &[u8]) -> TextEdit {
    match way_back(to, from, from) {
        Ok(edit) if edit.apply(from) == to => edit,
        _ => TextEdit::new([(0..from.len(), to)]).unwrap_or_default(),
    }
}

/// Edits of parts of a text as one edit of it: each with the offset of its part, top to bottom and apart.
pub(crate) fn joined(edits: impl IntoIterator<Item = (usize, TextEdit)>) -> TextEdit {
    let edits: Vec<_> = edits.into_iter().collect();
    let replacements = edits
        .iter()
        .flat_map(|(at, edit)| edit.replacements().map(move |(range, text)| (at + range.start..at + range.end, text)));
    TextEdit::new(replacements).unwrap_or_default()
}

/// Whether text in this place would run together with a line beside it: one of them was the last line when the batch was
/// carried out and is not now, or the other way round.
pub(super) fn is_glued(text: &[u8], place: &Range<usize>, old: &[u8]) -> bool {
    let is_after_part = place.start > 0 && text.get(place.start - 1) != Some(&b'\n');
    let is_part = !old.ends_with(b"\n") && place.end < text.len();
    !old.is_empty() && (is_after_part || is_part)
}

/// A difference between two texts: lines of the one, and lines of the other in their place.
struct Hunk {
    from: Range<usize>,
    to: Range<usize>,
}

/// By how many lines the later edits above have moved a range, and the first later edit that touches it.
fn around<'h>(range: &Range<usize>, later: &'h [Hunk]) -> (isize, Option<&'h Hunk>) {
    let mut shift = 0;
    for hunk in later {
        let at_one_point = hunk.from == *range && range.is_empty();
        if at_one_point || (range.start < hunk.from.end && hunk.from.start < range.end) {
            return (shift, Some(hunk));
        }
        if hunk.from.end <= range.start {
            shift += hunk.to.len().cast_signed() - hunk.from.len().cast_signed();
        }
    }
    (shift, None)
}

fn hunks(from: &[&[u8]], to: &[&[u8]]) -> Vec<Hunk> {
    let deadline = Some(Instant::now() + PATIENCE);
    let ops = similar::capture_diff_slices_deadline(Algorithm::Myers, from, to, deadline);
    let mut hunks: Vec<Hunk> = Vec::new();
    for op in ops.iter().filter(|op| !matches!(op, DiffOp::Equal { .. })) {
        let (from, to) = (op.old_range(), op.new_range());
        match hunks.last_mut() {
            // What touches is one difference.
            Some(last) if last.from.end == from.start && last.to.end == to.start => {
                last.from.end = from.end;
                last.to.end = to.end;
            }
            _ => hunks.push(Hunk { from, to }),
        }
    }
    hunks
}

/// Lines with their terminators, so that together they are the text.
pub(super) fn lines(text: &[u8]) -> Vec<&[u8]> {
    text.split_inclusive(|byte| *byte == b'\n').collect()
}

/// Where each line starts, and where the last one ends.
fn offsets(lines: &[&[u8]]) -> Vec<usize> {
    let mut end = 0;
    let ends = lines.iter().map(|line| {
        end += line.len();
        end
    });
    std::iter::once(0).chain(ends).collect()
}

fn slice<'l, 't>(lines: &'l [&'t [u8]], range: &Range<usize>) -> &'l [&'t [u8]] {
    lines.get(range.clone()).unwrap_or_default()
}

/// At most so many lines of a place are shown, of at most so many characters each.
const SHOWN: (usize, usize) = (10, 200);

pub(super) fn shown(lines: &[&[u8]], end: &str) -> String {
    let texts = lines.iter().take(SHOWN.0).map(|line| {
        let line = String::from_utf8_lossy(line);
        line.strip_suffix(end).unwrap_or(&line).chars().take(SHOWN.1).collect::<String>()
    });
    texts.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result, or how many places clash.
    fn back(before: &str, after: &str, now: &str) -> Result<String, usize> {
        let edit = way_back(before.as_bytes(), after.as_bytes(), now.as_bytes());
        let bytes = edit.map_err(|clashes| clashes.len())?.apply(now.as_bytes());
        Ok(String::from_utf8(bytes).unwrap())
    }

    #[test]
    fn what_came_later_stays_unless_it_is_in_the_way() {
        let cases: &[(&str, &str, &str, Result<&str, usize>)] = &[
            // Nothing came later.
            ("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\n", Ok("a\nb\nc\n")),
            ("a\nb\nc\n", "a\nc\n", "a\nc\n", Ok("a\nb\nc\n")),
            ("a\nc\n", "a\nb\nc\n", "a\nb\nc\n", Ok("a\nc\n")),
            ("", "a\n", "a\n", Ok("")),
            ("a\n", "", "", Ok("a\n")),
            ("a", "b", "b", Ok("a")),
            ("a\r\nb", "a\r\nX", "a\r\nX", Ok("a\r\nb")),
            // Above, below, and on both sides at once, touching.
            ("a\nb\nc\n", "a\nX\nc\n", "1\n2\na\nX\nc\n", Ok("1\n2\na\nb\nc\n")),
            ("a\nb\nc\n", "a\nX\nc\n", "a\nX\nc\nd\n", Ok("a\nb\nc\nd\n")),
            ("a\nb\nc\n", "a\nX\nc\n", "A\nA\nX\nC\n", Ok("A\nA\nb\nC\n")),
            ("a\nb\nc\nd\ne\n", "a\nb\nX\nd\ne\n", "A\nb\nX\nd\nE\n", Ok("A\nb\nc\nd\nE\n")),
            ("a\nb\nc\n", "a\nX\nc\n", "X\nc\n", Ok("b\nc\n")),
            // A line that was taken away comes back beside one that was changed.
            ("a\nb\nc\n", "a\nc\n", "a\nC\n", Ok("a\nb\nC\n")),
            ("a\nb\nc\n", "a\nc\n", "A\nc\n", Ok("A\nb\nc\n")),
            // What has no end of line would run together with a line that came later.
            ("a\nb", "a\nB\n", "a\nB\nc\n", Err(1)),
            ("a\nb\n", "a\n", "a", Err(1)),
            ("a\nb", "a\nB\n", "A\nB\n", Ok("A\nb")),
            // In the way.
            ("a\nb\nc\n", "a\nX\nc\n", "a\nY\nc\n", Err(1)),
            ("a\nb\nc\n", "a\nX\nc\n", "a\nc\n", Err(1)),
            ("a\nb\nc\n", "a\nc\n", "a\nnew\nc\n", Err(1)),
            ("a\nb\nc\nd\ne\n", "a\nX\nc\nY\ne\n", "a\n1\nc\n2\ne\n", Err(2)),
            // Turned back by hand, wholly or in part.
            ("a\nb\nc\n", "a\nX\nc\n", "a\nb\nc\n", Ok("a\nb\nc\n")),
            ("a\nb\nc\nd\ne\n", "a\nX\nc\nY\ne\n", "a\nb\nc\nY\ne\n", Ok("a\nb\nc\nd\ne\n")),
        ];
        for (before, after, now, expected) in cases {
            let expected = (*expected).map(str::to_owned);
            assert_eq!(back(before, after, now), expected, "{before:?} to {after:?}, now {now:?}");
        }
    }
}
