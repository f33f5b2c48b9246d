//! The changes of one file, found in the file as it is and made at once, unless they would be made once more if they were
//! sent twice.

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::check::{Source, Spot, ValidSearch};
use super::locate::locate_all;
use super::source::Notes;
use super::splice::{self, Spliced};
use crate::already;
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::nearest::old_text;
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text, with_current};
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::find::{self, Needle};
use crate::text::lines::Text;

/// Plans the changes of one file.
///
/// # Errors
/// Everything that keeps a change from being made.
pub(crate) fn plan<'a>(
    precondition: Base,
    changes: &[ValidSearch<'a>],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(precondition, observed)?;
    let nothing = Original::new(&[], None);
    let text = read_text(original.as_ref().unwrap_or(&nothing), &work.settings.limits)?;
    let mut notes = Notes::default();
    let spliced = locate_all(changes, &text, &mut notes, work).and_then(|splices| {
        let spliced = splice::all(&text, splices, work)?;
        refuse(changes, &text, &spliced, notes.is_made_once, work)?;
        Ok(spliced)
    });
    let spliced = spliced.map_err(|found| found.map(|failure| with_current(failure, original.as_ref())))?;
    let Notes { mut normalized, mut warnings, .. } = notes;
    normalized.extend(spliced.normalized);
    warnings.extend(spliced.warnings);
    let draft = Draft { action: FileAction::Edit(spliced.edit), normalized, warnings, changes: spliced.reports };
    Ok(finish(observed, original, draft))
}

/// Refuses changes that would all be made once more if they were sent twice.
fn refuse(
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
            // Only beside the changes can the old text occur again.
            let beside = already::neighbourhood(text, &spliced.edit, needle.as_lines().len());
            let again = find::occurs_in(&beside, needle, work.settings.recovers, &mut work.budget);
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
