//! A plan expressed as another kind of edit that leaves the same files.
//!
//! The edit is made from the lines that change; [`verify`] checks that it means the same.

mod context;

use alloc::boxed::Box;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::batch::{
    Batch, Change, Content, FileEdit, FilePatch, LinePatch, Operation, Presence, Replacement, Replacements, Scope,
    SearchChange, SearchOperation, SearchPatch, Target, VERBATIM, WriteFile,
};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::reason::Reason;
use aptix_model::report::FileStatus;

use crate::content;
use crate::diff::{self, Block};
use crate::file_plan::{FileAction, FilePlan};
use crate::git_id;
use crate::plan::{BatchPlan, plan};
use crate::planning::observed::Observed;
use crate::planning::settings::Settings;
use crate::text::edit::slice;
use crate::text::lines::BOM;
use crate::validate::validate;

/// A kind of edit that a plan can be expressed as.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Form {
    /// Whole lines of files pinned by digest.
    LinePatch,
    /// Texts that are unique in one file.
    SearchPatch,
    /// Texts that are unique in their files, one after the other.
    Replacements,
    /// Whole files.
    WholeFiles,
}

impl Form {
    const fn name(self) -> &'static str {
        match self {
            Self::LinePatch => "a line patch",
            Self::SearchPatch => "a search patch",
            Self::Replacements => "a structured patch",
            Self::WholeFiles => "a file bundle",
        }
    }
}

