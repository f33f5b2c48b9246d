//! A file that is committed although a program writes it.

use std::fs;

use crate::repo;

/// A committed file and what it must hold.
pub(super) struct Generated {
    pub(super) path: String,
    pub(super) content: Vec<u8>,
}

/// The files that do not hold what they must.
pub(super) fn stale(mut files: Vec<Generated>) -> Vec<Generated> {
    files.retain(|file| fs::read(repo::root().join(&file.path)).ok().as_ref() != Some(&file.content));
    files
}
