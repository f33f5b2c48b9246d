//! What will happen to each file of a valid batch: planned from values, for all files or for none.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, BTreeSet};
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::mem;

use aptix_model::batch::Content;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, FileStatus, Normalization, Warning};

use crate::content::{self, Suspicion};
use crate::content::{encoding, generated};
use crate::dialect::line_patch::other_version;
use crate::dialect::{anchor_edit, context_patch, git_patch, quote, replacements, search_patch};
use crate::digest::{Original, is_canonical};
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::planning::clipboards::Pasteboard;
use crate::shown::quoted_path;
use crate::text::find::Budget;
use crate::text::line_changes::{self, LinePatchError, Lowered};
use crate::text::lines::{NotText, Text, UTF_32_BE};
use crate::text::nearest::{self, Searches};
use crate::text::whole_text::{self, Formed};
use crate::validate::{Base, LineChange, ValidBatch, ValidEdit, ValidFile, ValidTarget};

/// What to do where a file that is to be created is there already, in the words of no dialect.
pub const REPLACE_HINT: &str = "read the file and edit it, or ask for all of it to be replaced";

/// What the caller found for one file patch.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The path relative to its root, in its real case.
    pub path: WorkspacePath,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// The file's bytes; `None` when there is no file.
    pub content: Option<&'a [u8]>,
    /// The SHA-256 of `content`, if the caller has it. It is believed, and `content` is then hashed no more, unless
    /// a stated digest is another one and could be that of the canonical text.
    pub digest: Option<Sha256Digest>,
    /// Whether the file can be executed.
    pub is_executable: bool,
    /// What was found at the other path, where the file patch names one.
    pub other: Option<Box<Self>>,
}

/// What planning goes by.
#[derive(Clone, Copy, Debug)]
pub struct Settings<'a> {
    /// How large anything may be.
    pub limits: Limits,
    /// Whether old text may differ from the file in white space.
    pub recovers: bool,
    /// Whether a first occurrence is refused where there are several.
    pub refuses_several: bool,
    /// What becomes of new text that does not look like the content of a file.
    pub suspicion: Suspicion,
    /// The clipboards of the author's session.
    pub clipboards: &'a Clipboards,
}

impl Settings<'_> {
    /// What holds unless somebody configures otherwise, in a session without clipboards.
    pub const DEFAULT: Settings<'static> = Settings {
        limits: Limits::DEFAULT,
        recovers: true,
        refuses_several: false,
        suspicion: Suspicion::Refuse,
        clipboards: &NO_CLIPBOARDS,
    };
}

static NO_CLIPBOARDS: Clipboards = Clipboards::new();

/// Texts by name, kept from one batch of a session to the next (REQ-PATCH-003).
pub type Clipboards = BTreeMap<String, String>;

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
    if snapshot.len() != batch.files().len() {
        let message = format!("{} files were read for {} file patches", snapshot.len(), batch.files().len());
        let hint = "this is a defect of the program that applies the batch; nothing was changed";
        return Err(vec![Failure::new(Reason::Internal, message).hint(hint)]);
    }
    if quoted.len() != quoted_reads(batch).count() {
        let message = "the files that blocks of the answer may be named for were not read";
        let hint = "this is a defect of the program that applies the batch; nothing was changed";
        return Err(vec![Failure::new(Reason::Internal, message).hint(hint)]);
    }
    let mut findings = Findings::default();
    let mut work = Work::new(settings, batch, snapshot);
    let mut files = Vec::with_capacity(snapshot.len());
    let mut seen = BTreeMap::new();
    for (index, (file, observed)) in batch.files().iter().zip(snapshot).enumerate() {
        let name = file.patch.target.as_str();
        if let Some(other) = seen.insert((observed.doc_path.as_str(), &observed.path), index) {
            findings.add(|| same_file(other).file(index, name));
            continue;
        }
        let planned = plan_file(file, observed, &mut work).and_then(|mut planned| {
            check_size(&planned, settings.limits.file_bytes)?;
            encoding::check(file, &planned)?;
            content::check(file, &mut planned, settings.suspicion)?;
            generated::warn(&mut planned);
            Ok(planned)
        });
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

fn plan_file<'a>(
    file: &ValidFile<'a>,
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    match &file.edit {
        ValidEdit::Content(content) => {
            plan_whole(file.base, whole_text::create(text_of(content)?, seen(file, observed)), observed)
        }
        ValidEdit::Verbatim(content) => {
            plan_whole(file.base, whole_text::keep_form(text_of(content)?, seen(file, observed)), observed)
        }
        ValidEdit::Delete => Ok(plan_delete(file.base, observed)?),
        ValidEdit::Anchor(edit) => anchor_edit::plan(file.base, edit, observed, &work.settings.limits),
        ValidEdit::Lines(changes) => {
            plan_lines(file.base, changes, observed, &work.settings.limits, &mut work.searches)
        }
        ValidEdit::Diff(patch) => git_patch::plan(file.base, patch, observed, work),
        ValidEdit::Series(parts) => git_patch::series::plan(file.base, parts, observed, work),
        ValidEdit::Search(changes) => search_patch::plan(file.base, changes, observed, work),
        ValidEdit::Steps(steps) => replacements::plan(file.base, steps, observed, work),
        ValidEdit::Context(patch) => context_patch::plan(patch, observed, work),
    }
}

