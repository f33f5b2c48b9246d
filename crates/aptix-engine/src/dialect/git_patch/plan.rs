//! What becomes of the file that one file of a diff is about.

use alloc::borrow::Cow;
use alloc::format;
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::batch::{GitKind, GitPatch, LineKind};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileStatus, Tier, Warning};

use super::counts::{self, Reading};
use super::evidence::{self, Evidence, check_id};
use super::lower::{self, Lowered};
use super::splice::ends_kept;
use super::{place, refusal};
use crate::already;
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect_of_caller, warning};
use crate::planning::draft::{Draft, finish, plan_whole, rename as move_file};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_deleted, check_presence, read_text};
use crate::planning::work::Work;
use crate::readings::may_create;
use crate::shown::quoted_path;
use crate::target::Base;
use crate::text::edit::TextEdit;
use crate::text::outcome::change_report;
use crate::text::whole_text::Formed;

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
        GitKind::Modify if observed.content.is_none() && may_create(patch) => create(base, patch, observed)?,
        GitKind::Modify => modify(base, patch, observed, work)?,
        GitKind::Rename { .. } => rename(base, patch, observed, work)?,
        GitKind::Copy { .. } => copy(base, patch, observed, work)?,
    };
    warnings.append(&mut plan.warnings);
    plan.warnings = warnings;
    Ok(plan)
}

/// Names and counts that can be understood, and are not as they should be.
fn check_form(patch: &GitPatch, recovers: bool, warnings: &mut Vec<Warning>) -> Result<(), Failure> {
    if patch.is_unprefixed {
        let message = "the names in the diff have no prefixes a/ and b/, and were taken as they are";
        if !recovers {
            return Err(Failure::new(Reason::PatchMalformed, message)
                .detail(Detail::Prefix)
                .hint("write '--- a/path' and '+++ b/path'"));
        }
        warnings.push(warning("NO_PREFIX", message));
    }
    let mut hunks = patch.hunks.iter().enumerate().filter(|_| !recovers);
    match hunks.find(|(_, hunk)| !counts::are_right(hunk)) {
        Some((index, hunk)) => Err(refusal::miscounted(hunk, index)),
        None => Ok(()),
    }
}

/// The bytes of the lines of hunks.
fn bytes_of(hunks: &[Reading<'_>]) -> Vec<u8> {
    let lines = hunks.iter().flat_map(|reading| &reading.hunk.lines).map(|line| line.bytes.as_slice());
    lines.collect::<Vec<_>>().concat()
}

/// The warnings about the readings of all hunks.
fn warnings_of(patch: &GitPatch, hunks: &[Reading<'_>]) -> Vec<Warning> {
    let notes = hunks.iter().enumerate().filter_map(|(index, reading)| Some((index, reading.note?)));
    counts::warnings(&patch.hunks, &notes.collect::<Vec<_>>())
}

fn create<'a>(base: Base, patch: &GitPatch, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Findings> {
    let is_new = |reading: &Reading<'_>| reading.hunk.lines.iter().all(|line| line.kind == LineKind::Added);
    let mut hunks = Vec::with_capacity(patch.hunks.len());
    for (index, hunk) in patch.hunks.iter().enumerate() {
        let reading = counts::readings(hunk).into_iter().find(is_new);
        hunks.push(reading.ok_or_else(|| hunk.truncated().change(index))?);
    }
    let bytes = bytes_of(&hunks);
    let result = evidence::check(patch, Evidence::Absent, || bytes.clone())?;
    let mut plan = plan_whole(base, Formed { bytes: Cow::Owned(bytes), ..Formed::default() }, observed)?;
    let mut above = 0;
    plan.changes.extend(hunks.iter().map(|reading| {
        let lines = reading.hunk.lines.len();
        above += lines;
        change_report(Tier::Exact, 1, above - lines, lines)
    }));
    plan.warnings.extend(warnings_of(patch, &hunks));
    plan.warnings.extend(result);
    plan.executable = patch.executable.filter(|is_executable| *is_executable);
    Ok(plan)
}

fn delete<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_deleted(base, observed)?.unwrap_or_else(|| Original::new(&[], None));
    let evidence = check_id(patch, &original)?;
    let readings: Vec<_> = patch.hunks.iter().map(counts::readings).collect();
    let tier_of = |stated: &[u8]| {
        if stated == original.bytes {
            return Some(Tier::Exact);
        }
        let is_same = work.settings.recovers && place::is_same_except_ends(stated, original.bytes);
        is_same.then_some(Tier::Eol)
    };
    // With the lines below the counted ones, or without them.
    let [all, counted] = [<[Reading<'_>]>::first, <[Reading<'_>]>::last]
        .map(|one| readings.iter().filter_map(|readings| one(readings)).cloned().collect::<Vec<_>>());
    let found = [all, counted].into_iter().map(|hunks| (tier_of(&bytes_of(&hunks)), hunks));
    let Some((tier, hunks)) = found.filter_map(|(tier, hunks)| Some((tier?, hunks))).next() else {
        let stated = readings.iter().filter_map(|readings| readings.last()).cloned().collect::<Vec<_>>();
        return Err(refusal::other_content(&bytes_of(&stated), &original).into());
    };
    let mut warnings = warnings_of(patch, &hunks);
    warnings.extend(evidence.warning(patch));
    warnings.extend((tier == Tier::Eol).then(ends_kept));
    let changes = vec![change_report(tier, 1, 0, 0); patch.hunks.len()];
    let draft = Draft { action: FileAction::Delete, normalized: Vec::new(), warnings, changes };
    Ok(finish(observed, Some(original), draft))
}

fn modify<'a>(
    base: Base,
    patch: &GitPatch,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(base, observed)?.unwrap_or_else(|| Original::new(&[], None));
    let Lowered { edit, changes, warnings } = lower_hunks(patch, &original, work)?;
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
    let plan = modify(base, patch, observed, work)?;
    Ok(move_file(plan, observed, work)?)
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

fn other<'a>(observed: &'a Observed<'a>) -> Result<&'a Observed<'a>, Failure> {
    let found = observed.other.as_deref();
    found.ok_or_else(|| defect_of_caller("the other file of a rename or copy was not looked for"))
}

/// The hunks as one edit of a file, whose id is the one that the diff states, if it states one.
fn lower_hunks(patch: &GitPatch, original: &Original<'_>, work: &mut Work<'_>) -> Result<Lowered, Findings> {
    if patch.hunks.is_empty() {
        let warnings = Vec::from_iter(check_id(patch, original)?.warning(patch));
        return Ok(Lowered { edit: TextEdit::default(), changes: Vec::new(), warnings });
    }
    // A deleted file is not edited.
    let file_bytes = if patch.kind == GitKind::Delete { u64::MAX } else { work.settings.limits.file_bytes };
    let text = read_text(original, &Limits { file_bytes, ..work.settings.limits })?;
    let checked = check_id(patch, original).map_err(Findings::from);
    let lowered = checked.and_then(|evidence| {
        let mut lowered = lower::lower(&text, &patch.hunks, original, evidence == Evidence::Fits, work)?;
        lowered.warnings.extend(evidence.warning(patch));
        lowered.warnings.extend(evidence::check(patch, evidence, || lowered.edit.apply(original.bytes))?);
        Ok(lowered)
    });
    lowered.map_err(|found| match lower::is_applied(&text, &patch.hunks) {
        Some(copy) => already::applied(&text, &copy).current(original.digest(0)).into(),
        None => found,
    })
}
