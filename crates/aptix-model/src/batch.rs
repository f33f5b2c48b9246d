//! A batch as its author wrote it: every number and path still unchecked, every key kept.
//!
//! The engine's `validate` turns it into a checked batch and reports everything wrong with it at once.

mod anchor;
mod diff;
mod kind;
mod line_patch;
mod revert;
mod search;
mod whole_file;

use alloc::string::String;
use alloc::vec::Vec;

use crate::failure::Failure;
use crate::limits::{INLINE_BYTES, INLINE_TOTAL_BYTES};
use crate::path_readings::PathReadings;
use crate::quote::Quote;

pub use anchor::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, Occurrence};
pub use diff::{Chunk, ChunkLine, ContextPatch, GitKind, GitPatch, Hunk, HunkLine, LineKind};
pub use line_patch::{Change, LinePatch, Operation};
pub use revert::Revert;
pub use search::{
    EditorCommand, EditorCommands, Reindent, Replacement, Replacements, Scope, SearchChange, SearchOperation,
    SearchPatch,
};
pub use whole_file::{BlobRef, Content, CreateFile, Presence, VERBATIM, WriteFile};

/// One described change of a workspace: all of it happens, or nothing (TUL-002 4.1), unless its author chose otherwise.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Batch {
    /// What the batch is for, for people.
    pub label: Option<String>,
    /// The author's name for the batch; looks nothing up (TUL-002 7.2).
    pub key: Option<String>,
    /// One entry for each file, in the author's order.
    pub files: Vec<FilePatch>,
    /// Whether refusing one file refuses all.
    pub atomicity: Atomicity,
    /// Blocks of the author's answer that may be named for a file and are no edits.
    pub quotes: Vec<Quote>,
}

/// Whether refusing one file of a batch refuses all.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Atomicity {
    /// One failure, and no file changes.
    #[default]
    AllOrNothing,
    /// Refuses the file that failed and the files that depend on it; the others are applied.
    PerFile,
}

impl Batch {
    /// The texts that travel as blobs: those that are too large for a message, each or together with those before it.
    pub fn large_contents(&mut self) -> impl Iterator<Item = &mut Content> {
        let mut inline = 0;
        self.files.iter_mut().filter_map(|file| file.edit.content_mut()).filter(move |content| {
            let Content::Text(text) = content else { return false };
            let fits = text.len() <= INLINE_BYTES && inline + text.len() <= INLINE_TOTAL_BYTES;
            inline += if fits { text.len() } else { 0 };
            !fits
        })
    }
}

/// An edit as far as it has the shape of one: a file patch of the wrong shape is left out whole.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct PartialBatch {
    /// The batch of the file patches and quotes that have the right shape.
    pub batch: Batch,
    /// The index in the edit of each file patch of `batch`, ascending.
    pub positions: Vec<usize>,
    /// What is wrong with the shape of the others; empty if `batch` is the whole edit.
    pub failures: Vec<Failure>,
}

impl PartialBatch {
    /// Adds the file patch at this index of the edit, unless something is wrong with its shape; `read` adds that to the failures.
    pub fn add_file(&mut self, index: usize, read: impl FnOnce(&mut Vec<Failure>) -> Option<FilePatch>) {
        let before = self.failures.len();
        let file = read(&mut self.failures);
        if let Some(file) = file.filter(|_| self.failures.len() == before) {
            self.positions.push(index);
            self.batch.files.push(file);
        }
    }
}

/// Of an edit all of which has the right shape.
impl From<Batch> for PartialBatch {
    fn from(batch: Batch) -> Self {
        Self { positions: (0..batch.files.len()).collect(), batch, failures: Vec::new() }
    }
}

/// Of an edit of which nothing can be read.
impl From<Vec<Failure>> for PartialBatch {
    fn from(failures: Vec<Failure>) -> Self {
        Self { failures, ..Self::default() }
    }
}

