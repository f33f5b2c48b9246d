//! The one matcher: where old text occurs in a file, in tiers, each of which must have exactly one place.
//!
//! A [`Needle`] is a text, which may begin and end within lines, or a list of whole lines. [`only`] finds its one place
//! in a region of a text; [`all`] finds all of them. Compared are bytes, then lines without terminators, without white space
//! at their ends, for one indentation, and for blank lines at the needle's edges; nothing but white space ever differs.
//! [`Place`] is the certificate; [`Shift::apply`] indents a new line like those that were found, and `new_text.rs` fits a
//! whole new text into the form of its place.

mod budget;
mod bytes;
mod compare;
mod here_document;
mod needle;
mod opener;
mod shift;

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::report::Tier;
use memchr::{memmem, memrchr};

use crate::text::edit::slice;
use crate::text::lines::Text;
pub(crate) use budget::{Budget, FindError, Searches};
pub(crate) use bytes::Search;
pub(crate) use compare::Place;
use compare::{Line, View, match_at};
pub(crate) use needle::Needle;
pub(crate) use opener::Opener;
pub(crate) use shift::{Shift, Unshiftable, is_blank, split_indent};

/// Places that are listed when there are several.
pub(crate) const LISTED: usize = 20;
/// Places among which a line number can choose.
const CHOICE: usize = 10_000;

/// The one place where a needle occurs in a region of a text. A region for whole lines begins where a line does. Of
/// several places, the one that begins at the offset `hint` will do.
pub(crate) fn only(
    text: &Text<'_>,
    needle: &Needle<'_>,
    region: Range<usize>,
    hint: Option<usize>,
    recovers: bool,
    budget: &mut Budget,
) -> Result<Place, FindError> {
    let most = if hint.is_some() { CHOICE } else { LISTED + 1 };
    let mut places = places(text, needle, region, recovers, most, budget)?;
    let candidates = places.len();
    let chosen = match hint {
        Some(hint) if candidates > 1 => places.iter().position(|place| place.range.start == hint),
        _ => None,
    };
    match places.first() {
        None => return Err(FindError::NotFound),
        Some(first) if candidates > 1 && chosen.is_none() => {
            let (tier, lines) = (first.tier, first_lines(text, &places));
            return Err(FindError::Ambiguous { tier, lines, has_more: candidates > LISTED });
        }
        Some(_) => {}
    }
    Ok(Place { candidates, ..places.swap_remove(chosen.unwrap_or(0)) })
}

/// The first place where a needle occurs byte by byte, and the lines of the others, as far as they are listed; at looser
/// tiers, its one place.
pub(crate) fn first(
    text: &Text<'_>,
    needle: &Needle<'_>,
    recovers: bool,
    budget: &mut Budget,
) -> Result<(Place, Vec<usize>), FindError> {
    let region = text.start()..text.bytes().len();
    let mut places = places(text, needle, region, recovers, LISTED + 1, budget)?;
    let candidates = places.len();
    match places.first().map(|place| place.tier) {
        None => Err(FindError::NotFound),
        Some(tier) if candidates > 1 && tier != Tier::Exact => {
            Err(FindError::Ambiguous { tier, lines: first_lines(text, &places), has_more: candidates > LISTED })
        }
        Some(_) => {
            let place = places.remove(0);
            Ok((Place { candidates, ..place }, first_lines(text, &places)))
        }
    }
}

/// The first lines of places, as far as they are listed.
fn first_lines(text: &Text<'_>, places: &[Place]) -> Vec<usize> {
    places.iter().take(LISTED).map(|place| text.lines_above(place.range.start) + 1).collect()
}

/// Every place of the tightest tier that has any, top to bottom; of places that overlap, the first one.
pub(crate) fn all(
    text: &Text<'_>,
    needle: &Needle<'_>,
    recovers: bool,
    budget: &mut Budget,
) -> Result<Vec<Place>, FindError> {
    let mut places = places(text, needle, text.start()..text.bytes().len(), recovers, usize::MAX, budget)?;
    let mut end = 0;
    places.retain(|place| {
        let is_apart = place.range.start >= end;
        if is_apart {
            end = place.range.end;
        }
        is_apart
    });
    if places.is_empty() { Err(FindError::NotFound) } else { Ok(places) }
}

/// The first places where a needle occurs, ignoring terminators, at most so many; none where more white space differs.
pub(crate) fn at_most(
    text: &Text<'_>,
    needle: &Needle<'_>,
    region: Range<usize>,
    most: usize,
    budget: &mut Budget,
) -> Result<Vec<Place>, FindError> {
    let mut places = places(text, needle, region, true, most, budget)?;
    places.retain(|place| place.tier <= Tier::Eol);
    Ok(places)
}

