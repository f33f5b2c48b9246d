//! Whether a hunk was made before, or would be made once more in its own result; not asked where the index line proves
//! that the file is the one that the diff was made from.

use alloc::borrow::Cow;
use alloc::format;

use aptix_model::batch::{Hunk, LineKind};
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Tier;

use super::counts;
use super::place::{self, Place, Sides};
use super::settle::{Above, Settled};
use super::splice::splice;
use crate::already::{self, Copy};
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::shown::counted;
use crate::text::edit::{TextEdit, slice};
use crate::text::find::{self, FindError, Needle};
use crate::text::lines::Text;

/// What became of a hunk, unless it was made before.
///
/// # Errors
/// Why it has no place, or that it was made before, or that it would be made once more.
pub(super) fn check<'h>(
    hunk: &'h Hunk,
    others: &[Hunk],
    settled: Result<Settled<'h>, Failure>,
    above: &Above<'_>,
    work: &mut Work<'_>,
) -> Result<Settled<'h>, Failure> {
    let text = above.text;
    let Settled { reading, place } = match settled {
        Ok(settled) => settled,
        Err(failure) => first_of_equal(hunk, others, above, &failure, work)
            .ok_or_else(|| between(text, hunk, &failure, work).map_or(failure, |copy| already::applied(text, &copy)))?,
    };
    if !above.is_proven {
        let sides = Sides::of(&reading.hunk);
        let mut edit = TextEdit::default();
        splice(text, &sides, &place, &mut edit);
        let is_sure = sides.above_after() == Some(above.after(text.lines_above(place.range.start)));
        refuse(text, &sides, &place, &edit.finished(), is_sure, work)?;
    }
    Ok(Settled { reading, place })
}

/// The first of exactly as many places as there are equal hunks without numbers.
fn first_of_equal<'h>(
    hunk: &'h Hunk,
    others: &[Hunk],
    above: &Above<'_>,
    failure: &Failure,
    work: &mut Work<'_>,
) -> Option<Settled<'h>> {
    if !hunk.is_unnumbered || failure.reason != Reason::TextNotUnique {
        return None;
    }
    work.budget.charge(64 * others.len()).ok()?;
    let count = 1 + others.iter().filter(|other| *other == hunk).count();
    let reading = counts::readings(hunk).into_iter().next_back()?;
    let text = above.text;
    let region = above.end.max(text.start())..text.bytes().len();
    let places = find::at_most(text, &Sides::of(&reading.hunk).needle(), region, count + 1, &mut work.budget).ok()?;
    if count < 2 || places.len() != count {
        return None;
    }
    let find::Place { range, .. } = places.into_iter().next()?;
    // Lines of a diff carry their own ends.
    let is_exact = slice(text.bytes(), range.clone()) == Sides::of(&reading.hunk).old;
    let place = Place { range, tier: Tier::Exact, is_elsewhere: false };
    is_exact.then_some(Settled { reading, place })
}

/// Refuses a hunk that was made at its place, or where its header puts it, and one whose old side would be there
/// again. `edit` is what the hunk does; `is_sure` is whether its header agrees with the hunks above it.
fn refuse(
    text: &Text<'_>,
    sides: &Sides<'_>,
    place: &Place,
    edit: &TextEdit,
    is_sure: bool,
    work: &mut Work<'_>,
) -> Result<(), Failure> {
    let explain = |error: FindError, work: &mut Work<'_>| old_text::explain(&error, text, &sides.needle(), work);
    if sides.old.is_empty() {
        let copy = already::below(text, place.range.start, &sides.new);
        return match copy {
            Some(copy) => Err(already::applied(text, &copy)),
            None if sides.hunk.old_start == 0 && !sides.hunk.is_unnumbered && text.lines() > 0 => Err(not_empty(text)),
            None => Ok(()),
        };
    }
    let whole = match place.tier {
        Tier::Exact => Cow::Borrowed(sides.new.as_slice()),
        _ => Cow::Owned(already::side_of(text, &place.range, edit)),
    };
    let copy = already::around(text, &place.range, &whole, place.tier, &mut work.budget);
    if let Some(copy) = copy.map_err(|error| explain(error, work))? {
        return Err(already::applied(text, &copy));
    }
    if let Some(copy) = place.is_elsewhere.then(|| stands_where_stated(text, sides)).flatten() {
        return Err(already::applied(text, &copy));
    }
    if would_stand_again(text, sides, place, &whole, edit, is_sure, work).map_err(|error| explain(error, work))? {
        return Err(already::repeats(text, place.range.start)
            .hint("give the hunk more lines of context, or the diff its index line with the full ids"));
    }
    Ok(())
}

