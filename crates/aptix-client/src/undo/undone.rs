//! What came of undoing a batch, and how the batch that did it is written down.

use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::id::BatchId;
use aptix_model::report::Report;

use crate::workspace::keep::history::entries::Entry;

/// What came of undoing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undone {
    /// The batch that did it, file by file.
    pub batch: Batch,
    /// What it did.
    pub report: Report,
    /// What an earlier run called it, if that was interrupted and this one changed nothing.
    pub name: Option<BatchId>,
}

/// The label of the batch that undoes another one.
pub(super) fn label(undone: &Entry) -> String {
    format!("{} {}", if undone.is_undo() { "redo of undo" } else { "undo" }, undone.name())
}

/// What an author would have written about a file.
pub(super) fn patch(name: String, is_deleted: bool) -> FilePatch {
    let edit = if is_deleted {
        FileEdit::DeleteFile
    } else {
        FileEdit::WriteFile(WriteFile {
            content: Content::Text(String::new()),
            presence: Presence::Either,
            content_format: None,
        })
    };
    FilePatch { target: Target::Path(name), key: None, label: None, edit }
}
