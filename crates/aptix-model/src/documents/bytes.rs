//! The bytes of a document: how many are read, and that they are text.

use super::dialect::Dialect;
use crate::failure::Failure;
use crate::limits::{DOCUMENT_BYTES, LINES};
use crate::reason::{Detail, Reason};

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// A document, without its byte order mark, that has bytes, and no more than are read.
pub(super) fn check_size(bytes: &[u8]) -> Result<&[u8], Failure> {
    if bytes.len() > DOCUMENT_BYTES {
        let message = format!("the document has {} bytes, at most {DOCUMENT_BYTES} are read", bytes.len());
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Document)
            .hint("send several smaller batches, one after the other"));
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        let message = "the document is empty, expected an edit";
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Empty)
            .hint(format!("send a document in one of the dialects: {}", Dialect::ALL.map(Dialect::name).join(", "))));
    }
    Ok(bytes)
}

/// Refuses a text of more lines than are read: each takes many times its own room.
pub(super) fn check_lines(bytes: &[u8]) -> Result<(), Failure> {
    let lines = bytes.iter().filter(|byte| **byte == b'\n').count();
    if lines <= LINES { Ok(()) } else { Err(too_many_lines(&format!("{lines} lines"))) }
}

/// Refuses a document that has more lines than are read.
pub(super) fn too_many_lines(found: &str) -> Failure {
    Failure::new(Reason::TooLarge, format!("the document has {found}, at most {LINES} are read"))
        .detail(Detail::Document)
        .hint("send several smaller batches, one after the other")
}

/// The text of a document, which is UTF-8.
pub(super) fn decode(bytes: &[u8]) -> Result<&str, Failure> {
    core::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the document is not UTF-8: byte {} is wrong", error.valid_up_to());
        Failure::new(Reason::InvalidRequest, message).detail(Detail::Unicode).hint("send the document as UTF-8")
    })
}
