//! Directories that git takes for its own whatever their name, and does what is written in them.

use std::os::fd::BorrowedFd;

use rustix::io::Errno;

use crate::workspace::fs::beneath;

/// By these git knows a directory for its own: the first, and either the second or both others.
pub(crate) const NAMES: [&str; 4] = ["HEAD", "commondir", "objects", "refs"];

/// Whether git would take a directory for its own if it had everything of which this is said.
pub(crate) fn is_known_by(has: impl Fn(&str) -> Result<bool, Errno>) -> Result<bool, Errno> {
    let [head, common, objects, refs] = NAMES;
    Ok(has(head)? && (has(common)? || (has(objects)? && has(refs)?)))
}

/// Whether git takes a directory for its own.
pub(crate) fn is_of_git(dir: BorrowedFd<'_>) -> Result<bool, Errno> {
    is_known_by(|name| has(dir, name))
}

pub(crate) fn has(dir: BorrowedFd<'_>, name: &str) -> Result<bool, Errno> {
    Ok(beneath::look_up(dir, name)?.is_some())
}
