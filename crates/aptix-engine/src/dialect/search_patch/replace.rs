//! Replaces text that occurs in the file once.

use alloc::format;
use alloc::string::String;

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::source::{Notes, new_text};
use crate::already::{self, Copy};
use crate::dialect::search_patch::check::{Source, Spot, ValidSearch};
use crate::dialect::search_patch::splice::{Rank, Splice};
use crate::findings::{defect, warning};
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::edit::slice;
use crate::text::find::{self, FindError, Needle, Place, Shift, Unshiftable};
use crate::text::lines::Text;
use crate::text::new_text::{self, Fitted};

/// Finds the one place of a text, and its new text.
///
/// # Errors
/// When there is none, or several, or when the change was made before.
pub(super) fn locate(
    index: usize,
    change: &ValidSearch<'_>,
    old: &str,
    text: &Text<'_>,
    notes: &mut Notes,
    work: &mut Work<'_>,
) -> Result<Splice, Failure> {
    let needle = Needle::text(old);
    let (region, recovers) = (text.start()..text.bytes().len(), work.settings.recovers);
    let found = find::only(text, &needle, region, None, recovers, &mut work.budget);
    let place = match found {
        Ok(place) => place,
        Err(error) => {
            if let Source::Text(_) = change.source
                && let Some(copy) = made_before(&error, change, &needle, text, work)?
            {
                return Err(already::applied(text, &copy));
            }
            let failure = old_text::explain(&error, text, &needle, work);
            return Err(match change.source {
                Source::Text(new) => old_text::with_new_text(failure, text, new),
                Source::Clipboard(_) | Source::Found => failure,
            });
        }
    };
    at(index, change, place, text, notes, work)
}

/// Where the new side occurs of a change whose old side has no place, or several that all have it.
fn made_before(
    error: &FindError,
    change: &ValidSearch<'_>,
    needle: &Needle<'_>,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<Option<Copy>, Failure> {
    let new = new_text(change, work)?;
    let found = match error {
        FindError::NotFound => already::between(text, needle, &Needle::text(&new), &mut work.budget),
        FindError::Ambiguous { has_more: false, tier: Tier::Exact | Tier::Eol, .. } => {
            let region = text.start()..text.bytes().len();
            already::everywhere(text, needle, region, &mut work.budget, |place, budget| {
                existing_copy(text, needle, place, &new, budget)
            })
        }
        FindError::Ambiguous { .. } | FindError::BudgetExceeded => Ok(None),
    };
    found.map_err(|error| old_text::explain(&error, text, needle, work))
}

/// Where the new side of a change occurs around a place of its old side.
pub(super) fn existing_copy(
    text: &Text<'_>,
    needle: &Needle<'_>,
    place: &Place,
    new: &str,
    budget: &mut find::Budget,
) -> Result<Option<Copy>, FindError> {
    let Ok(fitted) = new_text::fit(text, needle, place, new) else { return Ok(None) };
    let Some(whole) = already::whole_side(text, &place.range, &fitted) else { return Ok(None) };
    already::around(text, &place.range, &whole, place.tier, budget)
}

/// The new text at a place of the old text.
///
/// # Errors
/// When the change was made before, and when the text cannot be put there.
pub(super) fn at(
    index: usize,
    change: &ValidSearch<'_>,
    place: Place,
    text: &Text<'_>,
    notes: &mut Notes,
    work: &mut Work<'_>,
) -> Result<Splice, Failure> {
    let Spot::Replace(old) = change.spot else {
        return Err(defect("a place of no text"));
    };
    let needle = Needle::text(old);
    let found = slice(text.bytes(), place.range.clone());
    let new = new_text(change, work)?;
    let line = text.lines_above(place.range.start) + 1;
    let explain = |error| old_text::unshiftable(&error, text, line, needle.as_lines().len());
    if change.reindent.is_some() && place.shift != Shift::None {
        return Err(explain(Unshiftable::Explicit));
    }
    let fit = |place: &Place| new_text::fit(text, &needle, place, &new).map_err(explain);
    let fitted = match change.source {
        Source::Found => Fitted { range: place.range.start..place.range.start, ..Fitted::default() },
        // A clipboard's text stood in a file; the author's mistakes about this place are not in it.
        Source::Clipboard(_) => fit(&Place { shift: Shift::None, dropped: (0, 0), ..place.clone() })?,
        Source::Text(_) => fit(&place)?,
    };
    if let Some(whole) = already::whole_side(text, &place.range, &fitted).filter(|_| change.source != Source::Found) {
        let copy = already::at_place(text, &place, &whole, &Needle::text(&new), &mut work.budget)
            .map_err(|error| old_text::explain(&error, text, &needle, work))?;
        if let Some(copy) = copy {
            return Err(already::applied(text, &copy));
        }
        notes.is_made_once |= place.tier <= Tier::Eol && already::is_found_again(text, &place.range, &whole, false);
    }
    work.take_room(fitted.bytes.len())?;
    notes.note_line_endings(&fitted);
    if let Some(name) = change.keep {
        let kept = String::from_utf8_lossy(found);
        work.clipboards.set(name, &kept)?;
        if kept != old {
            let message =
                format!("clipboard {name:?} holds the file's text, which differs from oldText in white space");
            notes.warnings.push(warning("CLIPBOARD_MODIFIED", message));
        }
    }
    Ok(Splice {
        index,
        rank: Rank::Between,
        matched: place.range,
        fitted,
        tier: place.tier,
        candidates: place.candidates,
    })
}
