//! A batch as its author wrote it: every number and path still unchecked, every key kept.
//!
//! The engine's `validate` turns it into a checked batch and reports everything wrong with it at once.

use alloc::string::String;
use alloc::vec::Vec;

use crate::digest::Sha256Digest;

/// One described change of a workspace: all of it happens, or nothing (TUL-002 4.1).
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Batch {
    /// What the batch is for, for people.
    pub label: Option<String>,
    /// The author's name for the batch; looks nothing up (TUL-002 7.2).
    pub key: Option<String>,
    /// One entry for each file, in the author's order.
    pub files: Vec<FilePatch>,
}

/// What happens to one file (TUL-002 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
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
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Target {
    /// A lower-case key that begins with a root's name.
    DocPath(String),
    /// A path in the workspace, in its real case.
    Path(String),
}

impl Target {
    /// The words.
    #[must_use]
    pub fn as_str(&self) -> &str {
        match self {
            Self::DocPath(text) | Self::Path(text) => text,
        }
    }
}

/// What happens to a file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum FileEdit {
    /// Whole lines come and go.
    LinePatch(LinePatch),
    /// The whole content is given.
    CreateFile(CreateFile),
}

/// Whole-line changes to one version of a file (TUL-002 5.1).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LinePatch {
    /// SHA-256, in hex, of the version the author saw.
    pub original_sha256: String,
    /// The changes, top to bottom.
    pub changes: Vec<Change>,
}

/// One change of a line patch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Change {
    /// The author's name for it; looks nothing up.
    pub key: Option<String>,
    /// Why it is made; without effect on what happens.
    pub description: Option<String>,
    /// What is done.
    pub operation: Operation,
}

/// What a change does. Line numbers are those of the version the author saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Operation {
    /// Lines come in (TUL-002 5.2).
    Insert {
        /// The line above them, 0 for the top.
        after_line: i64,
        /// The lines, without terminators.
        new_lines: Vec<String>,
    },
    /// Lines take the place of others (TUL-002 5.3).
    Replace {
        /// First line that goes.
        start_line: i64,
        /// Last line that goes.
        end_line: i64,
        /// What those lines are, verbatim.
        expected_original_lines: Vec<String>,
        /// What comes instead.
        new_lines: Vec<String>,
    },
    /// Lines go (TUL-002 5.4).
    Delete {
        /// First line that goes.
        start_line: i64,
        /// Last line that goes.
        end_line: i64,
        /// What those lines are, verbatim.
        expected_original_lines: Vec<String>,
    },
}

/// A whole file's content (TUL-004 4.2).
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CreateFile {
    /// The content.
    pub content: Content,
    /// Whether a file that is already there is replaced.
    pub overwrite: bool,
}

/// Text, here or stored elsewhere.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Content {
    /// The text itself.
    Text(String),
    /// An uploaded blob.
    Blob(BlobRef),
}

/// Names bytes by what they are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct BlobRef {
    /// SHA-256 of the bytes.
    pub sha256: Sha256Digest,
    /// How many bytes.
    pub size_bytes: u64,
}

/// Whose turn a batch came from; carried into every log line about it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Origin {
    /// The author's session.
    pub session_id: Option<String>,
    /// The conversation in it.
    pub conversation_id: Option<String>,
    /// The turn in the conversation.
    pub turn_id: Option<String>,
}
