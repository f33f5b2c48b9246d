//! A batch in which nothing is wrong, as `validate` returns it and `plan` takes it.

use alloc::boxed::Box;
use alloc::vec::Vec;

use aptix_model::batch::{Batch, Content, ContextPatch, FilePatch, GitPatch};

use crate::dialect::anchor_edit::ValidAnchorEdit;
use crate::dialect::quote::ValidQuote;
use crate::dialect::replacements::ValidStep;
use crate::dialect::search_patch::ValidSearch;
use crate::target::{Base, ValidTarget};
use crate::text::line_changes::LineChange;

/// A batch in which `validate` found nothing wrong. Only this can be planned.
#[derive(Clone, Debug)]
pub struct ValidBatch<'a> {
    /// The batch as its author wrote it.
    pub batch: &'a Batch,
    pub(crate) files: Vec<ValidFile<'a>>,
    pub(crate) quotes: Vec<ValidQuote<'a>>,
}

impl<'a> ValidBatch<'a> {
    /// The file patches, in the batch's order.
    #[must_use]
    pub fn files(&self) -> &[ValidFile<'a>] {
        &self.files
    }

    /// Has whole texts written without a look at the files in their places, of these file patches by position: what becomes
    /// of them then reveals nothing of those files.
    pub fn blind(&mut self, is_blind: impl Fn(usize) -> bool) {
        for (index, file) in self.files.iter_mut().enumerate() {
            file.is_blind = is_blind(index);
        }
    }

    /// The blocks of the answer that are no edits, in the batch's order.
    #[must_use]
    pub fn quotes(&self) -> &[ValidQuote<'a>] {
        &self.quotes
    }
}

/// A file patch in which nothing is wrong.
#[derive(Clone, Debug)]
pub struct ValidFile<'a> {
    /// Whether a whole text is written without a look at the file in its place.
    pub(crate) is_blind: bool,
    /// The file patch as its author wrote it.
    pub patch: &'a FilePatch,
    /// Which file.
    pub target: ValidTarget,
    /// The path that it is renamed to, or the file that it is made a copy of.
    pub other: Option<ValidTarget>,
    /// What the file must be for the edit to apply.
    pub base: Base,
    /// What happens to it.
    pub edit: ValidEdit<'a>,
}

/// What happens to a file, checked.
#[derive(Clone, Debug)]
pub enum ValidEdit<'a> {
    /// Lines are added and removed; sorted top to bottom, disjoint.
    Lines(Vec<LineChange<'a>>),
    /// The whole content is given, and converted to the form in which files are created.
    Content(&'a Content),
    /// The whole content is given, and written as it is.
    Verbatim(&'a Content),
    /// The file is deleted.
    Delete,
    /// Lines are added and removed beside a line that is described.
    Anchor(Box<ValidAnchorEdit<'a>>),
    /// Texts are searched for in the file as it is, and replaced at once.
    Search(Vec<ValidSearch<'a>>),
    /// Texts are searched for and replaced one after the other.
    Steps(Vec<ValidStep<'a>>),
    /// Lines are added and removed where the lines around them occur.
    Context(&'a ContextPatch),
    /// What a diff says of the file; its hunks are well-formed, and in order.
    Diff(&'a GitPatch),
    /// What the parts of a diff say of the file, one after the other.
    Series(&'a [GitPatch]),
}
