//! What will happen to each file of a valid batch: planned from values, for all files or for none.

use alloc::borrow::Cow;
use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;
use core::cell::OnceCell;

use aptix_model::batch::Content;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::WorkspacePath;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Normalization, Warning};

use crate::digest::{BaseDigest, is_canonical, is_digest_of, sha256};
use crate::findings::Findings;
use crate::line_patch::{self, LinePatchError, Lowered};
use crate::text::{NotText, Text};
use crate::text_edit::TextEdit;
use crate::validate::{Base, LineChange, ValidBatch, ValidEdit, ValidFile, ValidTarget};
use crate::{create_file, diff, nearest};

/// Failures of one file for which the whole file is searched for what was meant.
const SEARCHED: usize = 8;

/// What the caller found for one file patch.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The path relative to its root, in its real case.
    pub path: WorkspacePath,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// The file's bytes; `None` when there is no file.
    pub content: Option<&'a [u8]>,
    /// The SHA-256 of `content`, if the caller has it: then planning hashes nothing.
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
    base: Option<&'a [u8]>,
    known_digest: Option<Sha256Digest>,
    base_digest: OnceCell<BaseDigest>,
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
        return Err(vec![Failure::new(Reason::Internal, message)]);
    }
    let mut findings = Findings::default();
    let mut files = Vec::with_capacity(snapshot.len());
    let mut seen = BTreeMap::new();
    for (index, (file, observed)) in batch.files().iter().zip(snapshot).enumerate() {
        let name = file.patch.target.as_str();
        if let Some(other) = seen.insert((observed.doc_path.as_str(), &observed.path), index) {
            findings.add(|| same_file(other).file(index, name));
            continue;
        }
        match plan_file(file, observed, limits) {
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

fn plan_file<'a>(file: &ValidFile<'a>, observed: &'a Observed<'a>, limits: &Limits) -> Result<FilePlan<'a>, Findings> {
    match &file.edit {
        ValidEdit::Content(Content::Text(content)) => plan_content(file.base, content, observed),
        ValidEdit::Content(Content::Blob(blob)) => {
            let message = format!("the content is still blob {}, which has to be fetched before planning", blob.sha256);
            Err(Failure::new(Reason::Internal, message).into())
        }
        ValidEdit::Lines(changes) => plan_lines(file.base, changes, observed, limits),
    }
}

fn plan_content<'a>(base: Base, content: &'a str, observed: &'a Observed<'a>) -> Result<FilePlan<'a>, Findings> {
    check_presence(base, observed)?;
    let (bytes, normalized) = create_file::normalize(content);
    let status = match observed.content {
        None => FileStatus::Created,
        Some(found) if found == &*bytes => FileStatus::Unchanged,
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
        base: observed.content,
        known_digest: observed.digest,
        base_digest: OnceCell::new(),
    })
}

/// Holds a file to whether it may, or must, be there.
fn check_presence(base: Base, observed: &Observed<'_>) -> Result<(), Findings> {
    let failure = match (base, observed.content) {
        (Base::MustNotExist, Some(found)) => {
            Failure::new(Reason::FileExists, "the file is to be created, and it already exists")
                .current(sha256(found))
                .hint("read the file and edit it with a line patch, or set overwrite to replace all of it")
        }
        (Base::MustExist | Base::MustMatch(_), None) => {
            Failure::new(Reason::FileMissing, "the file is to be edited, and there is none")
                .hint("check the path, or create the file instead")
        }
        _ => return Ok(()),
    };
    Err(failure.into())
}

fn plan_lines<'a>(
    base: Base,
    changes: &[LineChange<'a>],
    observed: &'a Observed<'a>,
    limits: &Limits,
) -> Result<FilePlan<'a>, Findings> {
    check_presence(base, observed)?;
    let bytes = observed.content.unwrap_or_default();
    let text = read_text(bytes, limits)?;
    let lowered = line_patch::lower(&text, changes, limits.line_bytes);
    let mut normalized = Vec::new();
    let base_digest = OnceCell::new();
    if let Base::MustMatch(stated) = base {
        let shared = lowered.as_ref().ok().and_then(|lowered| lowered.edit.start()).unwrap_or(0);
        let hash = || base_digest.get_or_init(|| BaseDigest::new(bytes, shared)).digest;
        let found = observed.digest.unwrap_or_else(hash);
        if found != stated {
            if !is_canonical(stated, bytes) {
                return Err(other_version(stated, found, &text, changes, lowered.is_ok(), limits).into());
            }
            normalized.push(Normalization::MatchedCanonicalDigest);
        }
    }
    let Lowered { edit, changes } = lowered.map_err(|errors| misfits(&errors, &text, changes, &base_digest))?;
    let status = if edit.is_identity(bytes) { FileStatus::Unchanged } else { FileStatus::Modified };
    Ok(FilePlan {
        path: &observed.path,
        doc_path: &observed.doc_path,
        status,
        action: FileAction::Edit(edit),
        normalized,
        warnings: Vec::new(),
        changes,
        base: observed.content,
        known_digest: observed.digest,
        base_digest,
    })
}