/// Whether a needle occurs anywhere in some bytes, however loosely compared.
pub(crate) fn occurs_in(
    bytes: &[u8],
    needle: &Needle<'_>,
    recovers: bool,
    budget: &mut Budget,
) -> Result<bool, FindError> {
    if let Some(text) = needle.bytes
        && !exact(bytes, text, 0..bytes.len(), 1, budget)?.is_empty()
    {
        return Ok(true);
    }
    Ok(!by_lines(bytes, needle, 0..bytes.len(), recovers, 1, budget)?.is_empty())
}

/// The places of the tightest tier that has any, top to bottom, at most so many.
fn places(
    text: &Text<'_>,
    needle: &Needle<'_>,
    region: Range<usize>,
    recovers: bool,
    most: usize,
    budget: &mut Budget,
) -> Result<Vec<Place>, FindError> {
    if let Some(bytes) = needle.bytes {
        let mut places = exact(text.bytes(), bytes, region.clone(), most, budget)?;
        if !recovers {
            return Ok(places);
        }
        if !places.is_empty() {
            if places.len() < most {
                places.extend(open_end(text.bytes(), bytes, &region));
            }
            return Ok(places);
        }
    }
    by_lines(text.bytes(), needle, region, recovers, most, budget)
}

/// Every place where the bytes occur, those that overlap included.
fn exact(
    bytes: &[u8],
    needle: &[u8],
    region: Range<usize>,
    most: usize,
    budget: &mut Budget,
) -> Result<Vec<Place>, FindError> {
    let mut places = Vec::new();
    if needle.is_empty() {
        return Ok(places);
    }
    let mut search = Search::new(needle, region.len());
    let mut from = region.start;
    while places.len() < most {
        let rest = slice(bytes, from..region.end);
        let hit = search.find(rest);
        budget.charge(hit.unwrap_or(rest.len()) + needle.len())?;
        let Some(hit) = hit else { break };
        let start = from + hit;
        places.push(Place::plain(start..start + needle.len(), Tier::Exact));
        from = start + 1;
    }
    Ok(places)
}

/// The place at the end of a file where only the needle's last terminator is missing: a terminator is no text of a line,
/// so that it is a candidate beside places that have one.
fn open_end(bytes: &[u8], needle: &[u8], region: &Range<usize>) -> Option<Place> {
    let needle = needle.strip_suffix(b"\n")?;
    let needle = needle.strip_suffix(b"\r").unwrap_or(needle);
    let is_there = !needle.is_empty() && region.end == bytes.len() && slice(bytes, region.clone()).ends_with(needle);
    let range = region.end - needle.len().min(region.end)..region.end;
    (is_there && !bytes.ends_with(b"\n")).then(|| Place { is_open: true, ..Place::plain(range, Tier::Eol) })
}

/// Looks at every line that has the needle's longest line in it.
fn by_lines(
    bytes: &[u8],
    needle: &Needle<'_>,
    region: Range<usize>,
    recovers: bool,
    most: usize,
    budget: &mut Budget,
) -> Result<Vec<Place>, FindError> {
    let Some(whole) = View::whole(needle) else { return Ok(Vec::new()) };
    let trimmed = View::without_blank_edges(needle).filter(|_| recovers);
    let finder = memmem::Finder::new(whole.anchor_text());
    let mut places: Vec<Place> = Vec::new();
    let mut from = region.start;
    while from < region.end {
        let rest = slice(bytes, from..region.end);
        let hit = finder.find(rest);
        budget.charge(hit.unwrap_or(rest.len()))?;
        let Some(hit) = hit else { break };
        let above = slice(bytes, region.start..from + hit);
        let start = memrchr(b'\n', above).map_or(region.start, |feed| region.start + feed + 1);
        let line = Line::at(bytes, start, region.end);
        let mut place = match_at(&whole, bytes, &region, line, budget)?;
        if let (None, Some(trimmed)) = (&place, &trimmed) {
            place = match_at(trimmed, bytes, &region, line, budget)?;
        }
        let place = place.filter(|place| recovers || place.tier == Tier::Exact);
        match (place, places.first().map(|best| best.tier)) {
            (Some(place), Some(best)) if place.tier > best => {}
            (Some(place), Some(best)) if place.tier == best => {
                if places.len() < most {
                    places.push(place);
                }
            }
            (Some(place), _) => places = Vec::from_iter([place]),
            (None, _) => {}
        }
        from = line.next;
    }
    Ok(places)
}
