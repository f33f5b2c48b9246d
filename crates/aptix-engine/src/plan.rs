//! What will happen to each file of a valid batch: planned from values, for all files or for none.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::String;
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::plan::{Place, Plan};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, FileStatus, Warning};

use crate::already;
use crate::content::{self, encoding};
use crate::dialect::{
    anchor_edit, context_patch, git_patch, line_patch, quote, replacements, search_patch, whole_file,
};
use crate::digest::sha256;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect_of_caller};
use crate::places::{changed, rebased};
use crate::planning::clipboards::Clipboards;
use crate::planning::draft::decided;
use crate::planning::observed::Observed;
use crate::planning::settings::Settings;
use crate::planning::work::Work;
use crate::target::ValidTarget;
use crate::text::lines::Text;
use crate::text::whole_text;
use crate::valid::{ValidBatch, ValidEdit, ValidFile};

/// What will happen to the files of a batch: all of it, or nothing.
#[derive(Debug)]
pub struct BatchPlan<'a> {
    /// One plan for each file patch, in the batch's order.
    pub files: Vec<FilePlan<'a>>,
    /// What the author should know about the batch as a whole.
    pub warnings: Vec<Warning>,
    /// The clipboards that have another text once the batch is applied.
    pub clipboards: Clipboards,
}

/// The files that one file patch needs.
#[derive(Clone, Copy, Debug)]
pub struct Reads<'b> {
    /// Its target.
    pub target: &'b ValidTarget,
    /// The path it is renamed to, or the file it is made a copy of.
    pub other: Option<&'b ValidTarget>,
}

/// Which files a plan will need, in batch order.
pub fn reads<'b>(batch: &'b ValidBatch<'_>) -> impl Iterator<Item = Reads<'b>> {
    batch.files().iter().map(|file| Reads { target: &file.target, other: file.other.as_ref() })
}

/// Which files the quotes of a batch may be named for: one for each name of each quote, in order.
pub fn quoted_reads<'b>(batch: &'b ValidBatch<'_>) -> impl Iterator<Item = &'b ValidTarget> {
    batch.quotes().iter().flat_map(|quote| quote.names.iter().map(|name| &name.target))
}

/// Plans a batch without quotes against what was found for its file patches, one observation for each, in batch order.
///
/// # Errors
/// Everything that keeps the batch from being applied, in all files at once: up to a hundred failures, then how
/// many more there are.
pub fn plan<'a>(
    batch: &ValidBatch<'a>,
    snapshot: &'a [Observed<'a>],
    settings: &Settings<'_>,
) -> Result<BatchPlan<'a>, Vec<Failure>> {
    plan_quoting(batch, snapshot, &[], settings)
}

/// Plans a batch against what was found for its file patches, as [`plan`] does, and for its quotes: an entry for each of
/// [`quoted_reads`], empty where a name leads to no place. Quotes are held against the files once these are planned.
///
/// # Errors
/// As [`plan`]; and a failure for each block that is named for a file, and neither edits nor quotes it.
pub fn plan_quoting<'a>(
    batch: &ValidBatch<'a>,
    snapshot: &'a [Observed<'a>],
    quoted: &[Option<Observed<'_>>],
    settings: &Settings<'_>,
) -> Result<BatchPlan<'a>, Vec<Failure>> {
    plan_all(batch, snapshot, quoted, settings, None)
}

/// Plans a prepared batch, as [`plan_quoting`] does: as it was planned then or, where a file changed elsewhere meanwhile, the
/// same change at the places as they are now; the report warns of that. Files that are withheld were not bound, and are planned
/// as they are.
///
/// # Errors
/// As [`plan_quoting`]; FILE_CHANGED for each file that would not become what it was planned to.
pub fn plan_prepared<'a>(
    batch: &ValidBatch<'a>,
    snapshot: &'a [Observed<'a>],
    quoted: &[Option<Observed<'_>>],
    settings: &Settings<'_>,
    prepared: &Plan,
) -> Result<BatchPlan<'a>, Vec<Failure>> {
    let (files, lists) = (prepared.report.files.len(), prepared.places.len());
    if files != snapshot.len() || lists != snapshot.len() {
        let message =
            format!("the plan is about {files} files and the places of {lists}, the batch has {}", snapshot.len());
        return Err(vec![Failure::new(Reason::InvalidRequest, message)]);
    }
    plan_all(batch, snapshot, quoted, settings, Some(prepared))
}

