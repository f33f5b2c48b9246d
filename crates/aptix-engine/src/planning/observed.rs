//! What the caller found at the paths of a file patch.

use alloc::boxed::Box;
use alloc::string::String;

use aptix_model::digest::Sha256Digest;
use aptix_model::path::WorkspacePath;

/// What the caller found for one file patch.
#[derive(Clone, Debug)]
pub struct Observed<'a> {
    /// The path relative to its root, in its real case.
    pub path: WorkspacePath,
    /// The lower-case key: the root's name and the path.
    pub doc_path: String,
    /// The file's bytes; `None` when there is no file.
    pub content: Option<&'a [u8]>,
    /// The SHA-256 of `content`, if the caller has it. It is believed, and `content` is then hashed no more, unless
    /// a stated digest is another one and could be that of the canonical text.
    pub digest: Option<Sha256Digest>,
    /// Whether the file can be executed.
    pub is_executable: bool,
    /// What was found at the other path, where the file patch names one.
    pub other: Option<Box<Self>>,
}
