//! The form of a record, a sealed file of our own with a line of JSON and the receipt, and what it may name.
//!
//! A checksum proves that a record is as it was written, not who wrote it: what leads out of a root, into what is
//! protected, or beside our own files is never acted on.

use std::path::Path;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::protection::{self, Protection};

use crate::workspace::commit::record::{FileStep, Record};
use crate::workspace::commit::staged_name;
use crate::workspace::roots::own_file::{self, Damage, Found, Owner, split_line};
use crate::workspace::roots::state::{Part, StateDir};

/// The first word of a record of earlier versions, with the version of its form.
const MAGIC: &str = "aptix-journal-6";
/// What the record is called, however far its commit has come.
const RECORD: &str = "record";

/// Why bytes are not a record that may be acted on.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum RecordError {
    /// Not a record, or one of another version.
    #[error("it is no record of this version")]
    Version,
    /// Cut short or altered.
    #[error("its checksum does not fit")]
    Checksum,
    /// Made for roots that this journal is not of.
    #[error("it is of other roots than the journal it stands in")]
    Foreign,
    /// Something else where the journal of another root should be named.
    #[error("it does not name the journal of another root")]
    Pointer,
    /// The right checksum over something that no commit leaves.
    #[error("it names what no batch may change: a path out of its root, a protected file or a name that is not ours")]
    Bounds,
    /// The right checksum over something else.
    #[error("it does not have the fields of a record")]
    Fields,
}

/// Whose a record is in a journal.
pub(crate) const fn owner(state: &StateDir) -> Owner<'_> {
    Owner { part: Part::JOURNAL, name: RECORD, state }
}

/// Puts a record and its receipt into bytes.
pub(crate) fn encode(state: &StateDir, record: &Record, receipt: &[u8]) -> Vec<u8> {
    // A record is strings and numbers: there is nothing in it that JSON could refuse.
    let mut body = serde_json::to_vec(record).unwrap_or_default();
    body.push(b'\n');
    body.extend_from_slice(receipt);
    own_file::seal(owner(state), &body)
}

/// Reads a record of a journal, and its receipt.
pub(crate) fn decode<'b>(state: &StateDir, bytes: &'b [u8]) -> Result<(Record, &'b [u8]), RecordError> {
    let body = match own_file::unseal(owner(state), bytes) {
        Found::Sealed(body) => body,
        Found::Old(bytes) => unsealed(bytes)?,
        Found::Damaged(Damage::Owner) => return Err(RecordError::Foreign),
        Found::Damaged(Damage::Version) => return Err(RecordError::Version),
        Found::Damaged(Damage::Checksum | Damage::Content) => return Err(RecordError::Checksum),
    };
    let (json, receipt) = split_line(body).ok_or(RecordError::Fields)?;
    let record = serde_json::from_slice(json).map_err(|_| RecordError::Fields)?;
    if !is_bounded(&record) {
        return Err(RecordError::Bounds);
    }
    Ok((record, receipt))
}

/// What a record of an earlier version holds: a line with a checksum is before it.
fn unsealed(bytes: &[u8]) -> Result<&[u8], RecordError> {
    let (head, body) = split_line(bytes).ok_or(RecordError::Version)?;
    let digest =
        std::str::from_utf8(head).ok().and_then(|head| head.strip_prefix(MAGIC)).ok_or(RecordError::Version)?;
    if digest.trim_start().parse() != Ok(aptix_engine::digest::sha256(body)) {
        return Err(RecordError::Checksum);
    }
    Ok(body)
}

/// Whether a record of a commit names nothing but what a commit leaves.
fn is_bounded(record: &Record) -> bool {
    let in_roots = |root: usize| root < record.roots.len();
    let dirs =
        || record.dirs.iter().chain(&record.emptied).all(|dir| in_roots(dir.root) && is_entry(&dir.parent, &dir.name));
    let files = || {
        let fits = |file: &FileStep| is_entry(&file.dir, &file.name) && staged_name::is_staged(&file.staged);
        record.files.iter().all(|file| in_roots(file.root) && fits(file))
    };
    let roots = || record.roots.iter().all(|mark| Path::new(&mark.path).is_absolute());
    let ids = || [&record.history, &record.batch].into_iter().flatten().all(|id| is_id(id));
    let session = || record.clipboards.as_ref().is_none_or(|taken| taken.session.parse::<Sha256Digest>().is_ok());
    roots() && dirs() && files() && ids() && session()
}

/// Whether a name in a directory of a root is one that a batch may have.
pub(crate) fn is_entry(dir: &str, name: &str) -> bool {
    let path = if dir.is_empty() { name.to_owned() } else { format!("{dir}/{name}") };
    !name.contains('/') && is_inner(&path)
}

/// Whether a path leads from a root to something in it that a batch may change.
pub(crate) fn is_inner(path: &str) -> bool {
    let is_plain = |name: &str| !matches!(name, "" | "." | "..") && !name.contains('\0');
    path.split('/').all(is_plain) && protection::of(path) != Some(Protection::Protected)
}

fn is_id(text: &str) -> bool {
    Uuid::try_parse(text).is_ok_and(|id| id.to_string() == text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_lies_in_a_root_is_inner() {
        for path in ["a", "a/b", ".env", "a b/c:d", ".github/x", "..a/b."] {
            assert!(is_inner(path), "{path}");
        }
        let outer = ["", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", "a\0b"];
        for path in outer.into_iter().chain([".git/config", "a/.GIT/x"]) {
            assert!(!is_inner(path), "{path:?}");
        }
        assert!(is_entry("", "a") && is_entry("a/b", "c"));
        assert!(!is_entry("", "a/b") && !is_entry("a", "") && !is_entry("a", "..") && !is_entry("..", "a"));
        assert!(!is_entry("a/", "b") && !is_entry(".git", "config") && !is_entry("/a", "b"));
    }
}
