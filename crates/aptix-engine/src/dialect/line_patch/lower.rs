//! A line patch on its file: the stated version and the expected lines, or why they are not there.

use alloc::vec::Vec;

use aptix_model::report::Normalization;

use super::other_version;
use crate::digest::{Original, canonical};
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::nearest::line_change;
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text};
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::find::Searches;
use crate::text::line_changes::{self, LineChange, LinePatchError, Lowered, final_blank_line};
use crate::text::lines::Text;

/// Plans the changes of one file.
///
/// # Errors
/// When the file is not the stated version, and every change that does not fit it.
pub(crate) fn plan<'a>(
    precondition: Base,
    line_changes: &[LineChange<'a>],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let limits = &work.settings.limits;
    let original = check_presence(precondition, observed)?.unwrap_or_else(|| Original::new(&[], None));
    let text = read_text(&original, limits)?;
    let lowered = line_changes::lower(&text, line_changes, limits.line_bytes);
    let mut normalized = Vec::new();
    if let Base::MustMatch(stated) = precondition {
        let shared = lowered.as_ref().ok().and_then(|lowered| lowered.edit.start()).unwrap_or(0);
        let found = original.digest(shared);
        if found != stated {
            if canonical(original.bytes) != Some(stated) {
                let fits = lowered.is_ok();
                return Err(other_version::refuse(stated, found, &text, line_changes, fits, limits).into());
            }
            normalized.push(Normalization::MatchedCanonicalDigest);
        }
    }
    let Lowered { edit, changes, hides_blank_line, joins_last_line } =
        lowered.map_err(|errors| misfits(&errors, &text, line_changes, &original, &mut work.searches))?;
    normalized.extend(joins_last_line.then_some(Normalization::FileEofNewlineAdded));
    let warnings = Vec::from_iter(hides_blank_line.then(final_blank_line));
    Ok(finish(observed, Some(original), Draft { action: FileAction::Edit(edit), normalized, warnings, changes }))
}

fn misfits(
    errors: &[(usize, LinePatchError)],
    text: &Text<'_>,
    changes: &[LineChange<'_>],
    original: &Original<'_>,
    searches: &mut Searches,
) -> Findings {
    let found = original.digest(0);
    let mut findings = Findings::default();
    for (position, error) in errors {
        let Some(change) = changes.get(*position) else { continue };
        findings.add(|| {
            let failure = line_change::explain(error, text, change).change(change.index()).current(found);
            line_change::look_around(failure, error, text, change, searches)
        });
    }
    findings
}