/// Of an edit of which nothing can be read.
impl From<Failure> for PartialBatch {
    fn from(failure: Failure) -> Self {
        Vec::from(failure).into()
    }
}

impl FilePatch {
    /// A failure of this file patch with the author's names for it and for the change at fault.
    #[must_use]
    pub fn name(&self, failure: Failure) -> Failure {
        let change = match (&self.edit, failure.change_index) {
            (FileEdit::LinePatch(lines), Some(index)) => lines.changes.get(index),
            _ => None,
        };
        let change_key = change.and_then(|change| change.key.clone());
        Failure { file_key: self.key.clone(), change_key, ..failure }
    }
}

/// What happens to one file (TUL-002 4.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct FilePatch {
    /// Which file.
    pub target: Target,
    /// The author's name for this entry; looks nothing up.
    pub key: Option<String>,
    /// What the entry is for, for people.
    pub label: Option<String>,
    /// What happens.
    pub edit: FileEdit,
}

/// Which file, in the author's words.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Target {
    /// A lower-case key that begins with a root's name.
    DocPath(String),
    /// A path in the workspace, in its real case.
    Path(String),
    /// A file of a diff whose names can be read in several ways. The files that exist decide, before anything is planned.
    Readings(PathReadings),
}

impl Target {
    /// The words; of several readings, the first.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::DocPath(text) | Self::Path(text) => text,
            Self::Readings(readings) => readings.all().next().unwrap_or_default(),
        }
    }
}

/// What happens to a file.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum FileEdit {
    /// Whole lines come and go.
    LinePatch(LinePatch),
    /// The whole content is given, and brought into the form in which files are created.
    CreateFile(CreateFile),
    /// The whole content is given, and written as it is.
    WriteFile(WriteFile),
    /// The file goes.
    DeleteFile,
    /// Texts are searched for in the file as it is, and replaced at once.
    SearchPatch(SearchPatch),
    /// Commands of the common text-editor tool, all found in the file as it is, and made at once.
    EditorCommands(EditorCommands),
    /// Texts are searched for and replaced one after the other, each in the result of the one before.
    Replacements(Replacements),
    /// One file of a unified diff.
    GitPatch(GitPatch),
    /// One file that a unified diff has in several parts, such as those of a series of mails: each part changes what the one
    /// before leaves.
    GitSeries(Vec<GitPatch>),
    /// Lines are added and removed where the lines around them are, without line numbers.
    ContextPatch(ContextPatch),
    /// Lines come and go at a line number or beside a line that is described.
    AnchorEdit(AnchorEdit),
    /// The file was changed on the workstation itself; the report of the batch has what became of it. Never planned.
    LocalChange,
    /// What another batch did to the file is taken back. Only in a batch that the server made to that end.
    Revert(Revert),
}

impl FileEdit {
    /// How many changes it lists, each with an id and a report of its own; 0 for a whole-file edit.
    #[must_use]
    pub fn change_count(&self) -> usize {
        match self {
            Self::LinePatch(patch) => patch.changes.len(),
            Self::SearchPatch(patch) => patch.changes.len(),
            Self::EditorCommands(edit) => edit.commands.len(),
            Self::Replacements(replacements) => replacements.steps.len(),
            Self::GitPatch(patch) => patch.hunks.len(),
            Self::GitSeries(parts) => parts.iter().map(|part| part.hunks.len()).sum(),
            Self::ContextPatch(patch) => patch.chunks.len(),
            Self::AnchorEdit(_) => 1,
            Self::CreateFile(_) | Self::WriteFile(_) | Self::DeleteFile | Self::LocalChange | Self::Revert(_) => 0,
        }
    }

    /// Whether it moves text to a clipboard, or from one.
    #[must_use]
    pub fn uses_clipboards(&self) -> bool {
        match self {
            Self::SearchPatch(patch) => {
                patch.changes.iter().any(|change| change.to_clipboard.is_some() || change.from_clipboard.is_some())
            }
            _ => false,
        }
    }

