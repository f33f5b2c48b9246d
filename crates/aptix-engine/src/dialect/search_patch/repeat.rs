//! Whether a search patch would be made once more if it were sent twice.

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::locate::locate_all;
use super::source::Notes;
use crate::already;
use crate::dialect::search_patch::check::{Source, Spot, ValidSearch};
use crate::dialect::search_patch::splice;
use crate::dialect::search_patch::splice::Spliced;
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::find::{self, Needle};
use crate::text::lines::Text;

/// Refuses changes that would all be made once more if they were sent twice.
pub(super) fn refuse(
    changes: &[ValidSearch<'_>],
    text: &Text<'_>,
    spliced: &Spliced,
    is_made_once: bool,
    work: &mut Work<'_>,
) -> Result<(), Failure> {
    let is_open_end = already::is_open_end(text, &spliced.edit);
    if is_made_once && !is_open_end {
        return Ok(());
    }
    let first = changes.iter().enumerate().find_map(|(index, change)| match change.spot {
        Spot::Replace(old) => Some((index, Needle::text(old), change)),
        Spot::End | Spot::Top | Spot::Everything | Spot::After(_) => None,
    });
    match &first {
        // At an end or a line, text is looked for beside its place.
        None if changes.len() == 1 && !is_open_end => return Ok(()),
        Some((index, needle, change))
            if !is_open_end && shows(needle, change, spliced.reports.get(*index).map(|report| report.tier)) =>
        {
            // Only beside the changes can the old text stand again.
            let beside = already::neighbourhood(text, &spliced.edit, needle.as_lines().len());
            let again = find::stands_in(&beside, needle, work.settings.recovers, &mut work.budget);
            if !again.map_err(|error| old_text::explain(&error, text, needle, work))? {
                return Ok(());
            }
        }
        _ => {}
    }
    let index = first.map_or(0, |(index, ..)| index);
    let result = spliced.edit.apply(text.bytes());
    let Ok(result_text) = Text::new(&result) else { return Ok(()) };
    let again = work.rehearse(|work| {
        let mut notes = Notes::default();
        locate_all(changes, &result_text, &mut notes, work).and_then(|splices| splice::all(&result_text, splices, work))
    });
    match again {
        Ok(again) if already::is_made_again(text.bytes(), &result, &again.edit) => {
            let at = spliced.edit.start().unwrap_or_default();
            Err(already::repeats(text, at).change(index))
        }
        _ => Ok(()),
    }
}

/// Whether the text that a change puts in the place of text that stood there byte by byte would show that it was made.
fn shows(needle: &Needle<'_>, change: &ValidSearch<'_>, tier: Option<Tier>) -> bool {
    let Source::Text(new) = change.source else { return false };
    let was_exact = tier.is_some_and(|tier| tier <= Tier::Eol);
    was_exact && !already::adds_nothing(needle.as_lines(), Needle::text(new).as_lines())
}
