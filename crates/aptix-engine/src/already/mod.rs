//! Whether a change was made before, and whether it would be made once more when it is sent twice (rule 3.7).
//!
//! A change that only adds is made already where its whole new side occurs around the place of its old side. A change
//! after which its old side would occur there again is refused the first time: the second one could not be recognized.

mod compare;
mod copy;
mod neighbourhood;
mod refusal;

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::report::Tier;
use memchr::memmem;

use crate::text::edit::{TextEdit, slice};
use crate::text::find::{self, Budget, FindError, Needle, Place, is_blank};
use crate::text::lines::Text;
use crate::text::new_text::Fitted;
use compare::{ends_with, starts_with};
pub(crate) use copy::{Copy, Proves};
pub(crate) use neighbourhood::neighbourhood;
pub(crate) use refusal::{applied, at_end, at_top, next_place, partly, repeats};

/// Places whose surroundings are looked at to say that all of them have the new text.
const PLACES: usize = 20;

/// Lines of old text that are compared one by one, which takes less than to put them in order.
const FEW: usize = 64;

/// The new side of a change with the lines that it keeps, as the bytes that would be in the file: the place of the old
/// side and its replacement. `None` where more than the old side is removed.
pub(crate) fn whole_side(text: &Text<'_>, matched: &Range<usize>, fitted: &Fitted) -> Option<Vec<u8>> {
    let bytes = text.bytes();
    let is_within = matched.start <= fitted.range.start && fitted.range.end <= matched.end;
    let kept = |range| slice(bytes, range);
    is_within.then(|| {
        [kept(matched.start..fitted.range.start), fitted.bytes.as_slice(), kept(fitted.range.end..matched.end)].concat()
    })
}

/// The bytes that an edit leaves of a range, beyond which it does not reach.
pub(crate) fn side_of(text: &Text<'_>, range: &Range<usize>, edit: &TextEdit) -> Vec<u8> {
    let mut side = Vec::with_capacity(range.len());
    let mut kept = range.start;
    for (cut, new) in edit.replacements() {
        side.extend_from_slice(slice(text.bytes(), kept..cut.start));
        side.extend_from_slice(new);
        kept = cut.end;
    }
    side.extend_from_slice(slice(text.bytes(), kept..range.end.max(kept)));
    side
}

/// Where the whole new side already occurs, so that it holds the old side at `at`; `None` if it does not. Lines are
/// compared as loosely as the old side was found.
pub(crate) fn around(
    text: &Text<'_>,
    at: &Range<usize>,
    new: &[u8],
    tier: Tier,
    budget: &mut Budget,
) -> Result<Option<Copy>, FindError> {
    let bytes = text.bytes();
    let old = slice(bytes, at.clone());
    if old.is_empty() || old.len() >= new.len() {
        return Ok(None);
    }
    let mut search = find::Search::new(old, new.len());
    let mut from = 0;
    while let Some(hit) = search.find(slice(new, from..new.len())) {
        let above = from + hit;
        let (head, tail) = (slice(new, 0..above), slice(new, above + old.len()..new.len()));
        budget.charge(64 + hit)?;
        let start = ends_with(slice(bytes, text.start()..at.start), head, tier, budget)?;
        let end = starts_with(slice(bytes, at.end..bytes.len()), tail, tier, budget)?;
        if let (Some(start), Some(end)) = (start, end) {
            let range = text.start() + start..at.end + end;
            if ends_words(text, &range, head, tail) {
                return Ok(Some(Copy::unless_blank(range, is_space(head) && is_space(tail))));
            }
        }
        from = above + 1;
    }
    Ok(None)
}

/// Whether a change, once it is made, would be found around its place: its new side holds its old side whole.
/// Lines are not found within others.
pub(crate) fn is_found_again(text: &Text<'_>, at: &Range<usize>, new: &[u8], are_lines: bool) -> bool {
    let bytes = text.bytes();
    let old = slice(bytes, at.clone());
    if old.is_empty() || old.len() >= new.len() {
        return false;
    }
    let is_there = |above: &usize| !are_lines || *above == 0 || slice(new, 0..*above).ends_with(b"\n");
    let found = find::Search::new(old, new.len()).find(new);
    let Some(above) = found.filter(is_there) else { return false };
    let (head, tail) = (slice(new, 0..above), slice(new, above + old.len()..new.len()));
    let continues_above = head.ends_with(b"\n") && joins(before(text, at.start), new.first());
    let continues_below = begins_line(tail) && joins(new.last(), bytes.get(at.end));
    !continues_above && !continues_below
}

