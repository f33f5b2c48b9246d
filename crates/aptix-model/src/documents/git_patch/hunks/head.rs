//! The header of a hunk: `@@ -12,3 +14,5 @@ anything`, or one that says nothing.

use super::super::malformed::{GitPatchError, quote};
use crate::batch::Hunk;

/// Reads a header; a count that is absent is 1.
pub(super) fn read(line: &[u8]) -> Result<Hunk, GitPatchError> {
    if line.starts_with(b"@@@") {
        return Err(GitPatchError::Format("a combined diff of a merge"));
    }
    let wrong = || GitPatchError::HunkHeader { found: quote(line) };
    // What comes after the numbers is a line of the file, in whatever encoding.
    let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if is_unnumbered(text) {
        return Ok(Hunk { is_unnumbered: true, ..Hunk::default() });
    }
    let (sides, _) = text.strip_prefix("@@ -").and_then(|text| text.split_once(" @@")).ok_or_else(wrong)?;
    let (old, new) = sides.split_once(" +").ok_or_else(wrong)?;
    let (old_start, old_count) = side(old).ok_or_else(wrong)?;
    let (new_start, new_count) = side(new).ok_or_else(wrong)?;
    Ok(Hunk { old_start, old_count, new_start, new_count, ..Hunk::default() })
}

/// `@@`, `@@ @@` and `@@ ... @@`, the latter with anything below it.
fn is_unnumbered(text: &str) -> bool {
    let dots = ["@@ ... @@", "@@ \u{2026} @@"];
    matches!(text.trim_ascii_end(), "@@" | "@@ @@") || dots.into_iter().any(|dots| text.starts_with(dots))
}

fn side(text: &str) -> Option<(i64, i64)> {
    let number = |text: &str| {
        let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i64>().ok().filter(|_| is_number)
    };
    match text.split_once(',') {
        Some((start, count)) => Some((number(start)?, number(count)?)),
        None => Some((number(text)?, 1)),
    }
}
