//! The hunks of one file: where each begins and ends, and whether its lines stay, go or come.
//!
//! The counts of a hunk's header delimit it, whatever its lines look like. Fewer lines refuse the diff, for it was cut off;
//! what is below the counted lines is text, or travels as surplus, which the file decides about.

mod below;
mod line;

use self::line::{Found, next_line, take_marker};
use super::lines::{Extent, Lines, trim_end};
use super::malformed::{GitPatchError, quote};
use crate::batch::{Hunk, LineKind};
use crate::limits::Limits;

/// Reads the hunks that are next, if there are any.
pub(super) fn read(lines: &mut Lines<'_>) -> Result<Vec<Hunk>, GitPatchError> {
    let mut hunks = Vec::new();
    loop {
        let next = lines.peek_past_blank();
        if !next.peek().is_some_and(|line| line.starts_with(b"@@")) {
            return if below::is_cut_header(next) { Err(GitPatchError::CutHeader) } else { Ok(hunks) };
        }
        *lines = next;
        if hunks.len() == Limits::DEFAULT.changes {
            return Err(GitPatchError::Hunks { limit: Limits::DEFAULT.changes });
        }
        hunks.push(read_hunk(lines)?);
    }
}

fn read_hunk(lines: &mut Lines<'_>) -> Result<Hunk, GitPatchError> {
    let (start, first) = (lines.number, lines.peek().unwrap_or_default());
    let hunk = read_header(trim_end(first))?;
    lines.skip();
    // Where a header's own line ends with a carriage return, so do the lines around it, whatever the file's lines do.
    let has_returns = first.ends_with(b"\r\n");
    lines.has_returns |= has_returns;
    let end: &[u8] = if has_returns { b"\r\n" } else { b"\n" };
    if hunk.is_unnumbered {
        return below::read_unnumbered(lines, hunk, end);
    }
    let mut body = Body { hunk, found: Vec::new(), end, open: None };
    match body.read_counted(lines)? {
        Stop::UsedUp => body.finish(lines),
        Stop::Uneven => {
            below::read_on(lines, &mut body.found, end)?;
            body.finish_uneven(lines, start)
        }
        Stop::Short => body.finish_short(lines, start),
    }
}

/// Reads `@@ -12,3 +14,5 @@ anything`, or a header that says nothing; a count that is absent is 1.
fn read_header(line: &[u8]) -> Result<Hunk, GitPatchError> {
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

/// Why the lines of a hunk end.
enum Stop {
    /// They use up both counts.
    UsedUp,
    /// One of them exceeds a count while the other count asks for more.
    Uneven,
    /// The next line is none of a hunk, and the counts ask for more.
    Short,
}

/// A hunk whose lines are being read.
struct Body<'e> {
    hunk: Hunk,
    found: Vec<Found>,
    /// What ends a line that the diff does not end itself.
    end: &'e [u8],
    /// The first line that has no prefix, by its index, and the lines of the diff from it on.
    open: Option<usize>,
}

impl Body<'_> {
    /// Reads lines until they use up both counts, or cannot any more.
    fn read_counted(&mut self, lines: &mut Lines<'_>) -> Result<Stop, GitPatchError> {
        let (mut old, mut new) = (self.hunk.old_count, self.hunk.new_count);
        let mut before = *lines;
        let stop = loop {
            if (old, new) == (0, 0) && !self.found.is_empty() {
                break Stop::UsedUp;
            }
            if old < 0 || new < 0 || (old, new) == (0, 0) {
                break Stop::Uneven;
            }
            if old == 0 && lines.is_at_sides() {
                break Stop::Short;
            }
            take_marker(lines, &mut self.found, self.end)?;
            let line = match next_line(lines, self.end) {
                Some(line) => line,
                None => match line::without_prefix(lines) {
                    Some(line) => {
                        before = if self.open.is_some() { before } else { *lines };
                        self.open = self.open.or(Some(self.found.len()));
                        lines.skip();
                        line
                    }
                    None => break Stop::Short,
                },
            };
            old -= i64::from(line.kind() != LineKind::Added);
            new -= i64::from(line.kind() != LineKind::Removed);
            self.found.push(line);
        };
        take_marker(lines, &mut self.found, self.end)?;
        let Some(open) = self.open else { return Ok(stop) };
        if matches!(stop, Stop::UsedUp) && !below::goes_on(lines.peek_past_blank()) {
            return Ok(stop);
        }
        // Lines without prefix belong to the hunk only if the counts come out exactly with them.
        self.found.truncate(open);
        self.open = None;
        *lines = before;
        Ok(Stop::Short)
    }

    /// A hunk that has its lines: what is below them, and which of them the file has to confirm.
    fn finish(mut self, lines: &mut Lines<'_>) -> Result<Hunk, GitPatchError> {
        if lines.extent == Extent::Document
            && let Some(last) = self.found.last().filter(|line| line.is_cut)
        {
            // What is left of an added line looks whole; only the bytes of the result can prove it, and no other guess.
            lines.is_cut = last.kind() == LineKind::Added;
            if lines.is_cut && self.open.is_some() {
                return Err(GitPatchError::CutLine);
            }
            self.open = self.open.or(self.found.len().checked_sub(1));
        }
        // Blank lines at the end may also be there to set the hunk apart, so that a shorter one would look whole.
        let blank = self.found.iter().rev().take_while(|line| line.is_blank).count();
        let open = self.open.unwrap_or(self.found.len()).min(self.found.len() - blank);
        self.hunk.surplus = self.found.drain(open..).map(|line| line.line).collect();
        self.hunk.lines = self.found.drain(..).map(|line| line.line).collect();
        if self.hunk.surplus.is_empty() {
            self.hunk.surplus = below::read_surplus(lines, &self.hunk, self.end)?;
        }
        Ok(self.hunk)
    }

    /// A hunk whose counts no line uses up: it has all lines.
    fn finish_uneven(mut self, lines: &mut Lines<'_>, start: usize) -> Result<Hunk, GitPatchError> {
        if lines.extent == Extent::Document && self.found.last().is_some_and(|line| line.is_cut) {
            return Err(GitPatchError::CutLine);
        }
        let ends_in_added = self.found.last().is_some_and(|line| line.kind() == LineKind::Added);
        let is_bounded = below::is_bounded(lines);
        self.take_lines();
        if self.hunk.lines.is_empty() {
            return Err(GitPatchError::EmptyHunk);
        }
        if self.hunk.is_short() {
            return below::short(lines, self.hunk, start);
        }
        if ends_in_added && !is_bounded { Err(GitPatchError::Counts) } else { Ok(self.hunk) }
    }

    fn finish_short(mut self, lines: &mut Lines<'_>, start: usize) -> Result<Hunk, GitPatchError> {
        self.take_lines();
        below::short(lines, self.hunk, start)
    }

    /// Takes the lines, without the blank ones that only set the hunk apart from what follows.
    fn take_lines(&mut self) {
        while self.found.last().is_some_and(|line| line.is_blank) {
            self.found.pop();
        }
        self.hunk.lines = self.found.drain(..).map(|line| line.line).collect();
    }
}
