//! The git-patch document: unified diffs of several files, as `git diff` and `diff -u` write them (FILE-SPEC 3).
//!
//! Read as bytes: the lines of a file need not be UTF-8, and carry their own terminators. Text around the files of a diff is
//! skipped, unless it may be a part of the diff.

mod around;
mod blob_ids;
mod files;
mod header;
mod hunks;
mod letter;
pub(super) mod lines;
mod malformed;
mod name;
mod series;
pub(super) mod shape;
mod side;

use self::files::Diff;
use self::lines::{Extent, Lines};
use super::dialect::Parsed;

/// Reads the diffs of a text.
pub(super) fn parse(bytes: &[u8], extent: Extent) -> Parsed {
    let mut lines = Lines::of(bytes, extent);
    let mut diff = Diff::default();
    match diff.read(&mut lines) {
        Ok(()) => Ok(diff.finish(&lines)),
        Err((place, error)) => Err(error.failure(&place).into()),
    }
}
