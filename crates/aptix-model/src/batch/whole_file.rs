//! Edits that give the whole content of a file, here or as an uploaded blob.

use alloc::string::String;

use crate::digest::Sha256Digest;

/// A whole file's content (TUL-004 4.2).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct CreateFile {
    /// The content.
    pub content: Content,
    /// Whether a file that is already there is replaced.
    pub overwrite: bool,
    /// What the author declares the content to be: nothing, or [`VERBATIM`].
    pub content_format: Option<String>,
}

/// A whole file's content, written as it is (FILE-SPEC 1.1).
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct WriteFile {
    /// The content.
    pub content: Content,
    /// What must be there before.
    pub presence: Presence,
    /// What the author declares the content to be: nothing, or [`VERBATIM`].
    pub content_format: Option<String>,
}

/// The content format of text that is meant as it is, whatever it looks like.
pub const VERBATIM: &str = "verbatim";

/// Whether a file must be there before it is written.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Presence {
    /// It must not: the file is created.
    Absent,
    /// It must: the file is replaced.
    Present,
    /// Either way.
    Either,
}

/// Text, here or stored elsewhere.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
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