/// Why a plan cannot be expressed in a form.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
enum ExpressError {
    #[error("the edit changes nothing")]
    Nothing,
    #[error("{form} is about one file, and the edit changes {files}")]
    Files { form: &'static str, files: usize },
    #[error("{form} cannot {what}")]
    Action { form: &'static str, what: &'static str },
    #[error("{form} is text, and line {line} is no UTF-8")]
    NotUtf8 { form: &'static str, line: usize },
    #[error("{form} finds its place by text, and an empty file has none")]
    Empty { form: &'static str },
    #[error("{form} would need {changes} unique texts, which takes too long to look for in a file of {bytes} bytes")]
    TooMuch { form: &'static str, changes: usize, bytes: usize },
    #[error("no document in this dialect makes exactly this of the file: its end or its line endings would differ")]
    Differs,
}

impl ExpressError {
    fn failure(&self) -> Failure {
        let hint = match self {
            Self::Nothing => "there is nothing to convert; the files already are as the document has them",
            Self::Files { .. } => "convert to line-patch, git-patch or file-bundle, which are about several files",
            _ => "convert to git-patch, or apply the document as it is",
        };
        Failure::new(Reason::NotExpressible, self.to_string()).hint(hint)
    }
}

/// Expresses a plan in another form.
///
/// # Errors
/// `NOT_EXPRESSIBLE` for every file that the form has no words for.
pub fn express(plan: &BatchPlan<'_>, form: Form) -> Result<Batch, Vec<Failure>> {
    let changed = || plan.files.iter().enumerate().filter(|(_, file)| file.status != FileStatus::Unchanged);
    let files = changed().count();
    if files == 0 {
        return Err(vec![ExpressError::Nothing.failure()]);
    }
    if form == Form::SearchPatch && files > 1 {
        return Err(vec![ExpressError::Files { form: form.name(), files }.failure()]);
    }
    let mut patches = Vec::with_capacity(files);
    let mut failures = Vec::new();
    for (index, file) in changed() {
        match express_file(file, form) {
            Ok(patch) => patches.push(patch),
            Err(error) => failures.push(error.failure().file(index, file.path.as_str())),
        }
    }
    if failures.is_empty() { Ok(Batch { files: patches, ..Batch::default() }) } else { Err(failures) }
}

/// The diff of a whole plan. An index line names what each file was, so that the hunks fit it and nothing else.
///
/// # Errors
/// `NOT_EXPRESSIBLE` when nothing changes.
pub fn diff(plan: &BatchPlan<'_>) -> Result<Vec<u8>, Failure> {
    let diffs = plan.files.iter().filter_map(|file| Some(with_index(file.diff(usize::MAX)?, file)));
    let diff: Vec<u8> = diffs.flatten().collect();
    if diff.is_empty() { Err(ExpressError::Nothing.failure()) } else { Ok(diff) }
}

/// The diff of one file with an index line above the names of its sides.
fn with_index(mut diff: Vec<u8>, file: &FilePlan<'_>) -> Vec<u8> {
    let Some(base) = file.base().filter(|_| file.action != FileAction::Delete) else { return diff };
    if let Some(feed) = memchr::memmem::find(&diff, b"\n--- ") {
        let index = format!("index {}..{}\n", git_id::full(base), git_id::full(&file.content()));
        diff.splice(feed + 1..=feed, index.into_bytes());
    }
    diff
}

/// Checks that a batch makes the same of the same files as a plan does.
///
/// # Errors
/// `NOT_EXPRESSIBLE` if the batch produces another plan.
pub fn verify(batch: &Batch, expected: &BatchPlan<'_>) -> Result<(), Vec<Failure>> {
    let refused = |found: Vec<Failure>| -> Vec<Failure> {
        let again = |failure: Failure| Failure { reason: Reason::NotExpressible, detail: None, ..failure };
        found.into_iter().map(again).collect()
    };
    let wanted: Vec<_> = expected.files.iter().filter(|file| file.status != FileStatus::Unchanged).collect();
    let snapshot: Vec<_> = wanted.iter().map(|file| observed(file)).collect();
    let limits = Limits { created_bytes: u64::MAX, ..Limits::DEFAULT };
    let valid = validate(batch, &limits).map_err(refused)?;
    let found = plan(&valid, &snapshot, &Settings { limits, ..Settings::DEFAULT }).map_err(refused)?;
    let differs = |(index, (wanted, found)): (usize, (&&FilePlan<'_>, &FilePlan<'_>))| {
        let same = wanted.status == found.status
            && wanted.moved_to == found.moved_to
            && wanted.executable == found.executable
            && wanted.content() == found.content();
        (!same).then(|| ExpressError::Differs.failure().file(index, wanted.path.as_str()))
    };
    let failures: Vec<_> = wanted.iter().zip(&found.files).enumerate().filter_map(differs).collect();
    if failures.is_empty() { Ok(()) } else { Err(failures) }
}

/// What was found for a file when its plan was made.
fn observed<'p>(file: &'p FilePlan<'_>) -> Observed<'p> {
    let missing = |path: &aptix_model::path::WorkspacePath| Observed {
        path: path.clone(),
        doc_path: path.as_str().to_lowercase(),
        content: None,
        digest: None,
        is_executable: false,
        other: None,
    };
    Observed {
        content: file.base(),
        digest: file.digest_before(),
        doc_path: file.doc_path.to_string(),
        // A plan states who may execute a file only if that changes.
        is_executable: file.executable == Some(false),
        other: file.moved_to.map(|path| Box::new(missing(path))),
        ..missing(file.path)
    }
}

fn express_file(file: &FilePlan<'_>, form: Form) -> Result<FilePatch, ExpressError> {
    let cannot = |what| ExpressError::Action { form: form.name(), what };
    if file.moved_to.is_some() {
        return Err(cannot("rename a file"));
    }
    if file.executable.is_some() {
        return Err(cannot("say whether a file can be executed"));
    }
    let is_deleted = file.action == FileAction::Delete;
    let edit = match (form, file.base()) {
        (Form::WholeFiles, base) => whole(file, base.is_some())?,
        (_, _) if is_deleted => return Err(cannot("delete a file")),
        (Form::SearchPatch, None) => {
            let change = search_change(SearchOperation::Overwrite, text(form, &file.content(), 0)?);
            FileEdit::SearchPatch(SearchPatch { changes: vec![change] })
        }
        (Form::SearchPatch, Some(base)) if has_no_text(base) => {
            let content = file.content();
            let change =
                search_change(SearchOperation::AppendEof, text(form, slice(&content, base.len()..content.len()), 0)?);
            FileEdit::SearchPatch(SearchPatch { changes: vec![change] })
        }
        (_, None) => return Err(cannot("create a file")),
        (Form::LinePatch, Some(base)) => lines(file, base)?,
        (Form::SearchPatch, Some(base)) => {
            let change = |(old_text, new)| search_change(SearchOperation::Replace { old_text }, new);
            FileEdit::SearchPatch(SearchPatch { changes: pairs(file, base, form)?.map(change).collect() })
        }
        (Form::Replacements, Some(base)) => {
            let step = |(find, replace)| Replacement { find, replace, scope: Scope::First };
            // From the last one up: a step's new text is then never above the next one's old text.
            FileEdit::Replacements(Replacements { steps: pairs(file, base, form)?.rev().map(step).collect() })
        }
    };
    let target = match form {
        Form::LinePatch => Target::DocPath(file.doc_path.to_string()),
        _ => Target::Path(file.path.to_string()),
    };
    Ok(FilePatch { target, key: None, label: None, edit })
}

fn has_no_text(base: &[u8]) -> bool {
    base.is_empty() || base == BOM
}

fn search_change(operation: SearchOperation, new_text: String) -> SearchChange {
    SearchChange { operation, new_text: Some(new_text), to_clipboard: None, from_clipboard: None, reindent: None }
}

fn whole(file: &FilePlan<'_>, is_there: bool) -> Result<FileEdit, ExpressError> {
    if file.action == FileAction::Delete {
        return Ok(FileEdit::DeleteFile);
    }
    let presence = if is_there { Presence::Present } else { Presence::Absent };
    let content = Content::Text(text(Form::WholeFiles, &file.content(), 0)?);
    let content_format = content::is_suspect(file).then(|| VERBATIM.to_string());
    Ok(FileEdit::WriteFile(WriteFile { content, presence, content_format }))
}

fn lines(file: &FilePlan<'_>, base: &[u8]) -> Result<FileEdit, ExpressError> {
    let mut changes = Vec::new();
    let (mut at, mut above) = (0, 0);
    for block in diff::line_blocks(file, usize::MAX).unwrap_or_default() {
        above += feeds(slice(base, at..block.old.start));
        let old = lines_of(slice(base, block.old.clone()), above)?;
        let new = lines_of(&block.new, above)?;
        at = block.old.start;
        let number = |count: usize| i64::try_from(count).unwrap_or(i64::MAX);
        let (start_line, end_line) = (number(above + 1), number(above + old.len()));
        let operation = match (old.is_empty(), new.is_empty()) {
            (true, _) => Operation::Insert { after_line: number(above), new_lines: new },
            (false, true) => Operation::Delete { start_line, end_line, expected_original_lines: old },
            (false, false) => Operation::Replace { start_line, end_line, expected_original_lines: old, new_lines: new },
        };
        changes.push(Change { key: None, description: None, operation });
    }
    let original_sha256 = file.digest_before().map(|digest| digest.to_string()).unwrap_or_default();
    Ok(FileEdit::LinePatch(LinePatch { original_sha256, changes }))
}

/// The texts of whole lines below so many others.
fn lines_of(bytes: &[u8], above: usize) -> Result<Vec<String>, ExpressError> {
    let whole = text(Form::LinePatch, bytes, above)?;
    let whole = whole.strip_prefix('\u{feff}').filter(|_| above == 0).unwrap_or(&whole);
    let line = |line: &str| match line.strip_suffix('\n') {
        Some(line) => line.strip_suffix('\r').unwrap_or(line).to_string(),
        None => line.to_string(),
    };
    Ok(whole.split_inclusive('\n').map(line).collect())
}

/// Texts that occur in the base once, each with its replacement.
fn pairs(
    file: &FilePlan<'_>,
    base: &[u8],
    form: Form,
) -> Result<impl DoubleEndedIterator<Item = (String, String)>, ExpressError> {
    if has_no_text(base) {
        return Err(ExpressError::Empty { form: form.name() });
    }
    let mut blocks = diff::line_blocks(file, usize::MAX).unwrap_or_default();
    let mark = if base.starts_with(BOM) { BOM.len() } else { 0 };
    blocks.iter_mut().for_each(|block| leave_mark(block, mark));
    let (changes, bytes) = (blocks.len(), base.len());
    let places = context::unique(base, mark, &blocks);
    let places = places.ok_or(ExpressError::TooMuch { form: form.name(), changes, bytes })?;
    let mut pairs = Vec::with_capacity(places.len());
    for (range, new) in places {
        let above = feeds(slice(base, 0..range.start));
        pairs.push((text(form, slice(base, range), above)?, text(form, &new, above)?));
    }
    Ok(pairs.into_iter())
}

/// Takes the byte order mark out of a block that begins with it.
fn leave_mark(block: &mut Block<'_>, mark: usize) {
    if block.old.start < mark {
        block.old.start = mark.min(block.old.end);
        if block.new.starts_with(BOM) {
            block.new.to_mut().drain(..mark);
        }
    }
}

fn feeds(bytes: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', bytes).count()
}

/// Bytes below so many lines, as text.
fn text(form: Form, bytes: &[u8], above: usize) -> Result<String, ExpressError> {
    core::str::from_utf8(bytes).map(ToString::to_string).map_err(|error| {
        let line = above + feeds(slice(bytes, 0..error.valid_up_to())) + 1;
        ExpressError::NotUtf8 { form: form.name(), line }
    })
}
