//! Cloud files, and how a step changes them.

use aptix_model::batch::BlobRef;
use aptix_model::id::Revision;
use aptix_model::path::{DocPath, RootedPath};

/// A file's new version, or its end.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FileUpdate {
    /// Its path, with its root's name in front.
    pub path: RootedPath,
    /// Its lower-case key.
    pub doc_path: DocPath,
    /// Its bytes; absent when there is no such file any more.
    pub content: Option<BlobRef>,
    /// What is known of other files with its key.
    pub twins: Twins,
}

/// Files with one key, whose paths differ only in case or form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Twins {
    /// There may be others; they stay.
    MayExist,
    /// There is no other on disk; what is kept of others is removed.
    Gone,
}

/// A file of a workspace, as last reported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct CloudFile {
    /// Its path, with its root's name in front.
    pub path: RootedPath,
    /// Its lower-case key.
    pub doc_path: DocPath,
    /// Its bytes.
    pub content: BlobRef,
    /// The event that made it what it is.
    pub revision: Revision,
}
