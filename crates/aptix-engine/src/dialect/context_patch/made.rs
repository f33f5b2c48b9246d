//! Whether a chunk was made before, or would be made once more in its own result (rule 3.7).

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Chunk, ContextPatch, LineKind};
use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::spot::Spot;
use crate::already::{self, Copy, Several};
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::edit::{TextEdit, slice};
use crate::text::find::{self, FindError, Needle, Place, is_blank};
use crate::text::lines::{Terminator, Text};

/// The lines that a chunk leaves.
pub(super) fn new_side(chunk: &Chunk) -> Needle<'_> {
    let lines = chunk.lines.iter().filter(|line| line.kind != LineKind::Removed);
    Needle::lines(lines.map(|line| line.text.as_str()))
}

pub(super) fn old_side(chunk: &Chunk) -> Needle<'_> {
    let stays = chunk.lines.iter().filter(|line| line.kind != LineKind::Added);
    Needle::lines(stays.map(|line| line.text.as_str()))
}

/// Refuses a chunk whose new side occurs around its place, or below its anchor while its place is elsewhere.
pub(super) fn refuse(chunk: &Chunk, spot: &Spot<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
    let (old, new) = (old_side(chunk), new_side(chunk));
    let found = if spot.range.is_empty() {
        Ok(inserted(spot, text))
    } else {
        around(spot, &new, text, work).and_then(|copy| match copy {
            None => headed(spot, (&old, &new), text, work),
            copy => Ok(copy),
        })
    };
    match found {
        Ok(None) => Ok(()),
        Ok(Some(copy)) => Err(already::applied(text, &copy)),
        Err(error) => Err(old_text::explain(&error, text, &old, work)),
    }
}

/// Where lines without any around them already occur: at the end of the file, or below their anchor.
fn inserted(spot: &Spot<'_>, text: &Text<'_>) -> Option<Copy> {
    let new: Vec<u8> = spot.lines.iter().flat_map(|line| [line.text.as_bytes(), b"\n"]).flatten().copied().collect();
    if spot.range.start == text.bytes().len() {
        already::above(text, spot.range.start, &new)
    } else {
        already::below(text, spot.range.start, &new)
    }
}

/// Where the new side occurs around the place of the old one, or as its author wrote it.
fn around(spot: &Spot<'_>, new: &Needle<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<Option<Copy>, FindError> {
    let Some(whole) = whole_side(spot, text) else { return Ok(None) };
    let place = Place { shift: spot.shift.clone(), ..Place::plain(spot.range.clone(), spot.tier) };
    already::at_place(text, &place, &whole, new, &mut work.budget)
}

