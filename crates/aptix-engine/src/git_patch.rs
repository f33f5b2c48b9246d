//! One file of a diff: it is changed, comes, goes, gets another path, or comes as a copy (FILE-SPEC 3).
//!
//! The lines of a diff carry their own terminators. What a hunk takes away or keeps must stand in the file byte by byte,
//! or, with a warning, but for terminators that the file then keeps.

mod blob;
mod lower;
mod place;
mod refusal;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::ToString;
use alloc::vec::Vec;

use aptix_model::batch::{GitKind, GitPatch, Hunk, LineKind};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, FileStatus, Tier, Warning};

use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::plan::{Draft, Observed, Work, check_presence, finish, plan_whole, read_text, rename as move_file};
use crate::shown::{counted, quoted_path};
use crate::splice::narrow;
use crate::text_edit::TextEdit;
use crate::validate::Base;
use lower::Lowered;

/// Plans one file of a diff.
pub(crate) fn plan<'a>(
    base: Base,
    patch: &'a GitPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let mut warnings = Vec::new();
    check_form(patch, work.settings.recovers, &mut warnings)?;
    let mut plan = match patch.kind {
        GitKind::Create => create(base, patch, observed)?,
        GitKind::Delete => delete(base, patch, observed, work)?,
        GitKind::Modify => modify(base, patch, observed, work)?,
        GitKind::Rename { .. } => rename(base, patch, observed, work)?,
        GitKind::Copy { .. } => copy(base, patch, observed, work)?,
    };
    warnings.append(&mut plan.warnings);
    plan.warnings = warnings;
    Ok(plan)
}

/// How many lines a hunk has of the old file, and how many of the new one.
pub(crate) fn lines_of(hunk: &Hunk) -> (usize, usize) {
    let count = |other: LineKind| hunk.lines.iter().filter(|line| line.kind != other).count();
    (count(LineKind::Added), count(LineKind::Removed))
}

/// Whether the counts of a hunk's header are those of its lines.
pub(crate) fn is_counted(hunk: &Hunk) -> bool {
    let (old, new) = lines_of(hunk);
    i64::try_from(old) == Ok(hunk.old_count) && i64::try_from(new) == Ok(hunk.new_count)
}

/// Names and counts that can be understood, and are not as they should be.
fn check_form(patch: &GitPatch, recovers: bool, warnings: &mut Vec<Warning>) -> Result<(), Failure> {
    let miscounted = patch.hunks.iter().enumerate().filter(|(_, hunk)| !is_counted(hunk));
    if patch.is_unprefixed {
        let message = "the names in the diff have no prefixes a/ and b/, and were taken as they are";
        if !recovers {
            return Err(Failure::new(Reason::PatchMalformed, message)
                .detail(Detail::Prefix)
                .hint("write '--- a/path' and '+++ b/path'"));
        }
        warnings.push(Warning { code: "NO_PREFIX".to_string(), message: message.to_string(), line: None });
    }
    if let Some((index, hunk)) = miscounted.clone().next() {
        let (old, new) = lines_of(hunk);
        let others = miscounted.count() - 1;
        let more =
            if others > 0 { format!(", and so are those of {}", counted(others, "other hunk")) } else { "".into() };
        let message = format!(
            "the counts in the header of changes[{index}] are wrong: it says {} and {}, and there are {old} and {new}{more}",
            hunk.old_count, hunk.new_count
        );
        if !recovers {
            return Err(Failure::new(Reason::PatchMalformed, message)
                .detail(Detail::Counts)
                .hint("count context and removed lines for '-', context and added lines for '+'")
                .change(index));
        }
        warnings.push(Warning { code: "HUNK_COUNTS".to_string(), message, line: None });
    }
    Ok(())
}

fn create<'a>(base: Base, patch: &GitPatch, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Findings> {
    let content = patch.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.bytes.as_slice());
    let content = content.collect::<Vec<_>>().concat();
    let mut plan = plan_whole(base, (Cow::Owned(content), Vec::new()), observed)?;
    let mut above = 0;
    plan.changes.extend(patch.hunks.iter().map(|hunk| {
        let start = above + 1;
        above += hunk.lines.len();
        ChangeReport { tier: Tier::Exact, candidates: 1, start_line: narrow(start), end_line: narrow(above) }
    }));
    plan.executable = patch.executable.filter(|is_executable| *is_executable);
    Ok(plan)
}