/// Whether a range begins and ends between words wherever another one does.
pub(crate) fn is_bounded_alike(text: &Text<'_>, range: &Range<usize>, other: &Range<usize>) -> bool {
    let is_within = |at| is_within_word(text, at);
    (is_within(other.start) || !is_within(range.start)) && (is_within(other.end) || !is_within(range.end))
}

fn begins_line(tail: &[u8]) -> bool {
    matches!(tail, [b'\n', ..] | [b'\r', b'\n', ..])
}

/// Whether a copy that begins or ends with a line of its own also begins or ends a word: `import b` is no `import bc`.
fn ends_words(text: &Text<'_>, copy: &Range<usize>, head: &[u8], tail: &[u8]) -> bool {
    let continues_above = head.ends_with(b"\n") && is_within_word(text, copy.start);
    let continues_below = begins_line(tail) && is_within_word(text, copy.end);
    !continues_above && !continues_below
}

fn is_within_word(text: &Text<'_>, at: usize) -> bool {
    joins(before(text, at), text.bytes().get(at))
}

/// The byte before an offset; a byte order mark is none.
fn before<'t>(text: &Text<'t>, at: usize) -> Option<&'t u8> {
    slice(text.bytes(), text.start()..at).last()
}

fn joins(left: Option<&u8>, right: Option<&u8>) -> bool {
    left.is_some_and(is_word) && right.is_some_and(is_word)
}

const fn is_word(byte: &u8) -> bool {
    byte.is_ascii_alphanumeric() || *byte == b'_' || !byte.is_ascii()
}

fn is_space(bytes: &[u8]) -> bool {
    bytes.iter().all(u8::is_ascii_whitespace)
}

/// Where text to insert between two lines already occurs below that place.
pub(crate) fn below(text: &Text<'_>, at: usize, new: &[u8]) -> Option<Copy> {
    let rest = slice(text.bytes(), at..text.bytes().len());
    let length = compare::begins(rest, new).filter(|_| !new.is_empty())?;
    Some(Copy::unless_blank(at..at + length, is_space(new)))
}

/// Where lines to insert between two lines already occur above that place.
pub(crate) fn above(text: &Text<'_>, at: usize, new: &[u8]) -> Option<Copy> {
    let head = slice(text.bytes(), text.start()..at);
    let start = compare::closes(head, new).filter(|_| !new.is_empty())?;
    Some(Copy::unless_blank(text.start() + start..at, is_space(new)))
}

/// Where what one of an edit's replacements adds already occurs at its place: above it, below it, or around what it replaces.
/// Blank lines alone prove nothing.
pub(crate) fn made(text: &Text<'_>, edit: &TextEdit) -> Option<Copy> {
    let mut budget = Budget::new(text.bytes().len());
    let copy = |(range, new): (Range<usize>, &[u8])| match range.is_empty() {
        true => above(text, range.start, new).or_else(|| below(text, range.start, new)),
        false => around(text, &range, new, Tier::Exact, &mut budget).ok().flatten(),
    };
    edit.replacements().filter_map(copy).find(|copy| copy.proves == Proves::Made)
}

/// Whether an old side occurs as its author wrote it, terminators aside, and not at the end of a file that lacks one.
pub(crate) fn is_as_written(place: &Place) -> bool {
    place.tier == Tier::Exact || (place.tier == Tier::Eol && !place.is_open)
}

/// Where the new side occurs around the place of the old one, or else as its author wrote it.
pub(crate) fn at_place(
    text: &Text<'_>,
    place: &Place,
    whole: &[u8],
    new: &Needle<'_>,
    budget: &mut Budget,
) -> Result<Option<Copy>, FindError> {
    match around(text, &place.range, whole, place.tier, budget)? {
        None => at_other_white_space(text, place, whole, new, budget),
        copy => Ok(copy),
    }
}

/// Where the new side occurs as its author wrote it, while the old side was only found with other white space: then the
/// place may be what the first change left, or one like it that was not meant. What occurs within the place is what the
/// change leaves of the old side.
pub(crate) fn at_other_white_space(
    text: &Text<'_>,
    place: &Place,
    whole: &[u8],
    new: &Needle<'_>,
    budget: &mut Budget,
) -> Result<Option<Copy>, FindError> {
    let is_bare = new.as_lines().iter().all(|line| is_blank(line));
    if is_as_written(place) || is_bare || slice(text.bytes(), place.range.clone()) == whole {
        return Ok(None);
    }
    let old = &place.range;
    let is_around = |copy: &Range<usize>| copy.start <= old.start && old.end <= copy.end;
    let is_within = |copy: &Range<usize>| old.start <= copy.start && copy.end <= old.end;
    let copies = find::at_most(text, new, text.start()..text.bytes().len(), PLACES, budget)?;
    let mut copies = copies.into_iter().map(|copy| copy.range);
    Ok(copies.find(|copy| is_around(copy) || !is_within(copy)).map(|range| {
        let proves = if is_around(&range) { Proves::Made } else { Proves::Elsewhere(old.start) };
        Copy { range, proves }
    }))
}

