//! Which reading of a hunk the file confirms, and where it is.

use aptix_model::batch::{Hunk, LineKind};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::Tier;

use super::counts::{self, Proof, Reading};
use super::place::{self, Misplaced, Place, Sides};
use super::refusal;
use crate::planning::work::Work;
use crate::text::edit::TextEdit;
use crate::text::find::FindError;
use crate::text::lines::{Cursor, Text};

/// A hunk whose lines and place are known.
pub(super) struct Settled<'h> {
    pub(super) reading: Reading<'h>,
    pub(super) place: Place,
}

/// A text, and what the hunks above one do to it.
pub(super) struct Above<'t> {
    pub(super) text: &'t Text<'t>,
    /// Whether the text is proven to be the one that the hunks were made from, so that they cannot have been made before.
    pub(super) is_proven: bool,
    pub(super) edit: TextEdit,
    cursor: Cursor<'t>,
    /// Whether the headers of all hunks count their lines, so that the new numbers in them mean something.
    is_counted: bool,
    added: usize,
    removed: usize,
    /// Where the last one ends.
    pub(super) end: usize,
}

impl<'t> Above<'t> {
    pub(super) fn new(text: &'t Text<'t>, is_proven: bool, hunks: &[Hunk], edit: TextEdit) -> Self {
        let is_counted = hunks.iter().all(counts::are_right);
        Self { text, is_proven, edit, cursor: text.cursor(), is_counted, added: 0, removed: 0, end: 0 }
    }

    /// How many lines are above a place in the new file, of so many in the old one.
    pub(super) const fn after(&self, above: usize) -> usize {
        (above + self.added).saturating_sub(self.removed)
    }

    /// Continues below a hunk that ends at an offset.
    pub(super) fn add(&mut self, hunk: &Hunk, end: usize) {
        self.pass(hunk);
        self.end = end;
    }

    /// Continues below a hunk that has no place.
    pub(super) fn pass(&mut self, hunk: &Hunk) {
        let (old, new) = hunk.line_counts();
        (self.added, self.removed) = (self.added + new, self.removed + old);
    }
}

/// Finds the first reading of a hunk that the file confirms.
///
/// # Errors
/// What keeps the last reading, which claims least, from its place; or that two readings have different places.
pub(super) fn settle<'h>(hunk: &'h Hunk, above: &mut Above<'_>, work: &mut Work<'_>) -> Result<Settled<'h>, Failure> {
    let is_context = hunk.lines.iter().chain(&hunk.surplus).all(|line| line.kind == LineKind::Context);
    if is_context && !hunk.is_unnumbered && hunk.old_count != hunk.new_count {
        return Err(refusal::unchanged(hunk));
    }
    let mut readings = counts::readings(hunk).into_iter();
    let Some(mut reading) = readings.next() else { return Err(hunk.truncated()) };
    loop {
        let found = locate(&reading, above, work);
        let Some(next) = readings.next() else { return found.map(|place| Settled { reading, place }) };
        match found {
            Ok(place) => {
                if place.is_elsewhere {
                    check_other(&next, &place, above, work)?;
                }
                return Ok(Settled { reading, place });
            }
            // The file has the lines that are open, and does not say which of its places is meant.
            Err(failure) if failure.reason == Reason::TextNotUnique => return Err(failure),
            Err(_) => reading = next,
        }
    }
}

/// Refuses a place elsewhere if another reading of the hunk is at another place.
fn check_other(other: &Reading<'_>, place: &Place, above: &mut Above<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
    let text = above.text;
    match locate(other, above, work) {
        Ok(found) if found.range.start != place.range.start => {
            let lines = [place, &found].map(|place| text.lines_above(place.range.start) + 1).to_vec();
            let several = Misplaced::Several(FindError::Ambiguous { tier: Tier::Exact, lines, has_more: false });
            Err(refusal::explain(&several, text, &Sides::of(&other.hunk), work))
        }
        _ => Ok(()),
    }
}

/// Finds the place of one reading.
fn locate(reading: &Reading<'_>, above: &mut Above<'_>, work: &mut Work<'_>) -> Result<Place, Failure> {
    let text = above.text;
    let sides = Sides::of(&reading.hunk);
    let cursor = &mut above.cursor;
    let stated = sides.above().filter(|above| cursor.seek(*above).is_ok() && cursor.above() == *above);
    let stated_at = stated.map(|_| cursor.at());
    let found = if reading.proof == Proof::OnlyPlace {
        place::find_only(text, &sides, stated_at, work)
    } else {
        let is_sure = !above.is_counted || sides.above_after() == stated.map(|stated| above.after(stated));
        place::find(text, &sides, stated_at, is_sure, work)
    };
    let found = found.and_then(|place| match &reading.proof {
        // How the last line ends never arrived, and the others end in several ways.
        Proof::Completion(hunk) if place.tier == Tier::Eol && hunk.has_mixed_ends() => Err(Misplaced::NotFound),
        Proof::Completion(hunk) if place.is_elsewhere => {
            place::find_only(text, &Sides::of(hunk), stated_at, work).map(|_| place)
        }
        _ => Ok(place),
    });
    let found = found.map_err(|error| refusal::explain(&error, text, &sides, work));
    let found = found.and_then(|place| check_place(&sides, place, above, work));
    match &reading.proof {
        Proof::Place => found,
        Proof::OnlyPlace if reading.hunk.is_unnumbered => found,
        Proof::OnlyPlace => found.map_err(|failure| refusal::truncated(&reading.hunk, failure)),
        Proof::Completion(hunk) => found.map_err(|failure| refusal::truncated(hunk, failure)),
    }
}

/// Refuses a place that is not below the hunk above, and one elsewhere that is one of two once the hunks above are made.
fn check_place(sides: &Sides<'_>, place: Place, above: &Above<'_>, work: &mut Work<'_>) -> Result<Place, Failure> {
    let Above { text, edit, .. } = above;
    if place.range.start < above.end {
        return Err(refusal::order(text.lines_above(place.range.start) + 1));
    }
    if place.is_elsewhere && edit.start().is_some() {
        let several = work.budget.charge(2 * text.bytes().len()).and_then(|()| {
            let image = edit.clone().finished().apply(text.bytes());
            if place.tier == Tier::Eol || place::count(&image, &sides.old) == 1 {
                return Ok(());
            }
            let lines = [text.lines_above(place.range.start) + 1].to_vec();
            Err(FindError::Ambiguous { tier: Tier::Exact, lines, has_more: true })
        });
        several.map_err(|error| refusal::explain(&Misplaced::Several(error), text, sides, work))?;
    }
    Ok(place)
}
