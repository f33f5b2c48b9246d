//! An undo whose process died before its answer was printed: recovery has completed it, and the next run reports it.

use aptix_model::batch::Batch;
use aptix_model::path::fold;
use aptix_model::report::{FileReport, FileStatus, Outcome, Report, Warning, Written};

use super::undone::{Undone, label, patch};
use crate::workspace::keep::history::entries::{self, Entry, HistoryError};
use crate::workspace::keep::history::find::{self, Wanted};
use crate::workspace::keep::history::past_file::{Images, PastFile};
use crate::workspace::keep::history::pending;
use crate::workspace::roots::workspace::Workspace;

/// The answer to a request that a process has carried out which died before it could answer; `None` if there is none.
pub(super) fn completed(workspace: &Workspace, wanted: Wanted<'_>) -> Result<Option<Undone>, HistoryError> {
    let Some(reversal) = pending::read(workspace)? else { return Ok(None) };
    let Some(find::Completed { entry, undone }) = find::completed(workspace, wanted, reversal)? else {
        return Ok(None);
    };
    // What is too much to be kept is reported without its size.
    let images = entries::images(&entry).unwrap_or_default();
    let mut files: Vec<FileReport> =
        entry.files.iter().enumerate().map(|(index, file)| report(workspace, file, images.get(index))).collect();
    if let Some(first) = files.first_mut() {
        let message = format!(
            "an earlier run undid batch {} and was interrupted before it could say so; this run changed nothing",
            undone.name()
        );
        first.warnings.push(Warning { code: "UNDO_COMPLETED".to_owned(), message, line: None });
    }
    let batch = Batch {
        label: Some(label(&undone)),
        files: entry.files.iter().map(|file| patch(file.path.clone(), file.status() == FileStatus::Deleted)).collect(),
        ..Batch::default()
    };
    let report = Report {
        outcome: Outcome::Applied,
        files,
        failures: Vec::new(),
        warnings: Vec::new(),
        diff: String::new(),
        diff_omitted: true,
    };
    Ok(Some(Undone { batch, report, name: name(&entry) }))
}

/// What the batch of an entry is called, where that is the id of a batch.
fn name(entry: &Entry) -> Option<aptix_model::id::BatchId> {
    entry.name().parse().ok()
}

fn report(workspace: &Workspace, file: &PastFile, images: Option<&Images>) -> FileReport {
    let root = workspace.roots().iter().find(|root| root.path() == file.root);
    let size = images.and_then(|images| images.after.as_ref()).map(|bytes| bytes.len() as u64);
    let written = file.digest_after().zip(size);
    FileReport {
        path: file.path.clone(),
        doc_path: format!("{}/{}", root.map_or("", |root| root.name()), fold(&file.path)),
        status: file.status(),
        renamed_to: file.moved_to.clone(),
        sha256_before: file.digest_before(),
        written: written.map(|(sha256, size_bytes)| Written { sha256, size_bytes }),
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: Vec::new(),
        withheld: None,
    }
}