/// Where the new side occurs of a change that only adds and whose old side occurs nowhere: it was added between.
/// `None` if it occurs nowhere, or at several places.
pub(crate) fn between(
    text: &Text<'_>,
    old: &Needle<'_>,
    new: &Needle<'_>,
    budget: &mut Budget,
) -> Result<Option<Copy>, FindError> {
    if !only_adds(old.as_lines(), new.as_lines()) {
        return Ok(None);
    }
    let places = find::at_most(text, new, text.start()..text.bytes().len(), 2, budget)?;
    let [place] = places.as_slice() else { return Ok(None) };
    Ok(Some(Copy::made(place.range.clone())))
}

/// Whether new lines are the old ones with others between, or one old line with something in it, that is not blank.
pub(crate) fn only_adds(old: &[&[u8]], new: &[&[u8]]) -> bool {
    if let ([old], [new]) = (old, new) {
        let head = old.iter().zip(*new).take_while(|(a, b)| a == b).count();
        let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(a, b)| a == b).count();
        return old.len() < new.len() && head + tail >= old.len() && !is_space(slice(new, head..new.len() - tail));
    }
    let mut kept = old.iter();
    let mut next = kept.next();
    let mut is_addition = false;
    for line in new {
        if next.is_some_and(|old| old.trim_ascii_end() == line.trim_ascii_end()) {
            next = kept.next();
        } else {
            is_addition |= !is_space(line);
        }
    }
    next.is_none() && is_addition && !old.is_empty()
}

/// Whether new lines have none that is not among the old ones, so that nothing shows that the change was made.
pub(crate) fn adds_nothing(old: &[&[u8]], new: &[&[u8]]) -> bool {
    if let ([old], [new]) = (old, new) {
        return memmem::find(old, new).is_some();
    }
    if old.len() <= FEW {
        let is_known = |new: &[u8]| old.iter().any(|old| old.trim_ascii() == new);
        return new.iter().all(|line| is_blank(line) || is_known(line.trim_ascii()));
    }
    let known: alloc::collections::BTreeSet<&[u8]> = old.iter().map(|line| line.trim_ascii()).collect();
    new.iter().all(|line| is_blank(line) || known.contains(line.trim_ascii()))
}

/// Whether an edit reaches the end of a text whose last line has no terminator: what then shows of it depends on more than
/// the place.
pub(crate) fn is_open_end(text: &Text<'_>, edit: &TextEdit) -> bool {
    text.is_unterminated() && edit.end() == Some(text.bytes().len())
}

/// Whether a second application, to the result of the first, changes it further. One that takes the first back, as two
/// texts that change places do, adds nothing twice.
pub(crate) fn is_made_again(base: &[u8], result: &[u8], again: &TextEdit) -> bool {
    !again.is_identity(result) && again.apply(result) != base
}

/// What is known of several places of one old text.
#[derive(Debug)]
pub(crate) enum Several {
    /// None has the new text.
    None,
    /// Some have it: their offsets, and those of the others.
    Some(Vec<usize>, Vec<usize>),
    /// All have it; the first copy.
    All(Copy),
}

/// Holds every place of an old text against its new side.
pub(crate) fn several<'p, E>(
    places: impl IntoIterator<Item = &'p Place>,
    mut existing_copy: impl FnMut(&Place) -> Result<Option<Copy>, E>,
) -> Result<Several, E> {
    let (mut first, mut made, mut open) = (None, Vec::new(), Vec::new());
    for place in places {
        match existing_copy(place)? {
            Some(copy) => {
                first.get_or_insert(copy);
                made.push(place.range.start);
            }
            None => open.push(place.range.start),
        }
    }
    Ok(match first {
        None => Several::None,
        Some(copy) if open.is_empty() => Several::All(copy),
        Some(_) => Several::Some(made, open),
    })
}

/// The first copy of the new text, if every place of an old text with several places has one.
pub(crate) fn everywhere(
    text: &Text<'_>,
    needle: &Needle<'_>,
    region: Range<usize>,
    budget: &mut Budget,
    mut existing_copy: impl FnMut(&Place, &mut Budget) -> Result<Option<Copy>, FindError>,
) -> Result<Option<Copy>, FindError> {
    let places = find::at_most(text, needle, region, PLACES + 1, budget)?;
    if places.len() > PLACES {
        return Ok(None);
    }
    match several(&places, |place| existing_copy(place, budget))? {
        Several::All(copy) => Ok(Some(copy)),
        Several::None | Several::Some(..) => Ok(None),
    }
}
