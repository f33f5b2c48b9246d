//! The changes of one file, found in the file as it is and made at once.

use super::check::ValidSearch;
use super::locate::locate_all;
use super::source::Notes;
use super::{repeat, splice};
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text};
use crate::planning::work::Work;
use crate::target::Base;

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
        repeat::refuse(changes, &text, &spliced, notes.is_made_once, work)?;
        Ok(spliced)
    });
    let spliced = spliced.map_err(|found| {
        found.map(|failure| match &original {
            Some(original) => failure.current(original.digest(0)),
            None => failure,
        })
    })?;
    let Notes { mut normalized, mut warnings, .. } = notes;
    normalized.extend(spliced.normalized);
    warnings.extend(spliced.warnings);
    let draft = Draft { action: FileAction::Edit(spliced.edit), normalized, warnings, changes: spliced.reports };
    Ok(finish(observed, original, draft))
}
