//! What the author of a batch called it and its parts, and the file names that the batch was written with.

use std::borrow::Cow;

use crate::batch::{Batch, FileEdit, FilePatch, GitKind, Presence, Target};
use crate::path_style::PathStyle;
use crate::report::FileStatus;

/// What the author of a batch called it.
#[derive(Clone, Debug, Default)]
pub struct BatchWords<'a> {
    /// A name for it.
    pub key: Option<&'a str>,
    /// What it is for.
    pub label: Option<&'a str>,
    /// Its files, in its order.
    pub files: Vec<FileWords<'a>>,
}

/// What the author of a batch called a file.
#[derive(Clone, Debug)]
pub struct FileWords<'a> {
    /// A name for the entry.
    pub key: Option<&'a str>,
    /// What the entry is for.
    pub label: Option<&'a str>,
    /// How many changes it has, each with an id.
    pub change_count: usize,
    /// What its changes are called; empty where that is not known.
    pub changes: Vec<ChangeWords<'a>>,
    /// What was asked of it; absent where only the report is known.
    pub asked: Option<AskedFile<'a>>,
}

/// What the author of a batch called a change. No dialect but line patches has words for changes.
#[derive(Clone, Copy, Debug, Default)]
pub struct ChangeWords<'a> {
    /// A name for it.
    pub key: Option<&'a str>,
    /// What it does.
    pub description: Option<&'a str>,
}

/// A file as its batch names it.
#[derive(Clone, Debug)]
pub struct AskedFile<'a> {
    /// Its path.
    pub path: &'a str,
    /// Its lower-case key, if the root is known.
    pub doc_path: Option<Cow<'a, str>>,
    /// Where it is to go.
    pub moved_to: Option<&'a str>,
    /// What becomes of it, as far as the edit alone determines it; absent where the edit is not known.
    pub status: Option<FileStatus>,
}

impl<'a> BatchWords<'a> {
    /// The words in a batch; `root` is the name of the only root, if it is known.
    #[must_use]
    pub fn of(batch: &'a Batch, paths: PathStyle, root: Option<&str>) -> Self {
        let files = batch.files.iter().map(|patch| FileWords::of(patch, paths, root)).collect();
        Self { key: batch.key.as_deref(), label: batch.label.as_deref(), files }
    }
}

impl<'a> FileWords<'a> {
    fn of(patch: &'a FilePatch, paths: PathStyle, root: Option<&str>) -> Self {
        let (path, doc_path) = named(&patch.target, paths, root);
        Self {
            key: patch.key.as_deref(),
            label: patch.label.as_deref(),
            change_count: patch.edit.change_count(),
            changes: changes_of(&patch.edit),
            asked: Some(AskedFile {
                path,
                doc_path,
                moved_to: patch.edit.moved_to(),
                status: Some(asked_status(&patch.edit)),
            }),
        }
    }

    /// What a change is called.
    #[must_use]
    pub fn of_change(&self, change: usize) -> ChangeWords<'a> {
        self.changes.get(change).copied().unwrap_or_default()
    }
}

fn changes_of(edit: &FileEdit) -> Vec<ChangeWords<'_>> {
    let FileEdit::LinePatch(lines) = edit else { return Vec::new() };
    let words = lines
        .changes
        .iter()
        .map(|change| ChangeWords { key: change.key.as_deref(), description: change.description.as_deref() });
    words.collect()
}

/// The path of a file that was not looked at, and its lower-case key if the root is known.
#[must_use]
pub fn named<'a>(target: &'a Target, paths: PathStyle, root: Option<&str>) -> (&'a str, Option<Cow<'a, str>>) {
    let text = target.as_str();
    match target {
        Target::DocPath(_) => (paths.of_key(text), Some(Cow::Borrowed(text))),
        Target::Path(_) | Target::Readings(_) => (text, paths.key(text, root).map(Cow::Owned)),
    }
}

/// What becomes of a file that was not read yet, as far as the edit alone determines it.
fn asked_status(edit: &FileEdit) -> FileStatus {
    let by_git = |first: &GitKind, last: &GitKind| match (first, last) {
        (_, GitKind::Delete) => FileStatus::Deleted,
        (GitKind::Create | GitKind::Copy { .. }, _) => FileStatus::Created,
        _ => FileStatus::Modified,
    };
    match edit {
        _ if edit.moved_to().is_some() => FileStatus::Renamed,
        FileEdit::DeleteFile => FileStatus::Deleted,
        FileEdit::GitPatch(patch) => by_git(&patch.kind, &patch.kind),
        FileEdit::GitSeries(parts) => parts
            .first()
            .zip(parts.last())
            .map_or(FileStatus::Modified, |(first, last)| by_git(&first.kind, &last.kind)),
        FileEdit::CreateFile(_) => FileStatus::Created,
        FileEdit::WriteFile(write) if write.presence != Presence::Present => FileStatus::Created,
        FileEdit::WriteFile(_)
        | FileEdit::LinePatch(_)
        | FileEdit::SearchPatch(_)
        | FileEdit::EditorCommands(_)
        | FileEdit::Replacements(_)
        | FileEdit::AnchorEdit(_)
        | FileEdit::ContextPatch(_)
        | FileEdit::LocalChange
        | FileEdit::Revert(_) => FileStatus::Modified,
    }
}