fn read_text<'a>(bytes: &'a [u8], limits: &Limits) -> Result<Text<'a>, Findings> {
    let (found, limit) = (bytes.len() as u64, limits.file_bytes);
    if found > limit {
        let message = format!("a file to be edited has at most {limit} bytes, this has {found}");
        return Err(Failure::new(Reason::TooLarge, message).detail(Detail::File).into());
    }
    Text::new(bytes).map_err(|error| {
        let detail = match error {
            NotText::Encoding => Detail::Encoding,
            NotText::Nul(_) => Detail::Binary,
        };
        Failure::new(Reason::NotText, error.to_string())
            .detail(detail)
            .current(sha256(bytes))
            .hint("line patches edit text; leave this file out of the batch")
            .into()
    })
}

/// Tells the author that the file is not the version the patch was made for: perhaps that of after the patch.
fn other_version(
    stated: Sha256Digest,
    found: Sha256Digest,
    text: &Text<'_>,
    changes: &[LineChange<'_>],
    fits: bool,
    limits: &Limits,
) -> Failure {
    let before = line_patch::lower(text, &line_patch::undo(changes), limits.line_bytes);
    if before.is_ok_and(|before| is_digest_of(stated, &before.edit.apply(text.bytes()))) {
        return Failure::new(Reason::AlreadyApplied, "the file already has every change of this patch")
            .current(found)
            .hint("nothing is left to do for this file; take it out of the batch");
    }
    let states_lines = changes.iter().any(|change| change.removed > 0);
    let hint = match (fits, states_lines) {
        (true, true) => {
            "read the file again; every expected line still stands where the patch says, so that the same changes may do with the current digest"
        }
        _ => "read the file again and make the patch for what it is now",
    };
    let message = format!("the patch was made for the version with SHA-256 {stated}, and the file now has {found}");
    Failure::new(Reason::ShaMismatch, message).current(found).hint(hint)
}

fn misfits(
    errors: &[(usize, LinePatchError)],
    text: &Text<'_>,
    changes: &[LineChange<'_>],
    base_digest: &OnceCell<BaseDigest>,
) -> Findings {
    let found = base_digest.get().map_or_else(|| sha256(text.bytes()), |base| base.digest);
    let mut findings = Findings::default();
    for (count, (position, error)) in errors.iter().enumerate() {
        let Some(change) = changes.get(*position) else { continue };
        findings.add(|| {
            let failure = nearest::explain(error, text, change).change(change.index).current(found);
            if count < SEARCHED { nearest::look_around(failure, error, text, change) } else { failure }
        });
    }
    findings
}

impl FilePlan<'_> {
    /// The bytes the plan was made from; `None` when there was no file.
    #[must_use]
    pub const fn base(&self) -> Option<&[u8]> {
        self.base
    }

    /// The new bytes, made in one pass.
    #[must_use]
    pub fn content(&self) -> Cow<'_, [u8]> {
        match &self.action {
            FileAction::Write(bytes) => Cow::Borrowed(bytes),
            FileAction::Edit(edit) => {
                let base = self.base.unwrap_or_default();
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
        let base = self.base?;
        if self.known_digest.is_some() {
            return self.known_digest;
        }
        let shared = match &self.action {
            FileAction::Write(_) => 0,
            FileAction::Edit(edit) => edit.start().unwrap_or(base.len()),
        };
        Some(self.base_digest.get_or_init(|| BaseDigest::new(base, shared)).digest)
    }

    /// The SHA-256 of the new bytes, which are [`FilePlan::content`]; what they share with a base that was hashed
    /// is not hashed again.
    #[must_use]
    pub fn digest_after(&self, content: &[u8]) -> Sha256Digest {
        match (self.base_digest.get(), self.status) {
            (Some(base), FileStatus::Unchanged) => base.digest,
            (Some(base), _) => base.of_result(content),
            (None, _) => sha256(content),
        }
    }

    /// The change as a unified diff, made from the plan; empty if nothing changes.
    #[must_use]
    pub fn diff(&self) -> Vec<u8> {
        diff::unified(self.path.as_str(), self.base, &self.action)
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