fn delete<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = there(base, observed)?;
    check_id(patch, &original)?;
    let stated = patch.hunks.iter().flat_map(|hunk| &hunk.lines).map(|line| line.bytes.as_slice());
    let stated = stated.collect::<Vec<_>>().concat();
    let mut warnings = Vec::new();
    let tier = if stated == original.bytes {
        Tier::Exact
    } else if work.settings.recovers && place::is_same_but_for_ends(&stated, original.bytes) {
        warnings.push(lower::ends_kept());
        Tier::Eol
    } else {
        return Err(refusal::other_content(&stated, &original).into());
    };
    let gone = ChangeReport { tier, candidates: 1, start_line: 1, end_line: 0 };
    let changes = patch.hunks.iter().map(|_| gone).collect();
    let draft = Draft { action: FileAction::Delete, normalized: Vec::new(), warnings, changes };
    Ok(finish(observed, Some(original), draft))
}

fn modify<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = there(base, observed)?;
    let lowered = lower_hunks(patch, &original, work)?;
    let Lowered { edit, changes, warnings } = lowered;
    let draft = Draft { action: FileAction::Edit(edit), normalized: Vec::new(), warnings, changes };
    let mut plan = finish(observed, Some(original), draft);
    plan.executable = patch.executable.filter(|is_executable| *is_executable != observed.is_executable);
    if plan.executable.is_some() {
        plan.status = FileStatus::Modified;
    }
    Ok(plan)
}

fn rename<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let to = other(observed)?;
    if observed.content.is_none() && to.content.is_some() {
        let message = format!(
            "the file is to be renamed to {}, which is there, and it itself is not",
            quoted_path(to.path.as_str())
        );
        let hint = "it may have been renamed before; read the file under its new name";
        return Err(Failure::new(Reason::FileMissing, message).hint(hint).into());
    }
    Ok(move_file(modify(base, patch, observed, work)?, observed)?)
}

fn copy<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let from = other(observed)?;
    check_presence(base, observed)?;
    let Some(bytes) = from.content else {
        let message =
            format!("the file is to be a copy of {}, and there is no such file", quoted_path(from.path.as_str()));
        return Err(Failure::new(Reason::FileMissing, message).hint("check the path of the file to copy").into());
    };
    let source = Original::new(bytes, from.digest);
    let Lowered { edit, changes, warnings } = lower_hunks(patch, &source, work)?;
    work.take_room(bytes.len())?;
    let content = if patch.hunks.is_empty() { Cow::Borrowed(bytes) } else { Cow::Owned(edit.apply(bytes)) };
    let draft = Draft { action: FileAction::Write(content), normalized: Vec::new(), warnings, changes };
    let mut plan = finish(observed, None, draft);
    plan.executable = Some(patch.executable.unwrap_or(from.is_executable)).filter(|is_executable| *is_executable);
    Ok(plan)
}

/// The file that a patch is for.
fn there<'a>(base: Base, observed: &Observed<'a>) -> Result<Original<'a>, Failure> {
    Ok(check_presence(base, observed)?.unwrap_or_else(|| Original::new(&[], None)))
}

fn other<'a>(observed: &'a Observed<'a>) -> Result<&'a Observed<'a>, Failure> {
    observed.other.as_deref().ok_or_else(|| {
        let hint = "this is a defect of the program that applies the batch; nothing was changed";
        Failure::new(Reason::Internal, "the other file of a rename or copy was not looked for").hint(hint)
    })
}

/// The hunks as one edit of a file, whose id is the one that the diff states, if it states one.
fn lower_hunks(patch: &GitPatch, original: &Original<'_>, work: &mut Work<'_>) -> Result<Lowered, Findings> {
    if patch.hunks.is_empty() {
        check_id(patch, original)?;
        return Ok(Lowered { edit: TextEdit::default(), changes: Vec::new(), warnings: Vec::new() });
    }
    // A file that goes is not edited.
    let file_bytes = if patch.kind == GitKind::Delete { u64::MAX } else { work.settings.limits.file_bytes };
    let text = read_text(original, &Limits { file_bytes, ..work.settings.limits })?;
    let is_other_blob = check_id(patch, original);
    let lowered =
        is_other_blob.map_err(Findings::from).and_then(|()| lower::lower(&text, &patch.hunks, original, work));
    lowered.map_err(|found| {
        if lower::is_applied(&text, &patch.hunks) { refusal::already_applied(original).into() } else { found }
    })
}

fn check_id(patch: &GitPatch, original: &Original<'_>) -> Result<(), Failure> {
    match &patch.base_id {
        Some(id) if !blob::is_of(id, original.bytes) => Err(refusal::other_blob(id, original)),
        _ => Ok(()),
    }
}
