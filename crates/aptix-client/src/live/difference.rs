//! How files on disk differ from what a server holds of them: under the egress rule, so that a withheld file is named without
//! its digest. A withheld file is never compared: which digests a server claims to hold is up to that server, and whether one of
//! them is right would tell it the content.

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::live::FileSelector;
use aptix_model::path::{DocPath, WorkspacePath, fold};
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{FileReport, FileStatus, Report, Withheld, Written};

use super::IsOver;
use super::read::{content, stat_on_disk};
use crate::policy::Policy;
use crate::workspace::roots::workspace::Workspace;

/// Files that are looked at in one go.
pub(super) const TOGETHER: usize = 100;

/// A file of an open root, and what a server holds of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct HeldFile {
    /// The root, from 0.
    root: usize,
    /// Its path in the root.
    pub(super) path: String,
    pub(super) doc_path: DocPath,
    /// SHA-256 of what the server holds; `None` if it holds nothing.
    pub(super) held: Option<Sha256Digest>,
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

    /// The files in open roots that a report says were changed, of which it is not known what the server holds: of a renamed one both paths, or
    /// the new one where they have the same key.
    pub fn of_report(workspace: &Workspace, report: &Report) -> impl Iterator<Item = Self> {
        let is_changed = |file: &&FileReport| file.status.is_applied() && file.status != FileStatus::Unchanged;
        let files = |file: &FileReport| {
            let key = DocPath::new(&file.doc_path).ok()?;
            let root = workspace.roots().iter().position(|root| root.name() == key.root())?;
            let (path, renamed_to) = file.paths_in_root();
            let old = Some(path).filter(|path| renamed_to.is_none_or(|new| fold(new) != fold(path)));
            Some([old, renamed_to].map(|path| Self::in_root(workspace, root, path?, None)))
        };
        report.files.iter().filter(is_changed).filter_map(files).flatten().flatten()
    }

    /// A file at a path in an open root. `None` if it is no path that a server may name.
    pub(super) fn in_root(workspace: &Workspace, root: usize, path: &str, held: Option<Sha256Digest>) -> Option<Self> {
        let name = workspace.roots().get(root)?.name();
        let doc_path = DocPath::new(&format!("{name}/{}", fold(path))).ok()?;
        WorkspacePath::new(path).ok()?;
        Some(Self { root, path: path.to_owned(), doc_path, held })
    }

    /// The same file, of which the server holds something else.
    #[must_use]
    pub fn with_held(self, held: Option<Sha256Digest>) -> Self {
        Self { held, ..self }
    }

    /// Its key.
    #[must_use]
    pub fn doc_path(&self) -> &DocPath {
        &self.doc_path
    }

    pub(super) fn selector(&self, workspace: &Workspace) -> Option<FileSelector> {
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
    let mut found = Vec::new();
    for part in files.chunks(TOGETHER) {
        let selected: Vec<_> = part.iter().filter_map(|file| Some((file, file.selector(workspace)?))).collect();
        let selectors: Vec<_> = selected.iter().map(|(_, selector)| selector.clone()).collect();
        let infos = stat_on_disk(workspace, policy, &selectors, is_over)?;
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
                OnDisk::Gone | OnDisk::Withheld(_) => file.held.is_some(),
            });
            found.extend(now.map(|now| Difference { file: file.clone(), now }));
        }
    }
    Ok(found)
}

/// What a file is that is not shown; `None` if that cannot be found out now.
pub(super) fn absent(failure: &Failure) -> Option<OnDisk> {
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
    /// The file as the server holds it once the difference is reported; `None` if it is withheld.
    #[must_use]
    pub fn reported(self) -> Option<HeldFile> {
        let held = match self.now {
            OnDisk::Bytes(written) => Some(written.sha256),
            OnDisk::Gone => None,
            OnDisk::Withheld(_) => return None,
        };
        Some(HeldFile { held, ..self.file })
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
