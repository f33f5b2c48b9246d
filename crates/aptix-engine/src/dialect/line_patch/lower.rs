//! A line patch on its file: the stated version and the expected lines, or why they are not there. A patch for another version
//! was perhaps applied before.

use alloc::format;
use alloc::vec::Vec;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::reason::Reason;
use aptix_model::report::Normalization;

use crate::digest::{Original, canonical, ended_with, sha256};
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
use crate::text::lines::{BOM, Terminator, Text};

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
                return Err(refuse_version(stated, found, &text, line_changes, fits, limits).into());
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

/// Why a patch for the version `stated` is refused for a text with the digest `found`; `fits` is whether its
/// changes would fit all the same.
fn refuse_version(
    stated: Sha256Digest,
    found: Sha256Digest,
    text: &Text<'_>,
    changes: &[LineChange<'_>],
    fits: bool,
    limits: &Limits,
) -> Failure {
    let before = undone(text, changes, limits);
    if before.as_deref().is_some_and(|before| was(stated, before)) {
        return Failure::new(Reason::AlreadyApplied, "the file already has every change of this patch")
            .current(found)
            .hint("nothing is left to do for this file; take it out of the batch");
    }
    let states_lines = changes.iter().any(|change| change.removed() > 0);
    let has_new_lines = changes.iter().any(|change| !change.new_lines.is_empty());
    let hint = if fits && states_lines {
        "read the file again; every expected line is still where the patch says, so that the same changes may do with the current digest"
    } else if before.is_some() && has_new_lines {
        "read the file again; the new lines are already where the patch would put them: it may have been applied"
    } else if before.is_some() && !fits && text.is_mixed() {
        "read the file again; the lines to delete are not there: the patch may have been applied"
    } else {
        "read the file again and make the patch for what it is now"
    };
    let message = format!("the patch was made for the version with SHA-256 {stated}, and the file now has {found}");
    Failure::new(Reason::ShaMismatch, message).current(found).hint(hint)
}

/// The text with the changes taken back, if it could be their result.
fn undone(text: &Text<'_>, changes: &[LineChange<'_>], limits: &Limits) -> Option<Vec<u8>> {
    let undo = line_changes::undo(changes);
    let errors = match line_changes::lower(text, &undo, limits.line_bytes) {
        Ok(before) => return Some(before.edit.apply(text.bytes())),
        Err(errors) => errors,
    };
    // A blank line that was left last in a file without final newline does not show as a line.
    let is_one_short =
        |error: &LinePatchError| matches!(error, LinePatchError::PastEnd { named, lines } if *named == lines + 1);
    if text.is_unterminated() || !errors.iter().all(|(_, error)| is_one_short(error)) {
        return None;
    }
    let with_blank = [text.bytes(), text.last_terminator().as_bytes()].concat();
    let text = Text::new(&with_blank).ok()?;
    let before = line_changes::lower(&text, &undo, limits.line_bytes).ok()?;
    Some(before.edit.apply(text.bytes()))
}

/// Whether `stated` is the digest of these lines. A result does not always show how the lines that are gone ended,
/// or whether the last one did.
fn was(stated: Sha256Digest, before: &[u8]) -> bool {
    let without_mark = before.strip_prefix(BOM);
    sha256(before) == stated
        || canonical(before) == Some(stated)
        || ended_with(Terminator::Lf, before).contains(&stated)
        || ended_with(Terminator::CrLf, before).contains(&stated)
        || without_mark.is_some_and(|lines| ended_with(Terminator::Lf, lines).contains(&stated))
}
