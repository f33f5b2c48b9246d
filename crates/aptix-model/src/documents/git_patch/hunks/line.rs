//! One line of a hunk: its prefix, its bytes, and the marker that takes its terminator away.

use super::super::lines::{Extent, Lines};
use super::super::malformed::GitPatchError;
use crate::batch::{HunkLine, LineKind};

/// A line of a diff, read as one of a hunk.
pub(super) struct Found {
    pub(super) line: HunkLine,
    /// Whether it is empty, without even a prefix.
    pub(super) is_blank: bool,
    /// Whether the diff ends in it without a line feed.
    pub(super) is_cut: bool,
}

impl Found {
    pub(super) const fn kind(&self) -> LineKind {
        self.line.kind
    }
}

/// Whether a line that is not blank can be in a hunk.
pub(super) fn is_hunk_line(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'+' | b'-')) || is_marker(line)
}

/// What git writes below a line without terminator; `diff` writes it in the language of its user.
const MARKER: &[u8] = b"\\ No newline at end of file";

fn is_marker(line: &[u8]) -> bool {
    line.starts_with(b"\\ ") || line == b"\\"
}

/// The next line of a hunk, if the next line has a prefix or is empty.
pub(super) fn next_line(lines: &mut Lines<'_>, end: &[u8]) -> Option<Found> {
    let line = lines.peek()?;
    let (kind, text) = match line {
        [b' ', text @ ..] => (LineKind::Context, text),
        [b'-', text @ ..] => (LineKind::Removed, text),
        [b'+', text @ ..] => (LineKind::Added, text),
        // A blank line of the file whose blank was taken for white space at the end of a line.
        line if line.trim_ascii().is_empty() => (LineKind::Context, line),
        _ => return None,
    };
    lines.skip();
    let is_cut = !line.ends_with(b"\n");
    let mut bytes = text.to_vec();
    if is_cut {
        // The diff's own last line may be unterminated; that of a file is marked below it.
        bytes.extend_from_slice(end);
    }
    Some(Found { line: HunkLine { kind, bytes }, is_blank: line.trim_ascii().is_empty() && text == line, is_cut })
}

/// The next line read as context that lost its blank, unless it is known for something else.
pub(super) fn without_prefix(lines: &Lines<'_>) -> Option<Found> {
    const OTHERS: [&[u8]; 7] = [b"@@", b"diff -", b"Index: ", b"```", b"~~~", b"\\", b"GIT binary patch"];
    let line = lines.peek()?;
    if OTHERS.iter().any(|other| line.trim_ascii_start().starts_with(other)) || !line.ends_with(b"\n") {
        return None;
    }
    let line = HunkLine { kind: LineKind::Context, bytes: line.to_vec() };
    Some(Found { line, is_blank: false, is_cut: false })
}

/// Takes the terminator from the last line if a marker says that it has none.
pub(super) fn take_marker(lines: &mut Lines<'_>, found: &mut [Found], end: &[u8]) -> Result<(), GitPatchError> {
    let Some(marker) = lines.peek().filter(|line| is_marker(line)) else { return Ok(()) };
    if lines.extent == Extent::Document && !marker.ends_with(b"\n") && marker != MARKER {
        return Err(GitPatchError::CutHeader);
    }
    let last = found.last_mut().map(|found| &mut found.line.bytes).filter(|bytes| bytes.ends_with(b"\n"));
    let last: &mut Vec<u8> = last.ok_or(GitPatchError::Marker)?;
    if end == b"\r\n" && last.ends_with(end) {
        return Err(GitPatchError::MarkerEnds);
    }
    last.pop();
    lines.skip();
    // An empty line without terminator would be no line at all.
    if last.is_empty() { Err(GitPatchError::Marker) } else { Ok(()) }
}
