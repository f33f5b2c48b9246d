//! A block: whole lines in the place of whole lines that occur only once, or at the end of the file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::check::lines;
use super::sequence::{Attempt, Made, Sequence};
use crate::already::{self, Copy, Proves};
use crate::findings::defect;
use crate::nearest::{line_change, old_text};
use crate::planning::work::Work;
use crate::text::edit::TextEdit;
use crate::text::find::{self, Place, Shift, is_blank};
use crate::text::line_changes::{self, LineChange, LinePatchError};
use crate::text::lines::Text;

/// Makes one step; of several places the one that is reserved for it will do, or the one at the offset `hint`.
pub(super) fn make<'s>(
    sequence: &mut Sequence<'_, 's>,
    attempt: &Attempt<'_, 's>,
    (reserved, hint): (Option<usize>, Option<usize>),
    work: &mut Work<'_>,
) -> Result<Made, Failure> {
    work.take_room(attempt.step.replace.len())?;
    if attempt.step.find.is_empty() {
        return append(sequence, attempt, work);
    }
    let place = sequence.only(attempt, reserved.or(hint), work)?;
    if reserved.is_none() {
        sequence.is_choice |= place.candidates > 1;
        refuse_elsewhere(sequence, attempt, hint, &place)?;
    }
    rewrite(attempt, place, work)
}

/// Appends the lines of a block to the file.
fn append<'s>(sequence: &Sequence<'_, 's>, attempt: &Attempt<'_, 's>, work: &Work<'_>) -> Result<Made, Failure> {
    let text = attempt.text;
    let new: Vec<String> = lines(attempt.step.replace).map(String::from).collect();
    let end = text.bytes().len();
    let ended: String = new.iter().flat_map(|line| [line.as_str(), "\n"]).collect();
    let is_own = |copy: &Copy| !sequence.is_of_equal(attempt, &copy.range) && sequence.wrote(&copy.range);
    if let Some(copy) = already::above(text, end, ended.as_bytes()).filter(|copy| !is_own(copy)) {
        return Err(already::applied(text, &copy));
    }
    let (edit, joins_last_line) = lower(text, &LineChange::new(0, text.lines(), &[], &new), work)?;
    let (tier, candidates, at) = (Tier::Exact, 1, end..end);
    Ok(Made { edit, tier, candidates, has_other_ends: false, joins_last_line, at, is_found_again: true })
}

/// Replaces the lines at a place. Lines that the block keeps stay as the file has them, whatever white space the author
/// has there.
fn rewrite(attempt: &Attempt<'_, '_>, place: Place, work: &Work<'_>) -> Result<Made, Failure> {
    let Attempt { step, needle, text, .. } = attempt;
    let new: Vec<&str> = lines(step.replace).collect();
    let above = text.lines_above(place.range.start);
    let (dropped_above, _) = place.dropped;
    let old = needle.lines_within(place.dropped).ok_or_else(unmade)?;
    let new = without_edges(&new, place.dropped);
    let same = |(old, new): &(&&[u8], &&str)| **old == new.as_bytes();
    let most = old.len().min(new.len());
    let head = old.iter().zip(new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take(most - head).take_while(same).count();
    let mut cursor = text.cursor_at(place.range.start, above);
    let going: Vec<String> = cursor
        .by_ref()
        .take(old.len())
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .skip(head)
        .take(old.len() - head - tail)
        .collect();
    let added = new.get(head..new.len() - tail).ok_or_else(unmade)?;
    let added = shifted(added, dropped_above + head, &place, old)
        .map_err(|error| old_text::unshiftable(&error, text, above + 1, old.len()))?;
    let (edit, joins_last_line) = if going.is_empty() && added.is_empty() {
        (TextEdit::default(), false)
    } else {
        lower(text, &LineChange::new(0, above + head, &going, &added), work)?
    };
    let is_found_again = attempt.is_found_again(&place);
    let Place { tier, candidates, range, .. } = place;
    Ok(Made { edit, tier, candidates, has_other_ends: false, joins_last_line, at: range, is_found_again })
}

/// Refuses a place that is not where the author saw it while the new lines occur there.
fn refuse_elsewhere(
    sequence: &Sequence<'_, '_>,
    attempt: &Attempt<'_, '_>,
    hint: Option<usize>,
    place: &Place,
) -> Result<(), Failure> {
    let Attempt { step, text, .. } = attempt;
    let Some(hint) = hint.filter(|hint| *hint != place.range.start) else { return Ok(()) };
    match already::below(text, hint, step.replace.as_bytes()).filter(|copy| !sequence.wrote(&copy.range)) {
        Some(copy) if copy.proves == Proves::Made => Err(already::applied(text, &copy)),
        _ => Ok(()),
    }
}

/// New lines without blank ones at the edges, as many as the file lacks of the old ones.
fn without_edges<'n, 't>(new: &'n [&'t str], (above, below): (usize, usize)) -> &'n [&'t str] {
    let blank = |line: &&&str| is_blank(line.as_bytes());
    let (_, rest) = new.split_at(new.iter().take(above).take_while(blank).count());
    let end = rest.iter().rev().take(below).take_while(blank).count();
    rest.split_at(rest.len() - end).0
}

/// New lines indented like the old ones in the file.
fn shifted(new: &[&str], above: usize, place: &Place, old: &[&[u8]]) -> Result<Vec<String>, find::Unshiftable> {
    place.shift.check(old.iter().copied(), new.iter().map(|line| line.as_bytes()))?;
    let shift = |(position, line): (usize, &&str)| {
        let shift = if is_blank(line.as_bytes()) { &Shift::None } else { &place.shift };
        let (indent, rest) = shift.apply(line, above + position + 1, old)?;
        Ok(format!("{indent}{rest}"))
    };
    new.iter().enumerate().map(shift).collect()
}

/// The edit, and whether an unterminated last line gets a terminator because lines are added below it.
fn lower(text: &Text<'_>, change: &LineChange<'_>, work: &Work<'_>) -> Result<(TextEdit, bool), Failure> {
    let lowered = line_changes::lower(text, &[*change], work.settings.limits.line_bytes);
    lowered.map(|lowered| (lowered.edit.finished(), lowered.joins_last_line)).map_err(|errors| {
        let error = errors.first().map(|(_, error)| error);
        error.map_or_else(unmade, |error: &LinePatchError| line_change::explain(error, text, change))
    })
}

/// The lines of a block are not where the search has found them: a defect.
fn unmade() -> Failure {
    defect("a block could not be made")
}