fn plan_all<'a>(
    batch: &ValidBatch<'a>,
    snapshot: &'a [Observed<'a>],
    quoted: &[Option<Observed<'_>>],
    settings: &Settings<'_>,
    prepared: Option<&Plan>,
) -> Result<BatchPlan<'a>, Vec<Failure>> {
    if snapshot.len() != batch.files().len() {
        let message = format!("{} files were read for {} file patches", snapshot.len(), batch.files().len());
        return Err(vec![defect_of_caller(message)]);
    }
    if quoted.len() != quoted_reads(batch).count() {
        return Err(vec![defect_of_caller("the files that blocks of the answer may be named for were not read")]);
    }
    let mut findings = Findings::default();
    let mut work = shared(settings, batch, snapshot);
    let mut files = Vec::with_capacity(snapshot.len());
    let mut seen = BTreeMap::new();
    for (index, (file, observed)) in batch.files().iter().zip(snapshot).enumerate() {
        let name = file.patch.target.as_str();
        if let Some(other) = seen.insert((observed.doc_path.as_str(), &observed.path), index) {
            findings.add(|| same_file(other).file(index, name));
            continue;
        }
        let prepared = prepared.and_then(|plan| plan.report.files.get(index).zip(plan.places.get(index)));
        let planned = match prepared {
            Some((then, _)) if !is_of(then, observed) => {
                Err(changed("the path of the edit leads to another file now").into())
            }
            Some((then, places)) if !file.is_blind && then.withheld.is_none() => {
                plan_file_as_prepared(file, observed, &mut work, (then, places))
            }
            Some(_) | None => plan_checked(file, observed, &mut work),
        };
        match planned {
            Ok(file) => files.push(file),
            Err(found) => findings.absorb(found, |failure| failure.file(index, name)),
        }
    }
    let files = findings.or(files)?;
    let warnings = quote::settle(batch.quotes(), quoted, &files, &mut work.budget)?;
    Ok(BatchPlan { files, warnings, clipboards: work.clipboards.into_changed() })
}

/// What a file patch is refused for whose file an earlier one, at this position from 0, names too.
#[must_use]
pub fn same_file(other: usize) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("entry {} of the batch leads to the same file", other + 1))
        .detail(Detail::DuplicateFile)
        .hint("put all changes of one file into one entry")
}

/// Plans a file, and checks what becomes of it.
fn plan_checked<'a>(
    file: &ValidFile<'a>,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let mut planned = plan_file(file, observed, work)?;
    planned.check()?;
    check_size(&planned, work.settings.limits.file_bytes)?;
    encoding::check(&file.patch.edit, &planned)?;
    content::check(&file.patch.edit, file.is_blind, &mut planned, work.settings.suspicion)?;
    planned.is_authored = true;
    Ok(planned)
}

/// Whether what was planned then was planned for this file: with other roots, one path may lead to two.
fn is_of(then: &FileReport, now: &Observed<'_>) -> bool {
    then.doc_path == now.doc_path && then.paths_in_root().0 == now.path.as_str()
}

/// Plans a file as it was planned before: of the same bytes the same ones become, or its places are moved.
fn plan_file_as_prepared<'a>(
    file: &ValidFile<'a>,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
    (then, places): (&FileReport, &[Place]),
) -> Result<FilePlan<'a>, Findings> {
    let before = observed.content.map(|bytes| observed.digest.unwrap_or_else(|| sha256(bytes)));
    if before == then.sha256_before {
        let planned = plan_checked(file, observed, work)?;
        let after = (planned.action != FileAction::Delete).then(|| planned.digest_after(&planned.content()));
        let is_moved_alike = planned.moved_to.map(WorkspacePath::as_str) == then.paths_in_root().1;
        let is_same = after == then.written.map(|written| written.sha256) && planned.status == then.status;
        let is_same = is_same && is_moved_alike;
        return if is_same { Ok(planned) } else { Err(changed("it would become another file now").into()) };
    }
    // What an edit moves to or from a clipboard, it moves as it is planned.
    let places = if file.patch.edit.uses_clipboards() { &[] } else { places };
    let planned = rebased(then, places, observed.content, |action| decided(observed, action));
    let planned = planned.and_then(|planned| refuse_made(&planned).map(|()| planned));
    let planned = planned.map_err(|failure| Failure { current_sha256: before, ..failure })?;
    check_size(&planned, work.settings.limits.file_bytes)?;
    Ok(planned)
}

/// Refuses a plan that was moved to where its lines already are: the same edit, prepared twice, adds them once.
fn refuse_made(planned: &FilePlan<'_>) -> Result<(), Failure> {
    let (FileAction::Edit(edit), Some(now)) = (&planned.action, planned.base()) else { return Ok(()) };
    let Ok(text) = Text::new(now) else { return Ok(()) };
    already::made(&text, edit).map_or(Ok(()), |copy| Err(already::applied(&text, &copy)))
}

