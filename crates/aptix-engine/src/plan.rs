//! What will happen to each file of a valid batch: planned from values, for all files or for none.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use aptix_model::batch::Content;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Normalization, Warning};

use crate::digest::{Original, is_canonical, sha256};
use crate::findings::Findings;
use crate::line_patch::{self, LinePatchError, Lowered};
use crate::nearest::{self, Searches};
use crate::text::{NotText, Text, UTF_32_BE};
use crate::text_edit::TextEdit;
use crate::validate::{Base, LineChange, ValidBatch, ValidEdit, ValidFile, ValidTarget};
use crate::{create_file, diff, other_version};

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
}

/// What will happen to the files of a batch: all of it, or nothing.
#[derive(Debug)]
pub struct BatchPlan<'a> {
    /// One plan for each file patch, in the batch's order.
    pub files: Vec<FilePlan<'a>>,
}

/// What will happen to one file.
#[derive(Debug)]
pub struct FilePlan<'a> {
    /// The path relative to its root.
    pub path: &'a WorkspacePath,
    /// The lower-case key.
    pub doc_path: &'a str,
    /// What becomes of the file.
    pub status: FileStatus,
    /// How its bytes come about.
    pub action: FileAction<'a>,
    /// What was brought into the project's form on the way.
    pub normalized: Vec<Normalization>,
    /// What the author should know although all is well.
    pub warnings: Vec<Warning>,
    /// One entry for each change, in the patch's order; empty for a whole-file edit.
    pub changes: Vec<ChangeReport>,
    original: Option<Original<'a>>,
}

/// How a file's bytes come about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileAction<'a> {
    /// They are these.
    Write(Cow<'a, [u8]>),
    /// They are the base's, with replacements.
    Edit(TextEdit),
}

/// Which files a plan will need, in batch order.
pub fn reads<'b>(batch: &'b ValidBatch<'_>) -> impl Iterator<Item = &'b ValidTarget> {
    batch.files().iter().map(|file| &file.target)
}

/// Plans a batch against what was found for its file patches, one observation for each, in batch order.
///
/// # Errors
/// Everything that keeps the batch from being applied, in all files at once: up to a hundred failures, then how
/// many more there are.
pub fn plan<'a>(
    batch: &ValidBatch<'a>,
    snapshot: &'a [Observed<'a>],
    limits: &Limits,
) -> Result<BatchPlan<'a>, Vec<Failure>> {
    if snapshot.len() != batch.files().len() {
        let message = format!("{} files were read for {} file patches", snapshot.len(), batch.files().len());
        let hint = "this is a defect of the program that applies the batch; nothing was changed";
        return Err(vec![Failure::new(Reason::Internal, message).hint(hint)]);
    }
    let mut findings = Findings::default();
    let mut searches = Searches::new();
    let mut files = Vec::with_capacity(snapshot.len());
    let mut seen = BTreeMap::new();
    for (index, (file, observed)) in batch.files().iter().zip(snapshot).enumerate() {
        let name = file.patch.target.as_str();
        if let Some(other) = seen.insert((observed.doc_path.as_str(), &observed.path), index) {
            findings.add(|| same_file(other).file(index, name));
            continue;
        }
        match plan_file(file, observed, limits, &mut searches) {
            Ok(file) => files.push(file),
            Err(found) => findings.absorb(found, |failure| failure.file(index, name)),
        }
    }
    findings.or(BatchPlan { files })
}

fn same_file(other: usize) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("files[{other}] leads to the same file"))
        .detail(Detail::DuplicateFile)
        .hint("put all changes of one file into one file patch")
}

fn plan_file<'a>(
    file: &ValidFile<'a>,
    observed: &'a Observed<'a>,
    limits: &Limits,
    searches: &mut Searches,
) -> Result<FilePlan<'a>, Findings> {
    match &file.edit {
        ValidEdit::Content(Content::Text(content)) => plan_content(file.base, content, observed),
        ValidEdit::Content(Content::Blob(blob)) => {
            let message = format!("the content is still blob {}, which has to be fetched before planning", blob.sha256);
            let hint = "this is a defect of the program that applies the batch; nothing was changed";
            Err(Failure::new(Reason::Internal, message).hint(hint).into())
        }
        ValidEdit::Lines(changes) => plan_lines(file.base, changes, observed, limits, searches),
    }
}

fn plan_content<'a>(
    precondition: Base,
    content: &'a str,
    observed: &'a Observed<'a>,
) -> Result<FilePlan<'a>, Findings> {
    let (bytes, normalized) = create_file::normalize(content);
    let is_there = observed.content == Some(&*bytes);
    let original = check_presence(precondition, observed).map_err(|failure| match failure.reason {
        Reason::FileExists if is_there => failure.hint("it already has exactly this content; nothing is left to do"),
        _ => failure,
    })?;
    let status = match original {
        None => FileStatus::Created,
        Some(_) if is_there => FileStatus::Unchanged,
        Some(_) => FileStatus::Modified,
    };
    Ok(FilePlan {
        path: &observed.path,
        doc_path: &observed.doc_path,
        status,
        action: FileAction::Write(bytes),
        normalized,
        warnings: Vec::new(),
        changes: Vec::new(),
        original,
    })
}

