//! The dialects by name.

use core::fmt;
use core::str::FromStr;

/// A way of writing an edit down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Line changes to files pinned by SHA-256, in JSON (TUL-002 4).
    LinePatch,
    /// One file's whole content, in JSON (TUL-004 4.2).
    CreateFile,
    /// One file, and texts that are all searched for in it as it is, in JSON (REQ-PATCH-006).
    SearchPatch,
    /// Texts searched for and replaced one after the other, file by file, in JSON (FILE-SPEC 2).
    StructuredPatch,
    /// Whole files, created, replaced or deleted, in JSON (FILE-SPEC 1).
    FileBundle,
    /// Sections between `*** Begin Patch` and `*** End Patch`, placed by the lines around each change.
    CodexPatch,
    /// Blocks of lines that stand in a file and lines that come instead, between marker lines.
    SearchReplace,
    /// Commands of the common text-editor tool, in JSON.
    StrReplace,
    /// A unified diff of one or more files (FILE-SPEC 3).
    GitPatch,
    /// A whole answer in Markdown, with edits in its fenced blocks (FILE-SPEC 5).
    Chat,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 10] = [
        Self::LinePatch,
        Self::CreateFile,
        Self::SearchPatch,
        Self::StructuredPatch,
        Self::FileBundle,
        Self::CodexPatch,
        Self::SearchReplace,
        Self::StrReplace,
        Self::GitPatch,
        Self::Chat,
    ];

    /// The published name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinePatch => "line-patch",
            Self::CreateFile => "create-file",
            Self::SearchPatch => "search-patch",
            Self::StructuredPatch => "structured-patch",
            Self::FileBundle => "file-bundle",
            Self::CodexPatch => "codex-patch",
            Self::SearchReplace => "search-replace",
            Self::StrReplace => "str-replace",
            Self::GitPatch => "git-patch",
            Self::Chat => "chat",
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no dialect has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown dialect {found:?}, expected one of {}", Dialect::ALL.map(Dialect::name).join(", "))]
pub struct UnknownDialect {
    found: String,
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| UnknownDialect { found: text.into() })
    }
}