/// Where the new side occurs below an anchor, while the old side occurs elsewhere.
fn headed(
    spot: &Spot<'_>,
    (old, new): (&Needle<'_>, &Needle<'_>),
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<Option<Copy>, FindError> {
    let is_inside = |head: &Range<usize>| head.start <= spot.range.start && spot.range.end <= head.end;
    let adds_nothing = already::adds_nothing(old.as_lines(), new.as_lines());
    if spot.heads.iter().any(is_inside) || adds_nothing || new.as_lines().is_empty() {
        return Ok(None);
    }
    for head in &spot.heads {
        let copies = find::at_most(text, new, head.clone(), 1, &mut work.budget)?;
        if let Some(copy) = copies.into_iter().next() {
            return Ok(Some(Copy::made(copy.range)));
        }
    }
    Ok(None)
}

/// The lines that a chunk leaves, as they would be in the file.
fn whole_side(spot: &Spot<'_>, text: &Text<'_>) -> Option<Vec<u8>> {
    let old = spot.indents();
    let mut cursor = text.cursor_at(spot.range.start, 0);
    let end = Terminator::at_end_of(slice(text.bytes(), 0..spot.range.end));
    let mut side = Vec::with_capacity(2 * spot.range.len());
    for (position, line) in spot.lines.iter().enumerate() {
        let start = cursor.at();
        match line.kind {
            LineKind::Context => {
                cursor.next()?;
                side.extend_from_slice(slice(text.bytes(), start..cursor.at()));
                continue;
            }
            LineKind::Removed => {
                cursor.next()?;
                continue;
            }
            LineKind::Added => {}
        }
        // Below a last line without terminator.
        if !side.is_empty() && !side.ends_with(b"\n") {
            side.extend_from_slice(end.as_bytes());
        }
        if !is_blank(line.text.as_bytes()) {
            let (indent, _) = spot.shift.apply(&line.text, position + 1, &old).ok()?;
            side.extend_from_slice(indent.as_bytes());
        }
        let (_, rest) = spot.shift.apply(&line.text, position + 1, &old).unwrap_or(("", &line.text));
        side.extend_from_slice(rest.as_bytes());
        side.extend_from_slice(end.as_bytes());
    }
    // The end of the file stays as it was.
    if !slice(text.bytes(), spot.range.clone()).ends_with(b"\n") && side.ends_with(b"\n") {
        side.truncate(side.len() - end.as_bytes().len());
    }
    Some(side)
}

/// The first of the places in a region, if they are exactly as many as the chunk and its equals below it.
///
/// # Errors
/// When all of them have the new side, or some.
pub(super) fn first_of_equal(
    chunk: &Chunk,
    others: &[Chunk],
    region: Range<usize>,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<Option<Place>, Failure> {
    let (old, new) = (old_side(chunk), new_side(chunk));
    work.budget.charge(64 * others.len()).map_err(|error| old_text::explain(&error, text, &old, work))?;
    let count = 1 + others.iter().filter(|other| *other == chunk).count();
    if count < 2 {
        return Ok(None);
    }
    let explain = |error: FindError, work: &mut Work<'_>| old_text::explain(&error, text, &old, work);
    let places =
        find::at_most(text, &old, region, count + 1, &mut work.budget).map_err(|error| explain(error, work))?;
    if places.len() != count {
        return Ok(None);
    }
    let held = already::several(&places, |place| {
        let copies = find::at_most(text, &new, place.range.start..text.bytes().len(), 1, &mut work.budget)?;
        let is_here = |copy: &Place| copy.range.start == place.range.start && copy.range.end >= place.range.end;
        Ok(copies.into_iter().find(is_here).map(|copy| Copy::made(copy.range)))
    });
    match held.map_err(|error| explain(error, work))? {
        Several::All(copy) if already::only_adds(old.as_lines(), new.as_lines()) => Err(already::applied(text, &copy)),
        Several::Some(made, open) if already::only_adds(old.as_lines(), new.as_lines()) => {
            Err(already::partly(text, &made, &open))
        }
        _ => Ok(places.into_iter().next()),
    }
}

/// Where the new side occurs of a chunk whose old side has no place, or several that all have it.
pub(super) fn made_before(
    chunk: &Chunk,
    error: &FindError,
    region: Range<usize>,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Option<Copy> {
    let (old, new) = (old_side(chunk), new_side(chunk));
    let found = match error {
        FindError::NotFound => already::between(text, &old, &new, &mut work.budget),
        FindError::Ambiguous { has_more: false, tier: Tier::Exact | Tier::Eol, .. }
            if already::only_adds(old.as_lines(), new.as_lines()) =>
        {
            already::everywhere(text, &old, region.clone(), &mut work.budget, |place, budget| {
                let copies = find::at_most(text, &new, region.clone(), 2, budget)?;
                let holds = |copy: &Place| copy.range.start <= place.range.start && place.range.end <= copy.range.end;
                Ok(copies.into_iter().find(holds).map(|copy| Copy::made(copy.range)))
            })
        }
        FindError::Ambiguous { .. } | FindError::BudgetExceeded => Ok(None),
    };
    found.ok().flatten()
}

/// What is known of the first chunk: whether a second application would be refused for it.
pub(super) fn is_refused_twice(
    patch: &ContextPatch,
    spot: &Spot<'_>,
    edit: &TextEdit,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<bool, FindError> {
    let Some(chunk) = patch.chunks.first() else { return Ok(true) };
    if spot.range.is_empty() {
        // At the end of the file; below an anchor, added lines may be that anchor.
        return Ok(patch.chunks.len() == 1 && chunk.anchors.is_empty() && !text.is_unterminated());
    }
    if spot.candidates > 1 || spot.tier > Tier::Eol || already::is_open_end(text, edit) {
        return Ok(false);
    }
    if whole_side(spot, text).is_some_and(|whole| already::is_found_again(text, &spot.range, &whole, true)) {
        return Ok(true);
    }
    let (old, new) = (old_side(chunk), new_side(chunk));
    if already::adds_nothing(old.as_lines(), new.as_lines()) {
        return Ok(false);
    }
    let beside = already::neighbourhood(text, edit, old.as_lines().len());
    Ok(!find::occurs_in(&beside, &old, work.settings.recovers, &mut work.budget)?)
}
