//! The hunks of one file: where each begins and ends, and whether its lines stay, go or come.
//!
//! The counts of a hunk's header say where it ends. Counts that lead anywhere else than to the end of a hunk are wrong;
//! the hunk then ends where something begins that can be no line of it, and its header is kept as it is.

use std::vec::Vec;

use super::header::Header;
use super::malformed::{GitPatchError, quote};
use super::{Lines, trim_end};
use crate::batch::{Hunk, HunkLine, LineKind};
use crate::limits::Limits;

/// Reads the hunks that stand next, if any do.
pub(super) fn read(lines: &mut Lines<'_>, header: &Header) -> Result<Vec<Hunk>, GitPatchError> {
    let mut hunks = Vec::new();
    loop {
        let next = lines.peek_past_blank();
        if !next.peek().is_some_and(|line| line.starts_with(b"@@")) {
            return Ok(hunks);
        }
        *lines = next;
        if hunks.len() == Limits::DEFAULT.changes {
            return Err(GitPatchError::Hunks { limit: Limits::DEFAULT.changes });
        }
        hunks.push(read_hunk(lines, header)?);
    }
}

fn read_hunk(lines: &mut Lines<'_>, header: &Header) -> Result<Hunk, GitPatchError> {
    let first = lines.peek().unwrap_or_default();
    let mut hunk = read_header(trim_end(first))?;
    lines.skip();
    // Where a header's own line ends with a carriage return, so do the lines around it, whatever the file's lines do.
    let end: &[u8] = if first.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
    let mut counted = *lines;
    hunk.lines = match read_counted(&mut counted, &hunk, end)? {
        Some(found) => {
            *lines = counted;
            found
        }
        None => read_to_end(lines, header, end)?,
    };
    if hunk.lines.is_empty() {
        return Err(GitPatchError::EmptyHunk);
    }
    Ok(hunk)
}

/// `@@ -12,3 +14,5 @@ anything`; a count that is absent is 1.
fn read_header(line: &[u8]) -> Result<Hunk, GitPatchError> {
    if line.starts_with(b"@@@") {
        return Err(GitPatchError::Format("a combined diff of a merge"));
    }
    let wrong = || GitPatchError::HunkHeader { found: quote(line) };
    // What comes after the numbers is a line of the file, in whatever encoding.
    let text = line.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    let (sides, _) = text.strip_prefix("@@ -").and_then(|text| text.split_once(" @@")).ok_or_else(wrong)?;
    let (old, new) = sides.split_once(" +").ok_or_else(wrong)?;
    let (old_start, old_count) = side(old).ok_or_else(wrong)?;
    let (new_start, new_count) = side(new).ok_or_else(wrong)?;
    Ok(Hunk { old_start, old_count, new_start, new_count, ..Hunk::default() })
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

/// The lines that the counts of the header ask for; `None` if the hunk does not end where they say.
fn read_counted(lines: &mut Lines<'_>, hunk: &Hunk, end: &[u8]) -> Result<Option<Vec<HunkLine>>, GitPatchError> {
    let (mut old, mut new) = (hunk.old_count, hunk.new_count);
    let mut found = Vec::new();
    while old > 0 || new > 0 {
        let Some(line) = next_line(lines, &mut found, end)? else { return Ok(None) };
        old -= i64::from(line.kind != LineKind::Added);
        new -= i64::from(line.kind != LineKind::Removed);
        found.push(line);
    }
    if old < 0 || new < 0 {
        return Ok(None);
    }
    take_marker(lines, &mut found, end)?;
    let next = lines.peek_past_blank();
    let goes_on = next.peek().is_some_and(is_hunk_line);
    Ok((!goes_on || next.is_at_sides()).then_some(found))
}

/// The lines down to what can be no line of a hunk. Blank lines at the end only set it apart from what follows.
fn read_to_end(lines: &mut Lines<'_>, header: &Header, end: &[u8]) -> Result<Vec<HunkLine>, GitPatchError> {
    let mut found = Vec::new();
    loop {
        let next = lines.peek_past_blank();
        if !next.peek().is_some_and(is_hunk_line) {
            *lines = next;
            return Ok(found);
        }
        if next.is_at_sides() && is_followed_by_hunk(next) {
            // Two lines that go and come, or the next file: only the counts could have told.
            if header.is_git() {
                return Err(GitPatchError::Counts);
            }
            *lines = next;
            return Ok(found);
        }
        while lines.number <= next.number {
            let Some(line) = next_line(lines, &mut found, end)? else { break };
            found.push(line);
        }
    }
}

/// Whether a line that is not blank can stand in a hunk.
fn is_hunk_line(line: &[u8]) -> bool {
    matches!(line.first(), Some(b' ' | b'+' | b'-' | b'\\'))
}

/// Whether a hunk begins below two lines.
fn is_followed_by_hunk(mut lines: Lines<'_>) -> bool {
    lines.skip();
    lines.skip();
    lines.peek().is_some_and(|line| line.starts_with(b"@@ -"))
}

/// The next line of a hunk, if the next line can be one. A marker above it belongs to the line before.
fn next_line(lines: &mut Lines<'_>, found: &mut [HunkLine], end: &[u8]) -> Result<Option<HunkLine>, GitPatchError> {
    take_marker(lines, found, end)?;
    let Some(line) = lines.peek() else { return Ok(None) };
    let (kind, text) = match line {
        [b' ', text @ ..] => (LineKind::Context, text),
        [b'-', text @ ..] => (LineKind::Removed, text),
        [b'+', text @ ..] => (LineKind::Added, text),
        // A blank line of the file whose blank was taken for white space at the end of a line.
        b"\n" | b"\r\n" => (LineKind::Context, line),
        _ => return Ok(None),
    };
    lines.skip();
    let mut bytes = text.to_vec();
    if !line.ends_with(b"\n") {
        // The diff's own last line may be unterminated; that of a file says so below it.
        bytes.extend_from_slice(end);
    }
    Ok(Some(HunkLine { kind, bytes }))
}

/// Takes the terminator from the last line if a marker says that it has none.
fn take_marker(lines: &mut Lines<'_>, found: &mut [HunkLine], end: &[u8]) -> Result<(), GitPatchError> {
    if !lines.peek().is_some_and(|line| line.starts_with(b"\\")) {
        return Ok(());
    }
    let last = found.last_mut().filter(|line| line.bytes.ends_with(b"\n")).ok_or(GitPatchError::Marker)?;
    if end == b"\r\n" && last.bytes.ends_with(end) {
        return Err(GitPatchError::MarkerEnds);
    }
    last.bytes.pop();
    lines.skip();
    // An empty line without terminator would be no line at all.
    if last.bytes.is_empty() { Err(GitPatchError::Marker) } else { Ok(()) }
}
