//! What is below the lines that a hunk's header counts: surplus, a signature, the next header, text, or the end.

use super::super::lines::{Extent, Lines, trim_end};
use super::super::malformed::GitPatchError;
use super::line::{Found, is_hunk_line, next_line, take_marker};
use crate::batch::{Hunk, HunkLine, LineKind};

/// Whether a line of a hunk is next, and not the names of the next file or a signature.
pub(super) fn goes_on(next: Lines<'_>) -> bool {
    next.peek().is_some_and(is_hunk_line) && !next.is_at_sides() && !next.is_at_signature()
}

/// Reads every line that can be one of a hunk. Blank lines at the end only set it apart from what follows.
pub(super) fn read_on(lines: &mut Lines<'_>, found: &mut Vec<Found>, end: &[u8]) -> Result<(), GitPatchError> {
    loop {
        let next = lines.peek_past_blank();
        if !goes_on(next) {
            return Ok(());
        }
        if is_cut_header(next) {
            return Err(GitPatchError::CutHeader);
        }
        while lines.number <= next.number {
            match next_line(lines, end) {
                Some(line) => found.push(line),
                None => take_marker(lines, found, end)?,
            }
        }
    }
}

/// Reads what may belong to a hunk below the lines that its header counts, and passes a signature.
pub(super) fn read_surplus(lines: &mut Lines<'_>, hunk: &Hunk, end: &[u8]) -> Result<Vec<HunkLine>, GitPatchError> {
    let mut found = Vec::new();
    read_on(lines, &mut found, end)?;
    let has_blank = found.iter().any(|line| line.is_blank);
    let is_added = found.iter().all(|line| line.is_blank || line.kind() == LineKind::Added) && !found.is_empty();
    let is_open = hunk.lines.iter().any(|line| !line.bytes.ends_with(b"\n"));
    let ends_in_cut = found.last().is_some_and(|line| line.is_cut && line.kind() == LineKind::Added);
    if ends_in_cut && lines.extent == Extent::Document {
        return Err(GitPatchError::CutLine);
    }
    // Nothing but their place shows that added lines belong to the hunk.
    if is_added && (has_blank || is_open || !is_bounded(lines)) {
        return Err(GitPatchError::Counts);
    }
    pass_signature(lines);
    Ok(found.into_iter().map(|found| found.line).collect())
}

/// Whether a diff goes on or ends next for sure: at a header, a signature, a closing fence, or the end of a text that is
/// nothing but a diff.
pub(super) fn is_bounded(lines: &Lines<'_>) -> bool {
    let next = lines.peek_past_blank();
    let is_end = next.peek().is_none() && (lines.extent == Extent::Fence || !lines.has_text);
    is_end || is_at_header(next) || next.is_at_closing_fence()
}

fn is_at_header(next: Lines<'_>) -> bool {
    let is_header = |line: &[u8]| [&b"@@"[..], b"diff -", b"Index: "].iter().any(|header| line.starts_with(header));
    next.peek().is_some_and(is_header) || next.is_at_sides() || next.is_at_signature()
}

/// Passes the line with dashes and the one with the version that end a mail.
fn pass_signature(lines: &mut Lines<'_>) {
    let mut next = lines.peek_past_blank();
    if next.is_at_signature() {
        next.skip();
        if next.peek().is_some() {
            next.skip();
        }
        *lines = next;
    }
}

/// Lets a hunk with fewer lines than its header counts through if the plan may find it whole: another one follows it, and
/// it ends in context.
pub(super) fn short(lines: &Lines<'_>, hunk: Hunk, start: usize) -> Result<Hunk, GitPatchError> {
    let is_followed = lines.peek_past_blank().peek().is_some_and(|line| line.starts_with(b"@@"));
    if is_followed && hunk.ends_in_context() { Ok(hunk) } else { Err(GitPatchError::short(hunk, start)) }
}

/// Reads a hunk whose header has no numbers, down to where it ends for sure.
pub(super) fn read_unnumbered(lines: &mut Lines<'_>, hunk: Hunk, end: &[u8]) -> Result<Hunk, GitPatchError> {
    let mut found = Vec::new();
    read_on(lines, &mut found, end)?;
    take_marker(lines, &mut found, end)?;
    let next = lines.peek_past_blank();
    let is_end = next.peek().is_none() && lines.extent == Extent::Fence;
    if !is_end && !is_at_header(next) && !next.is_at_closing_fence() {
        return Err(GitPatchError::Unbounded);
    }
    pass_signature(lines);
    if found.is_empty() {
        return Err(GitPatchError::EmptyHunk);
    }
    Ok(Hunk { lines: found.into_iter().map(|found| found.line).collect(), ..hunk })
}

/// Whether the document ends within what may be the header of the next hunk or file.
pub(super) fn is_cut_header(mut lines: Lines<'_>) -> bool {
    let Some(first) = lines.peek().filter(|_| lines.extent == Extent::Document) else { return false };
    lines.skip();
    lines = lines.peek_past_blank();
    let second = lines.peek();
    let is_unterminated = !first.ends_with(b"\n");
    let is_begun = is_unterminated
        && (matches!(first, b"@" | b"-" | b"--" | b"---")
            || first.starts_with(b"diff ")
            || b"diff ".starts_with(first));
    let is_old_side = first.starts_with(b"--- ");
    let is_new_side = second.is_some_and(|line| {
        lines.skip();
        matches!(trim_end(line), b"+" | b"++" | b"+++") && lines.peek_past_blank().peek().is_none()
    });
    is_begun || (is_old_side && (second.is_none() || is_new_side))
}
