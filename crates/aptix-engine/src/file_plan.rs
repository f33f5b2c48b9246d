//! What will happen to one file, with everything that follows from it only when it is asked for.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec::Vec;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::path::WorkspacePath;
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Normalization, Warning, Written};

use crate::digest::{Original, sha256};
use crate::findings::defect;
use crate::generated;
use crate::text::edit::TextEdit;

/// What will happen to one file.
#[derive(Debug)]
pub struct FilePlan<'a> {
    /// The path relative to its root; of a file that is renamed, the old one.
    pub path: &'a WorkspacePath,
    /// The lower-case key.
    pub doc_path: &'a str,
    /// What becomes of the file.
    pub status: FileStatus,
    /// How its bytes are made.
    pub action: FileAction<'a>,
    /// The path relative to its root that the file is renamed to, where nothing may be.
    pub moved_to: Option<&'a WorkspacePath>,
    /// Whether the result can be executed; as before, if absent.
    pub executable: Option<bool>,
    /// What was normalized to the project's form.
    pub normalized: Vec<Normalization>,
    /// What the author should know although all is well, besides what [`FilePlan::report`] adds.
    pub warnings: Vec<Warning>,
    /// One entry for each change, in the patch's order; empty for a whole-file edit.
    pub changes: Vec<ChangeReport>,
    /// Whether the edit is its author's, and not the undoing of one.
    pub(crate) is_authored: bool,
    pub(crate) original: Option<Original<'a>>,
}

/// How a file's bytes are made.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileAction<'a> {
    /// They are these.
    Write(Cow<'a, [u8]>),
    /// They are the base's, with replacements.
    Edit(TextEdit),
    /// They do not: the file is deleted.
    Delete,
}

impl FilePlan<'_> {
    /// The bytes the plan was made from; `None` when there was no file.
    #[must_use]
    pub fn base(&self) -> Option<&[u8]> {
        self.original.as_ref().map(|original| original.bytes)
    }

    /// Holds the edit to its base: every range that later code takes of the two is there.
    ///
    /// # Errors
    /// INTERNAL: the edit was made wrongly.
    pub(crate) fn check(&self) -> Result<(), Failure> {
        match &self.action {
            FileAction::Edit(edit) if !edit.fits(self.base().map_or(0, <[u8]>::len)) => {
                Err(defect("the edit that was planned does not fit the file"))
            }
            FileAction::Edit(_) | FileAction::Write(_) | FileAction::Delete => Ok(()),
        }
    }

    /// The new bytes, made in one pass; none if the file is deleted.
    #[must_use]
    pub fn content(&self) -> Cow<'_, [u8]> {
        match &self.action {
            FileAction::Write(bytes) => Cow::Borrowed(bytes),
            FileAction::Edit(edit) => {
                let base = self.base().unwrap_or_default();
                match self.status {
                    FileStatus::Unchanged => Cow::Borrowed(base),
                    _ => Cow::Owned(edit.apply(base)),
                }
            }
            FileAction::Delete => Cow::Borrowed(&[]),
        }
    }

    /// The SHA-256 of the base, computed at most once; `None` when there was no file.
    #[must_use]
    pub fn digest_before(&self) -> Option<Sha256Digest> {
        let shared = match &self.action {
            FileAction::Write(_) | FileAction::Delete => 0,
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

    /// The warning about new content of a file that looks as if a program generates it.
    fn generated_warning(&self) -> Option<Warning> {
        let changes_content = match &self.action {
            FileAction::Delete => false,
            FileAction::Edit(edit) => edit.start().is_some(),
            FileAction::Write(_) => self.status != FileStatus::Unchanged,
        };
        let base = self.base().filter(|_| self.is_authored && changes_content)?;
        generated::warning(self.path.as_str(), base)
    }

    /// Everything that the author should know although all is well.
    pub(crate) fn all_warnings(&self) -> Vec<Warning> {
        self.warnings.iter().cloned().chain(self.generated_warning()).collect()
    }

    /// What is reported once `content`, which is [`FilePlan::content`], is written.
    #[must_use]
    pub fn report(&self, content: &[u8]) -> FileReport {
        FileReport {
            path: self.path.to_string(),
            doc_path: self.doc_path.to_string(),
            status: self.status,
            sha256_before: self.digest_before(),
            renamed_to: self.moved_to.map(ToString::to_string),
            written: match self.action {
                FileAction::Delete => None,
                _ => Some(Written { sha256: self.digest_after(content), size_bytes: content.len() as u64 }),
            },
            normalized: self.normalized.clone(),
            warnings: self.all_warnings(),
            changes: self.changes.clone(),
            withheld: None,
        }
    }
}