/// What there is of a file, held to whether it may, or must, be there.
fn check_presence<'a>(precondition: Base, observed: &Observed<'a>) -> Result<Option<Original<'a>>, Failure> {
    let original = observed.content.map(|bytes| Original::new(bytes, observed.digest));
    match (precondition, original) {
        (Base::MustNotExist, Some(original)) => {
            Err(Failure::new(Reason::FileExists, "the file is to be created, and it already exists")
                .current(original.digest(0))
                .hint("read the file and edit it with a line patch, or set overwrite to replace all of it"))
        }
        (Base::MustExist | Base::MustMatch(_), None) => {
            Err(Failure::new(Reason::FileMissing, "the file is to be edited, and there is none")
                .hint("check the path, or create the file instead"))
        }
        (_, original) => Ok(original),
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
    let lowered = line_patch::lower(&text, line_changes, limits.line_bytes);
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
    let Lowered { edit, changes, hides_blank_line } =
        lowered.map_err(|errors| misfits(&errors, &text, line_changes, &original, searches))?;
    let status = if edit.is_identity(original.bytes) { FileStatus::Unchanged } else { FileStatus::Modified };
    Ok(FilePlan {
        path: &observed.path,
        doc_path: &observed.doc_path,
        status,
        action: FileAction::Edit(edit),
        normalized,
        warnings: Vec::from_iter(hides_blank_line.then(final_blank_line)),
        changes,
        original: Some(original),
    })
}

fn final_blank_line() -> Warning {
    Warning {
        code: "FINAL_BLANK_LINE".to_string(),
        message: "the last line is blank and the file has no final newline, so the blank line is not visible as a line"
            .to_string(),
    }
}

fn read_text<'a>(original: &Original<'a>, limits: &Limits) -> Result<Text<'a>, Failure> {
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
            .hint("line patches edit text; leave this file out of the batch")
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

impl FilePlan<'_> {
    /// The bytes the plan was made from; `None` when there was no file.
    #[must_use]
    pub fn base(&self) -> Option<&[u8]> {
        self.original.as_ref().map(|original| original.bytes)
    }

    /// The new bytes, made in one pass.
    #[must_use]
    pub fn content(&self) -> Cow<'_, [u8]> {
        match &self.action {
            FileAction::Write(bytes) => Cow::Borrowed(bytes),
            FileAction::Edit(edit) => {
                let base = self.base().unwrap_or_default();
                match self.status {
                    FileStatus::Unchanged => Cow::Borrowed(base),
                    FileStatus::Created | FileStatus::Modified => Cow::Owned(edit.apply(base)),
                }
            }
        }
    }

    /// The SHA-256 of the base, computed at most once; `None` when there was no file.
    #[must_use]
    pub fn digest_before(&self) -> Option<Sha256Digest> {
        let shared = match &self.action {
            FileAction::Write(_) => 0,
            FileAction::Edit(edit) => edit.start().unwrap_or(usize::MAX),
        };
        self.original.as_ref().map(|original| original.digest(shared))
    }

    /// The SHA-256 of the new bytes, which are [`FilePlan::content`]; what they share with a base that was hashed
    /// is not hashed again.
    #[must_use]
    pub fn digest_after(&self, content: &[u8]) -> Sha256Digest {
        match (self.status, &self.original) {
            (FileStatus::Unchanged, Some(original)) => original.digest(usize::MAX),
            (_, Some(original)) => original.digest_of_result(content),
            (_, None) => sha256(content),
        }
    }

    /// The change as a unified diff, made from the plan; empty if nothing changes, `None` if it would have more
    /// than `limit` bytes.
    #[must_use]
    pub fn diff(&self, limit: usize) -> Option<Vec<u8>> {
        match self.status {
            FileStatus::Unchanged => Some(Vec::new()),
            FileStatus::Created | FileStatus::Modified => {
                diff::unified(self.path.as_str(), self.base(), &self.action, limit)
            }
        }
    }

    /// What is reported once `content`, which is [`FilePlan::content`], is written.
    #[must_use]
    pub fn report(&self, content: &[u8]) -> FileReport {
        FileReport {
            path: self.path.to_string(),
            doc_path: self.doc_path.to_string(),
            status: self.status,
            sha256_before: self.digest_before(),
            sha256: self.digest_after(content),
            size_bytes: content.len() as u64,
            normalized: self.normalized.clone(),
            warnings: self.warnings.clone(),
            changes: self.changes.clone(),
        }
    }
}
