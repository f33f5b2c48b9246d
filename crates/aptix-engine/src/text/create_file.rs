//! Whole-file content brought into the one form in which files are created: UTF-8, no byte order mark, `\n`.

use alloc::borrow::Cow;
use alloc::vec::Vec;

use aptix_model::report::Normalization;

/// The byte order mark. Content with several would, less one, still begin with one.
const BOM_CHAR: char = '\u{feff}';

/// The content to write, and what was changed about it (TUL-004 5.1).
///
/// Every carriage return directly before a line feed goes, so that no `\r\n` is left; any other one is text.
pub(crate) fn normalize(content: &str) -> (Cow<'_, [u8]>, Vec<Normalization>) {
    let mut normalized = Vec::new();
    let bytes = content.trim_start_matches(BOM_CHAR).as_bytes();
    if bytes.len() < content.len() {
        normalized.push(Normalization::BomRemoved);
    }
    let Some(first) = memchr::memmem::find(bytes, b"\r\n") else { return (Cow::Borrowed(bytes), normalized) };
    normalized.push(Normalization::LineEndings);
    let mut text = Vec::with_capacity(bytes.len());
    let (mut head, mut rest) = bytes.split_at(first);
    loop {
        text.extend_from_slice(head);
        let Some(tail) = rest.strip_prefix(b"\r\n") else { break };
        while text.last() == Some(&b'\r') {
            text.pop();
        }
        text.push(b'\n');
        (head, rest) = tail.split_at(memchr::memmem::find(tail, b"\r\n").unwrap_or(tail.len()));
    }
    (Cow::Owned(text), normalized)
}