/// Refuses bytes that are too many. Those of a file that goes or only moves are as they were.
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

/// What the files of a batch share while they are planned one after the other.
#[derive(Debug)]
pub(crate) struct Work<'s> {
    pub(crate) settings: &'s Settings<'s>,
    /// Searches of whole files for what an author may have meant.
    pub(crate) searches: Searches,
    /// How much more may be searched for.
    pub(crate) budget: Budget,
    pub(crate) clipboards: Pasteboard<'s>,
    /// Where the files are that the batch renames, by key and path.
    leaving: BTreeSet<(String, WorkspacePath)>,
    /// Bytes of new text that there still is room for.
    room: u64,
}

impl<'s> Work<'s> {
    fn new(settings: &'s Settings<'s>, batch: &ValidBatch<'_>, snapshot: &[Observed<'_>]) -> Self {
        // A file that is written or deleted whole is not searched, and its size must not show in what becomes of others.
        let is_searched = |file: &ValidFile<'_>| {
            !matches!(file.edit, ValidEdit::Content(_) | ValidEdit::Verbatim(_) | ValidEdit::Delete)
        };
        let searched = batch.files().iter().zip(snapshot).filter(|(file, _)| is_searched(file));
        let bytes = searched.map(|(_, observed)| observed.content.map_or(0, <[u8]>::len));
        Self {
            settings,
            searches: Searches::new(),
            budget: Budget::new(bytes.fold(0, usize::saturating_add)),
            clipboards: Pasteboard::new(settings.clipboards),
            leaving: batch.files().iter().zip(snapshot).filter_map(left_place).collect(),
            room: settings.limits.batch_bytes,
        }
    }

    /// Does work whose outcome is only looked at: of what the files share, nothing but the budget of searches changes.
    pub(crate) fn rehearse<T>(&mut self, work: impl FnOnce(&mut Self) -> T) -> T {
        let mut rehearsal = Self {
            settings: self.settings,
            searches: Searches::none(),
            budget: mem::replace(&mut self.budget, Budget::spent()),
            clipboards: self.clipboards.clone(),
            leaving: mem::take(&mut self.leaving),
            room: self.settings.limits.batch_bytes,
        };
        let result = work(&mut rehearsal);
        (self.budget, self.leaving) = (rehearsal.budget, rehearsal.leaving);
        result
    }

    /// Takes room for so many bytes of new text.
    ///
    /// # Errors
    /// When there is less.
    pub(crate) fn take_room(&mut self, bytes: usize) -> Result<(), Failure> {
        let left = self.room.checked_sub(bytes as u64);
        self.room = left.ok_or_else(|| {
            let limit = self.settings.limits.batch_bytes;
            let message = format!("the texts that a batch brings have at most {limit} bytes, and these have more");
            Failure::new(Reason::TooLarge, message).detail(Detail::File).hint("split the batch")
        })?;
        Ok(())
    }
}

/// The place that a file leaves, if it is renamed.
fn left_place((file, observed): (&ValidFile<'_>, &Observed<'_>)) -> Option<(String, WorkspacePath)> {
    file.patch.edit.moved_to().map(|_| (observed.doc_path.clone(), observed.path.clone()))
}