    /// Whether the file goes, or is what it was under another name or mode: then none of its bytes is edited.
    #[must_use]
    pub const fn edits_no_bytes(&self) -> bool {
        match self {
            Self::DeleteFile => true,
            Self::GitPatch(patch) => match patch.kind {
                GitKind::Delete => true,
                GitKind::Modify | GitKind::Rename { .. } => patch.hunks.is_empty(),
                GitKind::Create | GitKind::Copy { .. } => false,
            },
            Self::GitSeries(_) => false,
            Self::ContextPatch(patch) => patch.chunks.is_empty(),
            Self::LinePatch(_)
            | Self::CreateFile(_)
            | Self::WriteFile(_)
            | Self::SearchPatch(_)
            | Self::EditorCommands(_)
            | Self::Replacements(_)
            | Self::AnchorEdit(_)
            | Self::LocalChange
            | Self::Revert(_) => false,
        }
    }

    /// Drops every change but the one at this position.
    pub fn keep_change(&mut self, index: usize) {
        fn keep<T>(changes: &mut Vec<T>, index: usize) {
            changes.truncate(index.saturating_add(1));
            changes.drain(..index.min(changes.len()));
        }
        match self {
            Self::LinePatch(patch) => keep(&mut patch.changes, index),
            Self::SearchPatch(patch) => keep(&mut patch.changes, index),
            Self::EditorCommands(edit) => keep(&mut edit.commands, index),
            Self::Replacements(replacements) => keep(&mut replacements.steps, index),
            Self::GitPatch(patch) => keep(&mut patch.hunks, index),
            Self::GitSeries(parts) => {
                let mut above = 0;
                for part in parts {
                    let count = part.hunks.len();
                    keep(&mut part.hunks, index.checked_sub(above).unwrap_or(usize::MAX));
                    above += count;
                }
            }
            Self::ContextPatch(patch) => keep(&mut patch.chunks, index),
            Self::CreateFile(_)
            | Self::WriteFile(_)
            | Self::DeleteFile
            | Self::AnchorEdit(_)
            | Self::LocalChange
            | Self::Revert(_) => {}
        }
    }

    /// The path that the file is renamed to, in the kind of path of its target.
    #[must_use]
    pub fn moved_to(&self) -> Option<&str> {
        match self {
            Self::GitPatch(patch) => patch.moved_to(),
            Self::GitSeries(parts) => parts.iter().rev().find_map(GitPatch::moved_to),
            Self::ContextPatch(patch) => patch.move_to.as_deref(),
            Self::Revert(revert) => revert.move_to.as_deref(),
            _ => None,
        }
    }

    /// The path of the file that the target is made a copy of, in the kind of path of its target.
    #[must_use]
    pub fn copied_from(&self) -> Option<&str> {
        match self {
            Self::GitPatch(GitPatch { kind: GitKind::Copy { from }, .. }) => Some(from),
            Self::GitSeries(parts) => match parts.first() {
                Some(GitPatch { kind: GitKind::Copy { from }, .. }) => Some(from),
                _ => None,
            },
            _ => None,
        }
    }

    /// The content that is given whole.
    #[must_use]
    pub fn content(&self) -> Option<&Content> {
        match self {
            Self::CreateFile(create) => Some(&create.content),
            Self::WriteFile(write) => Some(&write.content),
            _ => None,
        }
    }

    /// The content that is given whole, to put text in the place of a blob or the other way round.
    pub fn content_mut(&mut self) -> Option<&mut Content> {
        match self {
            Self::CreateFile(create) => Some(&mut create.content),
            Self::WriteFile(write) => Some(&mut write.content),
            _ => None,
        }
    }
}

/// Whose turn a batch came from; carried into every log line about it.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Origin {
    /// The author's session.
    pub session_id: Option<String>,
    /// The conversation in it.
    pub conversation_id: Option<String>,
    /// The turn in the conversation.
    pub turn_id: Option<String>,
}