/// Whether the old side of a hunk would be found again once the hunk is made, which leaves `whole` at its place.
fn would_stand_again(
    text: &Text<'_>,
    sides: &Sides<'_>,
    place: &Place,
    whole: &[u8],
    edit: &TextEdit,
    is_sure: bool,
    work: &mut Work<'_>,
) -> Result<bool, FindError> {
    // A blank last line without terminator looks like the terminator of the line above.
    if place.tier == Tier::Eol && already::is_open_end(text, edit) && whole.ends_with(b"\n") {
        return Ok(true);
    }
    if !sides.hunk.lines.iter().any(|line| line.kind == LineKind::Removed) {
        return Ok(false);
    }
    let needle = sides.needle();
    // A hunk that is not where its header says may be found anywhere, with other ends even.
    let left = if place.is_elsewhere {
        slice(&edit.apply(text.bytes()), text.start()..usize::MAX).to_vec()
    } else {
        already::neighbourhood(text, edit, needle.as_lines().len())
    };
    if !find::occurs_in(&left, &needle, false, &mut work.budget)? {
        return Ok(false);
    }
    // A last line without terminator can only be at the end of the file.
    let is_open = !sides.old.ends_with(b"\n");
    let rest = slice(text.bytes(), place.range.end..text.bytes().len());
    // However its lines end, the old side is at most twice as long there.
    let left = [whole, slice(rest, 0..2 * sides.old.len())].concat();
    let stands_there = match place.tier {
        Tier::Exact if is_open => left == sides.old,
        Tier::Exact if left.starts_with(&sides.old) => true,
        _ => sides.ends_alike() && place::begins_except_ends(&left, &sides.old).is_some(),
    };
    Ok(stands_there || (!is_open && (place.is_elsewhere || !is_sure)))
}

/// Where the new side occurs of a hunk that only adds and whose old side occurs nowhere.
fn between(text: &Text<'_>, hunk: &Hunk, failure: &Failure, work: &mut Work<'_>) -> Option<Copy> {
    if failure.reason != Reason::ExpectedMismatch || failure.detail.is_some() {
        return None;
    }
    let reading = counts::readings(hunk).into_iter().next_back()?;
    let sides = Sides::of(&reading.hunk);
    let new = sides.hunk.lines.iter().filter(|line| line.kind != LineKind::Removed);
    let new = Needle::whole_lines(new.map(|line| place::without_end(&line.bytes)));
    already::between(text, &sides.needle(), &new, &mut work.budget).ok().flatten()
}

/// Where a hunk's new side occurs, at the line that its header states.
pub(super) fn stands_where_stated(text: &Text<'_>, sides: &Sides<'_>) -> Option<Copy> {
    let above = sides.above_after()?;
    let mut cursor = text.cursor();
    let is_there = cursor.seek(above).is_ok() && cursor.above() == above;
    let start = if above == 0 { 0 } else { cursor.at() };
    let is_blank = sides.new.iter().all(u8::is_ascii_whitespace);
    place::applied(text, sides, start).filter(|_| is_there && !is_blank).map(Copy::made)
}

/// A hunk of an empty file, for one with text.
fn not_empty(text: &Text<'_>) -> Failure {
    let lines = counted(text.lines(), "line");
    let message = format!("the header of the hunk says that the file is empty (-0,0), and it has {lines}");
    Failure::new(Reason::ExpectedMismatch, message)
        .detail(Detail::NoContext)
        .hint("to add lines above line 1, give the hunk the first lines of the file below them as context")
}