fn text_of(content: &Content) -> Result<&str, Failure> {
    match content {
        Content::Text(text) => Ok(text),
        Content::Blob(blob) => {
            let message = format!("the content is still blob {}, which has to be fetched before planning", blob.sha256);
            let hint = "this is a defect of the program that applies the batch; nothing was changed";
            Err(Failure::new(Reason::Internal, message).hint(hint))
        }
    }
}

/// What a dialect's rules make of one file.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) action: FileAction<'a>,
    pub(crate) normalized: Vec<Normalization>,
    pub(crate) warnings: Vec<Warning>,
    /// One entry for each change, in the patch's order.
    pub(crate) changes: Vec<ChangeReport>,
}

/// The plan that a draft comes to for a file that stays where it is.
pub(crate) fn finish<'a>(observed: &'a Observed<'a>, original: Option<Original<'a>>, draft: Draft<'a>) -> FilePlan<'a> {
    let status = match (&original, &draft.action) {
        (_, FileAction::Delete) => FileStatus::Deleted,
        (None, _) => FileStatus::Created,
        (Some(original), FileAction::Write(bytes)) if original.bytes == &**bytes => FileStatus::Unchanged,
        (Some(original), FileAction::Edit(edit)) if edit.is_identity(original.bytes) => FileStatus::Unchanged,
        (Some(_), _) => FileStatus::Modified,
    };
    let Draft { action, normalized, warnings, changes } = draft;
    FilePlan {
        path: &observed.path,
        doc_path: &observed.doc_path,
        status,
        action,
        moved_to: None,
        executable: None,
        normalized,
        warnings,
        changes,
        original,
    }
}

/// The plan for a file that gets another path as well, where nothing may be, or a file that is renamed too.
pub(crate) fn rename<'a>(
    plan: FilePlan<'a>,
    observed: &'a Observed<'a>,
    work: &Work<'_>,
) -> Result<FilePlan<'a>, Failure> {
    let Some(other) = observed.other.as_deref() else {
        let message = "the path that the file is renamed to was not looked at";
        let hint = "this is a defect of the program that applies the batch; nothing was changed";
        return Err(Failure::new(Reason::Internal, message).hint(hint));
    };
    if other.content.is_some() && !work.leaving.contains(&(other.doc_path.clone(), other.path.clone())) {
        let message =
            format!("the file is to be renamed to {}, and that file already exists", quoted_path(other.path.as_str()));
        return Err(Failure::new(Reason::FileExists, message)
            .hint("choose another path, or delete that file in a batch before this one"));
    }
    Ok(FilePlan { status: FileStatus::Renamed, moved_to: Some(&other.path), ..plan })
}

/// The plan of a file whose new bytes are decided already, as when an edit is undone.
#[must_use]
pub fn decided<'a>(observed: &'a Observed<'a>, action: FileAction<'a>) -> FilePlan<'a> {
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    let (normalized, warnings, changes) = (Vec::new(), Vec::new(), Vec::new());
    finish(observed, original, Draft { action, normalized, warnings, changes })
}

/// What a whole text may be brought into the form of.
fn seen<'o>(file: &ValidFile<'_>, observed: &Observed<'o>) -> Option<&'o [u8]> {
    observed.content.filter(|_| !file.is_blind())
}

/// The plan of a file whose whole content is given.
pub(crate) fn plan_whole<'a>(
    precondition: Base,
    text: Formed<'a>,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    let Formed { bytes, normalized, warnings } = text;
    let is_there = observed.content == Some(&*bytes);
    let original = check_presence(precondition, observed).map_err(|failure| match failure.reason {
        Reason::FileExists if is_there => failure.hint("it already has exactly this content; nothing is left to do"),
        _ => failure,
    })?;
    let action = FileAction::Write(bytes);
    Ok(finish(observed, original, Draft { action, normalized, warnings, changes: Vec::new() }))
}

fn plan_delete<'a>(precondition: Base, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Failure> {
    let original = check_deleted(precondition, observed)?;
    let (normalized, warnings, changes) = (Vec::new(), Vec::new(), Vec::new());
    Ok(finish(observed, original, Draft { action: FileAction::Delete, normalized, warnings, changes }))
}

