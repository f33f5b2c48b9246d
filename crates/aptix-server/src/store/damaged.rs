//! Entries of lists whose records cannot be read.

use aptix_model::id::Revision;
use aptix_model::path::RootedPath;

/// A place among events whose record cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damaged {
    /// The event's number.
    pub revision: Revision,
    /// What is wrong.
    pub why: String,
}

/// A cloud file whose record cannot be read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct DamagedFile {
    /// Its path, by which it is listed.
    pub path: RootedPath,
    /// What is wrong.
    pub why: String,
}
