//! Differences between the disk and what a server holds, as a batch of the workstation and its report. Of a withheld file they
//! have the path alone.

use aptix_model::batch::{Batch, FileEdit, FilePatch, Target};
use aptix_model::path_style::PathStyle;
use aptix_model::report::{FileReport, FileStatus, Report};

use super::difference::{Difference, HeldFile, OnDisk};
use crate::workspace::roots::workspace::Workspace;

/// A batch of the workstation, and what became of its files.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Described {
    /// The batch: of each file its path, and what its author called it.
    pub batch: Batch,
    /// Its report.
    pub report: Report,
}

/// The differences as a batch of the workstation, and its report.
#[must_use]
pub fn of_differences(workspace: &Workspace, label: Option<String>, differences: &[Difference]) -> Described {
    let paths = PathStyle::among(workspace.roots().len());
    let files = differences.iter().map(|difference| patch(paths, difference)).collect();
    let batch = Batch { label, files, ..Batch::default() };
    let reports = differences.iter().map(|difference| report(paths, difference)).collect();
    Described { batch, report: Report { diff_omitted: true, ..Report::applied(reports) } }
}

fn patch(paths: PathStyle, Difference { file, .. }: &Difference) -> FilePatch {
    let target = Target::Path(paths.name(&file.path, file.doc_path.as_str()).into_owned());
    FilePatch { target, key: None, label: None, edit: FileEdit::LocalChange }
}

fn report(paths: PathStyle, difference: &Difference) -> FileReport {
    let Difference { file: HeldFile { path, doc_path, held, .. }, now } = difference;
    let (status, before, written, withheld) = match (now, held) {
        (OnDisk::Bytes(written), None) => (FileStatus::Created, None, Some(*written), None),
        (OnDisk::Bytes(written), Some(held)) if written.sha256 == *held => {
            (FileStatus::Unchanged, Some(*held), Some(*written), None)
        }
        (OnDisk::Bytes(written), Some(held)) => (FileStatus::Modified, Some(*held), Some(*written), None),
        (OnDisk::Gone, held) => (FileStatus::Deleted, *held, None, None),
        (OnDisk::Withheld(why), _) => (FileStatus::Modified, None, None, Some(*why)),
    };
    let path = paths.name(path, doc_path.as_str()).into_owned();
    FileReport { sha256_before: before, written, withheld, ..FileReport::new(path, doc_path.to_string(), status) }
}
