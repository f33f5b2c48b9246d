//! The dialects by name.

use core::str::FromStr;

use crate::batch::{Batch, PartialBatch};
use crate::report::Warning;
use crate::words::words;

/// What a document says, and what was read but has no effect; or everything that is wrong with its shape, and what can be
/// read in spite of that.
pub(super) type Parsed = Result<(Batch, Vec<Warning>), PartialBatch>;

/// A document of which this was read.
pub(super) fn parsed(part: PartialBatch, warnings: Vec<Warning>) -> Parsed {
    if part.failures.is_empty() { Ok((part.batch, warnings)) } else { Err(part) }
}

words! {
    /// A way of writing an edit down.
    Dialect, name, from_name {
        /// Line changes to files pinned by SHA-256, in JSON (TUL-002 4).
        LinePatch = "line-patch",
        /// One file's whole content, in JSON (TUL-004 4.2).
        CreateFile = "create-file",
        /// One file, and texts that are all searched for in it as it is, in JSON (REQ-PATCH-006).
        SearchPatch = "search-patch",
        /// Texts searched for and replaced one after the other, file by file, in JSON (FILE-SPEC 2).
        StructuredPatch = "structured-patch",
        /// Whole files, created, replaced or deleted, in JSON (FILE-SPEC 1).
        FileBundle = "file-bundle",
        /// Sections between `*** Begin Patch` and `*** End Patch`, placed by the lines around each change.
        CodexPatch = "codex-patch",
        /// Blocks of lines of a file and of their new lines, between marker lines.
        SearchReplace = "search-replace",
        /// Commands of the common text-editor tool, in JSON.
        StrReplace = "str-replace",
        /// A unified diff of one or more files (FILE-SPEC 3).
        GitPatch = "git-patch",
        /// A whole answer in Markdown, with edits in its fenced blocks (FILE-SPEC 5).
        Chat = "chat",
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
        Self::from_name(text).ok_or_else(|| UnknownDialect { found: text.into() })
    }
}
