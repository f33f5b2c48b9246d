//! Which file is asked for, which part of it, and what is answered.

use aptix_engine::target::ValidTarget;
use aptix_model::lines::LineNumber;

use super::facts::TextFacts;

/// A file, or a part of it, that is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FilePart {
    /// Which file.
    pub file: ValidTarget,
    /// Which part.
    pub portion: Portion,
}

/// A part of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Portion {
    /// All of it.
    Whole,
    /// These lines, the last one included; that of the file if absent.
    Lines(LineNumber, Option<LineNumber>),
    /// Bytes from an offset on, at most so many; 0 for all that an answer holds.
    Bytes {
        /// The first byte, from 0.
        offset: u64,
        /// How many.
        length: u64,
    },
}

/// What a file is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileInfo {
    /// Its path, with its root's name in front where the workspace has several.
    pub path: String,
    /// Its lower-case key.
    pub doc_path: String,
    /// How many bytes it has.
    pub size_bytes: u64,
    /// Whether its owner may run it.
    pub is_executable: bool,
    /// What its bytes are; absent in lists, which read no file.
    pub text: Option<TextFacts>,
}

/// A file and what is in it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileContent {
    /// The file.
    pub info: FileInfo,
    /// The bytes asked for; absent if they are too many for one answer.
    pub content: Option<Vec<u8>>,
    /// Where in the file they begin, in bytes.
    pub offset: u64,
    /// The number of the line in which they begin, from 1.
    pub first_line: u64,
}
