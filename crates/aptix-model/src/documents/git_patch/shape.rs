//! How a diff is known among other texts: by its first lines, by the mail or the log around it, or because a text has a diff
//! and no other mark of an answer.

use super::letter;
use crate::documents::chat;

/// Whether a text is a diff, with or without text around it.
pub(super) fn is_diff(text: &str) -> bool {
    let mut lines = text.lines().skip_while(|line| line.trim().is_empty());
    let (first, second) = (lines.next().unwrap_or_default(), lines.next().unwrap_or_default());
    first.starts_with("diff -")
        || first.starts_with("@@ -")
        || (first.starts_with("--- ") && second.starts_with("+++ "))
        || (first.starts_with("*** ") && second.starts_with("--- "))
        || (letter::begins(first) && chat::diff_header(text).is_some())
        || chat::is_bare_diff(text)
}
