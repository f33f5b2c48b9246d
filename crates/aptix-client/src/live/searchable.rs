//! What a search looks into: the texts of the files that its caller is shown.

use aptix_model::failure::Failure;
use aptix_model::protection::KEY_HEAD_BYTES;
use aptix_model::reason::Reason;

use crate::policy::disclosure::{Disclosure, Inside};
use crate::unsaved::Unsaved;
use crate::workspace::read::walk::File;

/// Most bytes of a file that is searched.
const FILE_BYTES: u64 = 16 << 20;

/// What there is to search in a file.
#[derive(Debug)]
pub(crate) enum Searchable {
    /// Its bytes, or those of the unsaved buffer that stands for it.
    Bytes { bytes: Vec<u8>, is_unsaved: bool },
    /// Nothing: it is binary, or the caller is not shown what is in it.
    Closed,
    /// It has more bytes than are searched.
    TooLarge,
    /// It is no longer a file, or the system refuses.
    Unreadable,
}

impl Searchable {
    /// Reads a file of a root that was met on a walk, or the buffer that stands for it.
    pub(crate) fn of(file: &File<'_>, root: usize, disclosure: &mut Disclosure<'_>, unsaved: &Unsaved) -> Self {
        let Ok(Some(opened)) = file.open() else { return Self::Unreadable };
        let Ok(head) = opened.head(KEY_HEAD_BYTES) else { return Self::Unreadable };
        let inside = Inside { names: opened.names(), head: &head };
        if disclosure.withheld_at(root, &file.path, inside).is_some() {
            return Self::Closed;
        }
        let bytes = match opened.bytes(FILE_BYTES) {
            Ok(Some(bytes)) => bytes,
            Ok(None) => return Self::TooLarge,
            Err(_) => return Self::Unreadable,
        };
        let Some(buffer) = unsaved.met(root, &file.path, Some(&bytes)) else { return Self::text(bytes, false) };
        let Some(text) = &buffer.text else { return Self::Unreadable };
        let head = text.as_bytes().get(..KEY_HEAD_BYTES).unwrap_or(text.as_bytes());
        match disclosure.withheld_at(root, &file.path, Inside { names: 0, head }) {
            Some(_) => Self::Closed,
            None => Self::text(text.as_bytes().to_owned(), true),
        }
    }
}

impl Searchable {
    fn text(bytes: Vec<u8>, is_unsaved: bool) -> Self {
        if bytes.contains(&0) { Self::Closed } else { Self::Bytes { bytes, is_unsaved } }
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
