//! How files on disk differ from what a server holds of them: under the egress rule, so that a withheld file is named without
//! its digest.

use aptix_model::batch::{Batch, FileEdit, FilePatch, Target};
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::live::FileSelector;
use aptix_model::path::{DocPath, WorkspacePath, fold};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, FileStatus, Report, Withheld, Written};

use super::IsOver;
use super::read::{content, stat};
use crate::policy::Policy;
use crate::policy::choices::Excerpts;
use crate::workspace::roots::path_style::PathStyle;
use crate::workspace::roots::workspace::Workspace;

/// Files that are looked at in one go.
const TOGETHER: usize = 100;

/// A file of an open root, and what a server holds of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldFile {
    /// The root, from 0.
    root: usize,
    /// Its path in the root.
    path: String,
    doc_path: DocPath,
    /// SHA-256 of what the server holds; `None` if it holds nothing.
    held: Option<Sha256Digest>,
}

/// How a file differs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Difference {
    /// Which file.
    pub file: HeldFile,
    /// What is on disk.
    pub now: OnDisk,
}

/// What is on disk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnDisk {
    /// A file with these bytes.
    Bytes(Written),
    /// No file.
    Gone,
    /// A file that the server may not read.
    Withheld(Withheld),
}

impl HeldFile {
    /// The file of a key that a server holds under a path, with its root's name in front or without. `None` if its root is not
    /// open.
    #[must_use]
    pub fn of_key(workspace: &Workspace, doc_path: DocPath, path: &str, held: Option<Sha256Digest>) -> Option<Self> {
        let root = workspace.roots().iter().position(|root| root.name() == doc_path.root())?;
        let is_key = |path: &str| fold(path) == doc_path.rest();
        let path =
            [Some(path), path.split_once('/').map(|(_, rest)| rest)].into_iter().flatten().find(|path| is_key(path))?;
        Some(Self { root, path: path.to_owned(), doc_path, held })
    }

    fn selector(&self, workspace: &Workspace) -> Option<FileSelector> {
        let path = match workspace.roots() {
            [_] => WorkspacePath::new(&self.path),
            roots => WorkspacePath::new(&format!("{}/{}", roots.get(self.root)?.name(), self.path)),
        };
        path.ok().map(FileSelector::Path)
    }
}

/// Those of the files that differ from what the server holds. What cannot be found out now is left out.
///
/// # Errors
/// The caller does not wait any more.
pub fn differences(
    workspace: &Workspace,
    policy: &Policy,
    files: &[HeldFile],
    is_over: IsOver<'_>,
) -> Result<Vec<Difference>, Failure> {
    // What the server holds already was shown to it with a person's agreement.
    let mut readable = policy.clone();
    readable.excerpts = Excerpts::Readable;
    let mut found = Vec::new();
    for part in files.chunks(TOGETHER) {
        let selected: Vec<_> = part.iter().filter_map(|file| Some((file, file.selector(workspace)?))).collect();
        let selectors: Vec<_> = selected.iter().map(|(_, selector)| selector.clone()).collect();
        let infos = stat(workspace, &readable, &selectors, is_over)?;
        for ((file, _), info) in selected.into_iter().zip(infos) {
            let now = match info {
                Ok(info) => info
                    .text
                    .map(|text| Written { sha256: text.sha256, size_bytes: info.size_bytes })
                    .map(OnDisk::Bytes),
                Err(failure) => absent(&failure),
            };
            let now = now.filter(|now| match now {
                OnDisk::Bytes(written) => Some(written.sha256) != file.held,
                // Nothing is to be corrected of what the server does not hold.
                OnDisk::Gone => file.held.is_some(),
                OnDisk::Withheld(_) => true,
            });
            let now = now.map(|now| match now {
                OnDisk::Bytes(_) if policy.excerpts == Excerpts::AfterApproval => {
                    OnDisk::Withheld(Withheld::Unapproved)
                }
                now => now,
            });
            found.extend(now.map(|now| Difference { file: file.clone(), now }));
        }
    }
    Ok(found)
}

/// What a file is that is not shown; `None` if that cannot be found out now.
fn absent(failure: &Failure) -> Option<OnDisk> {
    let withheld = |detail| Withheld::ALL.into_iter().find(|why| Some(why.detail()) == detail);
    match (failure.reason, failure.detail) {
        (Reason::NotFound, _) | (_, Some(Detail::NotDirectory | Detail::NotRegular)) => Some(OnDisk::Gone),
        (Reason::PolicyDenied, detail) => Some(OnDisk::Withheld(withheld(detail).unwrap_or(Withheld::Denied))),
        (Reason::TooLarge | Reason::InvalidPath | Reason::AmbiguousPath, _) => {
            Some(OnDisk::Withheld(Withheld::Unknown))
        }
        _ => None,
    }
}

impl Difference {
    /// The file as the server holds it once the difference is reported; `None` if it holds nothing then.
    #[must_use]
    pub fn reported(self) -> Option<HeldFile> {
        let OnDisk::Bytes(written) = self.now else { return None };
        Some(HeldFile { held: Some(written.sha256), ..self.file })
    }

    /// The bytes that are on disk now. They may be others than before: the difference is then about these.
    ///
    /// # Errors
    /// The file is not shown any more, or the caller does not wait any more.
    pub fn content(&mut self, workspace: &Workspace, policy: &Policy, is_over: IsOver<'_>) -> Result<Vec<u8>, Failure> {
        let selector = self.file.selector(workspace);
        let selector = selector.ok_or_else(|| Failure::new(Reason::NotFound, "the root is not open any more"))?;
        let bytes = content(workspace, policy, &selector, is_over)?;
        let sha256 = aptix_engine::digest::sha256(&bytes);
        self.now = OnDisk::Bytes(Written { sha256, size_bytes: bytes.len() as u64 });
        Ok(bytes)
    }
}

/// The differences as a batch of the workstation, and its report.
#[must_use]
pub fn described(
    workspace: &Workspace,
    label: Option<String>,
    key: Option<String>,
    differences: &[Difference],
) -> (Batch, Report) {
    let paths = PathStyle::among(workspace.roots().len());
    let patch = |Difference { file, .. }: &Difference| FilePatch {
        target: Target::Path(paths.name(&file.path, file.doc_path.as_str()).into_owned()),
        key: None,
        label: None,
        edit: FileEdit::LocalChange,
    };
    let files = differences.iter().map(patch).collect();
    let reports = differences.iter().map(|difference| report(paths, difference)).collect();
    (Batch { label, key, files, ..Batch::default() }, Report { diff_omitted: true, ..Report::applied(reports) })
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
    FileReport {
        path: paths.name(path, doc_path.as_str()).into_owned(),
        doc_path: doc_path.to_string(),
        status,
        renamed_to: None,
        sha256_before: before,
        written,
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: Vec::new(),
        withheld,
    }
}