/// What there is of a file, held to whether it may, or must, be there.
pub(crate) fn check_presence<'a>(precondition: Base, observed: &Observed<'a>) -> Result<Option<Original<'a>>, Failure> {
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    match (precondition, original) {
        (Base::MustNotExist, Some(original)) => {
            Err(Failure::new(Reason::FileExists, "the file is to be created, and it already exists")
                .current(original.digest(0))
                .hint(REPLACE_HINT))
        }
        (Base::MustExist | Base::MustMatch(_), None) => {
            Err(absent("edited").hint("check the path, or create the file instead"))
        }
        (_, original) => Ok(original),
    }
}

/// A file that is not there, and what was to be done with it.
pub(crate) fn absent(purpose: &str) -> Failure {
    Failure::new(Reason::FileMissing, format!("the file is to be {purpose}, and there is none")).hint("check the path")
}

/// What there is of a file that is to go.
pub(crate) fn check_deleted<'a>(base: Base, observed: &Observed<'a>) -> Result<Option<Original<'a>>, Failure> {
    match observed.content {
        None if base != Base::Any => {
            Err(absent("deleted").hint("check the path; if the file is gone already, leave it out of the batch"))
        }
        _ => check_presence(base, observed),
    }
}

fn plan_lines<'a>(
    precondition: Base,
    line_changes: &[LineChange<'a>],
    observed: &'a Observed<'a>,
    limits: &Limits,
    searches: &mut Searches,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(precondition, observed)?.unwrap_or_else(|| Original::new(&[], None));
    let text = read_text(&original, limits)?;
    let lowered = line_changes::lower(&text, line_changes, limits.line_bytes);
    let mut normalized = Vec::new();
    if let Base::MustMatch(stated) = precondition {
        let shared = lowered.as_ref().ok().and_then(|lowered| lowered.edit.start()).unwrap_or(0);
        let found = original.digest(shared);
        if found != stated {
            if !is_canonical(stated, original.bytes) {
                let fits = lowered.is_ok();
                return Err(other_version::refuse(stated, found, &text, line_changes, fits, limits).into());
            }
            normalized.push(Normalization::MatchedCanonicalDigest);
        }
    }
    let Lowered { edit, changes, hides_blank_line, joins_last_line } =
        lowered.map_err(|errors| misfits(&errors, &text, line_changes, &original, searches))?;
    normalized.extend(joins_last_line.then_some(Normalization::FileEofNewlineAdded));
    let warnings = Vec::from_iter(hides_blank_line.then(final_blank_line));
    Ok(finish(observed, Some(original), Draft { action: FileAction::Edit(edit), normalized, warnings, changes }))
}

pub(crate) fn final_blank_line() -> Warning {
    Warning {
        code: "FINAL_BLANK_LINE".to_string(),
        message: "the last line is blank and the file has no final newline, so the blank line is not visible as a line"
            .to_string(),
        line: None,
    }
}

pub(crate) fn read_text<'a>(original: &Original<'a>, limits: &Limits) -> Result<Text<'a>, Failure> {
    let bytes = original.bytes;
    let (found, limit) = (bytes.len() as u64, limits.file_bytes);
    if found > limit {
        let message = format!("a file to be edited has at most {limit} bytes, this has {found}");
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::File)
            .current(original.digest(0))
            .hint("leave this file out of the batch; the limit can only be raised where the batch is applied"));
    }
    Text::new(bytes).map_err(|error| {
        let (detail, error) = match error {
            NotText::Nul(_) if bytes.starts_with(UTF_32_BE) => (Detail::Encoding, NotText::Encoding),
            NotText::Encoding => (Detail::Encoding, error),
            NotText::Nul(_) => (Detail::Binary, error),
        };
        Failure::new(Reason::NotText, error.to_string())
            .detail(detail)
            .current(original.digest(0))
            .hint("only text can be edited; leave this file out of the batch")
    })
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
            let failure = nearest::explain(error, text, change).change(change.index()).current(found);
            nearest::look_around(failure, error, text, change, searches)
        });
    }
    findings
}

#[cfg(test)]
mod tests {
    use alloc::borrow::ToOwned as _;

    use aptix_model::batch::{Batch, CreateFile, FileEdit, FilePatch, Replacement, Replacements, Scope, Target};

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
            format!("{:?}", Work::new(&Settings::DEFAULT, &valid, &observed).budget)
        };
        let small = budget(["a", "x", "x"]);
        assert_eq!(budget(["a", &large, &large]), small);
        assert_ne!(budget([&large, "x", "x"]), small);
    }
}
