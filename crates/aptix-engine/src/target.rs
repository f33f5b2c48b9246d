//! Which file an edit is for, checked, and what that file must be for the edit to apply.

use aptix_model::digest::Sha256Digest;
use aptix_model::path::{DocPath, WorkspacePath};

/// Which file, checked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ValidTarget {
    /// A lower-case key that begins with a root's name.
    DocPath(DocPath),
    /// A path in the workspace, in its real case.
    Path(WorkspacePath),
}

/// What a file must be for an edit to apply.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Base {
    /// Present.
    MustExist,
    /// Absent.
    MustNotExist,
    /// Present, with these bytes or this canonical text.
    MustMatch(Sha256Digest),
    /// Present or absent.
    Any,
}
