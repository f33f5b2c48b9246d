//! What came of undoing a batch, also where the process that undid it died before it could answer: then recovery has
//! completed it, and the next run reports it.

use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Presence, Target, WriteFile};
use aptix_model::id::BatchId;
use aptix_model::report::{FileReport, FileStatus, Report, Warning, Written};

use crate::workspace::keep::history::entries::{self, Entry, HistoryError};
use crate::workspace::keep::history::find::{self, Wanted};
use crate::workspace::keep::history::past_file::{Kept, PastFile};
use crate::workspace::keep::history::pending;
use crate::workspace::roots::workspace::Workspace;

/// What came of undoing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Undone {
    /// The batch that did it, file by file.
    pub batch: Batch,
    /// What it did.
    pub report: Report,
    /// What is taken back: the name of that batch, its id if it has one.
    pub reverts: String,
    /// What its author called that batch, if it was called anything.
    pub reverts_label: Option<String>,
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

/// The answer to a request that a process has carried out which died before it could answer; `None` if there is none.
pub(super) fn completed(workspace: &Workspace, wanted: Wanted<'_>) -> Result<Option<Undone>, HistoryError> {
    let Some(reversal) = pending::read(workspace)? else { return Ok(None) };
    let Some(find::Completed { entry, undone }) = find::completed(workspace, wanted, reversal)? else {
        return Ok(None);
    };
    // What is too much to be kept is reported without its size.
    let kept = entries::kept(&entry).unwrap_or_default();
    let mut files: Vec<FileReport> =
        entry.files.iter().enumerate().map(|(index, file)| report(workspace, file, kept.get(index))).collect();
    if let Some(first) = files.first_mut() {
        let message = format!(
            "an earlier run undid batch {} and was interrupted before it could say so; this run changed nothing",
            undone.name()
        );
        first.warnings.push(Warning { code: "UNDO_COMPLETED".to_owned(), message, line: None });
    }
    let batch = Batch {
        label: Some(label(&undone)),
        files: entry
            .files
            .iter()
            .map(|file| patch(file.names(workspace, &file.path).0, file.status() == FileStatus::Deleted))
            .collect(),
        ..Batch::default()
    };
    let report = Report { diff_omitted: true, ..Report::applied(files) };
    Ok(Some(Undone {
        batch,
        report,
        reverts: undone.name(),
        reverts_label: undone.label(),
        name: entry.name().parse().ok(),
    }))
}

/// What an entry says became of a file.
pub(crate) fn report(workspace: &Workspace, file: &PastFile, kept: Option<&Kept>) -> FileReport {
    let (path, doc_path) = file.names(workspace, &file.path);
    let size = kept.and_then(Kept::size_after).map(|size| size as u64);
    let written = file.digest_after().zip(size);
    FileReport {
        renamed_to: file.moved_to.as_deref().map(|path| file.names(workspace, path).0),
        sha256_before: file.digest_before(),
        written: written.map(|(sha256, size_bytes)| Written { sha256, size_bytes }),
        ..FileReport::new(path, doc_path, file.status())
    }
}
