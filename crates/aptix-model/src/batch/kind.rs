//! The kinds of edit, by the words that a prepared batch states: it is replaced by one of its own kind alone (WS-MOD 4.2).

use super::{Batch, FileEdit};

impl FileEdit {
    /// The word for it.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::LinePatch(_) => "line_patch",
            Self::CreateFile(_) => "create_file",
            Self::WriteFile(_) => "write_file",
            Self::DeleteFile => "delete_file",
            Self::SearchPatch(_) => "search_patch",
            Self::EditorCommands(_) => "editor_commands",
            Self::Replacements(_) => "replacements",
            Self::GitPatch(_) | Self::GitSeries(_) => "git_patch",
            Self::ContextPatch(_) => "context_patch",
            Self::AnchorEdit(edit) => edit.place.kind(),
            Self::LocalChange => "local_change",
            Self::Revert(_) => "revert",
        }
    }
}

impl Batch {
    /// The kind of its edits; `mixed` if there are several.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        let mut kinds = self.files.iter().map(|file| file.edit.kind());
        match kinds.next() {
            Some(first) if kinds.all(|kind| kind == first) => first,
            _ => "mixed",
        }
    }
}
