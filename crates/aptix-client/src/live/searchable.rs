//! What a search looks into: the texts of the files that its caller is shown.

use aptix_model::failure::Failure;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;

use crate::policy::disclosure::{Disclosure, Inside};
use crate::workspace::read::walk::File;

/// Most bytes of a file that is searched.
const FILE_BYTES: u64 = 16 << 20;

/// What there is to search in a file.
#[derive(Debug)]
pub(crate) enum Searchable {
    /// Its bytes.
    Bytes(Vec<u8>),
    /// Nothing: it is binary, or the caller is not shown what is in it.
    Closed,
    /// It is too large, no longer a file, or the system refuses.
    Unreadable,
}

impl Searchable {
    /// Reads a file of a root that was met on a walk.
    pub(crate) fn of(file: &File<'_>, root: usize, disclosure: &mut Disclosure<'_>) -> Self {
        let Ok(Some(opened)) = file.open() else { return Self::Unreadable };
        let Ok(head) = opened.head(KEY_HEAD_BYTES) else { return Self::Unreadable };
        let inside = Inside { names: opened.names(), head: &head };
        if disclosure.withheld_at(root, &file.path, inside).is_some() {
            return Self::Closed;
        }
        match opened.bytes(FILE_BYTES) {
            Ok(Some(bytes)) if bytes.contains(&0) => Self::Closed,
            Ok(Some(bytes)) => Self::Bytes(bytes),
            Ok(None) | Err(_) => Self::Unreadable,
        }
    }
}

/// Bytes without the byte order mark that they may begin with.
pub(crate) fn without_mark(bytes: &[u8]) -> &[u8] {
    bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes)
}

/// The failure of a search that was given up in the file at a path.
pub(crate) fn costly(path: String) -> Failure {
    let message = format!("the search of {path} takes more steps than a file of its size is worth");
    let hint = "repeat less in the pattern, write (?-u:\\b) for \\b, or leave the file out by path or glob";
    Failure { path: Some(path), ..Failure::new(Reason::MatchBudgetExceeded, message) }.field("pattern").hint(hint)
}
