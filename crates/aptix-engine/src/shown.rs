//! Text of authors and files as a failure shows it: its first characters, however long it is.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;

/// Characters of a path that is not checked yet.
const PATH_CHARS: usize = 200;

/// The first characters of some bytes; what is no UTF-8 is shown as U+FFFD, what is left out as an ellipsis.
pub(crate) fn cut(bytes: &[u8], chars: usize) -> Cow<'_, str> {
    // No character has more than four bytes.
    let head = String::from_utf8_lossy(bytes.get(..4 * chars + 4).unwrap_or(bytes));
    if head.chars().nth(chars).is_none() {
        return head;
    }
    Cow::Owned(head.chars().take(chars).chain(['\u{2026}']).collect())
}

/// A path as its author wrote it.
pub(crate) fn path(text: &str) -> Cow<'_, str> {
    cut(text.as_bytes(), PATH_CHARS)
}

/// A path as a message quotes it.
pub(crate) fn quoted_path(text: &str) -> String {
    format!("{:?}", path(text))
}

/// So many of a thing: "1 line", "2 lines".
pub(crate) fn counted(count: usize, noun: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {noun}{plural}")
}