fn plan_file<'a>(
    file: &ValidFile<'a>,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    match &file.edit {
        ValidEdit::Content(content) => {
            whole_file::write(file.base, content, whole_text::create, file.is_blind, observed)
        }
        ValidEdit::Verbatim(content) => {
            whole_file::write(file.base, content, whole_text::keep_form, file.is_blind, observed)
        }
        ValidEdit::Delete => Ok(whole_file::delete(file.base, observed)?),
        ValidEdit::Anchor(edit) => anchor_edit::plan(file.base, edit, observed, work),
        ValidEdit::Lines(changes) => line_patch::plan(file.base, changes, observed, work),
        ValidEdit::Diff(patch) => git_patch::plan(file.base, patch, observed, work),
        ValidEdit::Series(parts) => git_patch::plan_series(file.base, parts, observed, work),
        ValidEdit::Search(changes) => search_patch::plan(file.base, changes, observed, work),
        ValidEdit::Steps(steps) => replacements::plan(file.base, steps, observed, work),
        ValidEdit::Context(patch) => context_patch::plan(patch, observed, work),
    }
}

/// Refuses bytes that are too many. Those of a file that is deleted or only moved are unchanged.
fn check_size(plan: &FilePlan<'_>, limit: u64) -> Result<(), Failure> {
    let found = match &plan.action {
        FileAction::Write(bytes) => bytes.len(),
        FileAction::Edit(edit) if edit.start().is_some() => edit.length_after(plan.base().map_or(0, <[u8]>::len)),
        FileAction::Edit(_) | FileAction::Delete => return Ok(()),
    };
    if found as u64 <= limit || plan.status == FileStatus::Unchanged {
        return Ok(());
    }
    let message = format!("a file that is edited or made has at most {limit} bytes, and this one would have {found}");
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::File)
        .hint("make smaller changes; the limit can only be raised where the batch is applied"))
}

/// What the files of this batch share.
fn shared<'s>(settings: &'s Settings<'s>, batch: &ValidBatch<'_>, snapshot: &[Observed<'_>]) -> Work<'s> {
    // A file that is written or deleted whole is not searched, and its size must not show in what becomes of others.
    let is_searched =
        |file: &ValidFile<'_>| !matches!(file.edit, ValidEdit::Content(_) | ValidEdit::Verbatim(_) | ValidEdit::Delete);
    let searched = batch.files().iter().zip(snapshot).filter(|(file, _)| is_searched(file));
    let bytes = searched.map(|(_, observed)| observed.content.map_or(0, <[u8]>::len));
    let leaving = batch.files().iter().zip(snapshot).filter_map(left_place).collect();
    Work::new(settings, bytes.fold(0, usize::saturating_add), leaving)
}

/// The place that a file leaves, if it is renamed.
fn left_place((file, observed): (&ValidFile<'_>, &Observed<'_>)) -> Option<(String, WorkspacePath)> {
    file.patch.edit.moved_to().map(|_| (observed.doc_path.clone(), observed.path.clone()))
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;

    use aptix_model::batch::{
        Batch, Content, CreateFile, FileEdit, FilePatch, Replacement, Replacements, Scope, Target,
    };
    use aptix_model::limits::Limits;

    use super::*;
    use crate::validate::validate;

    /// The size of a file that is written or deleted whole does not show in whether another file can be searched.
    #[test]
    fn only_files_that_are_searched_add_to_the_work_of_searches() {
        let patch =
            |path: &str, edit| FilePatch { target: Target::Path(path.to_owned()), key: None, label: None, edit };
        let step = Replacement { find: "a".to_owned(), replace: "b".to_owned(), scope: Scope::First };
        let whole = CreateFile { content: Content::Text("x".to_owned()), overwrite: true, content_format: None };
        let files = vec![
            patch("searched", FileEdit::Replacements(Replacements { steps: vec![step] })),
            patch("written", FileEdit::CreateFile(whole)),
            patch("deleted", FileEdit::DeleteFile),
        ];
        let batch = Batch { files, ..Batch::default() };
        let valid = validate(&batch, &Limits::DEFAULT).unwrap();
        let large = "x".repeat(1000);
        let budget = |contents: [&str; 3]| {
            let observed = batch.files.iter().zip(contents).map(|(file, content)| Observed {
                path: WorkspacePath::new(file.target.as_str()).unwrap(),
                doc_path: file.target.as_str().to_owned(),
                content: Some(content.as_bytes()),
                digest: None,
                is_executable: false,
                other: None,
            });
            let observed: Vec<_> = observed.collect();
            format!("{:?}", shared(&Settings::DEFAULT, &valid, &observed).budget)
        };
        let small = budget(["a", "x", "x"]);
        assert_eq!(budget(["a", &large, &large]), small);
        assert_ne!(budget([&large, "x", "x"]), small);
    }
}
