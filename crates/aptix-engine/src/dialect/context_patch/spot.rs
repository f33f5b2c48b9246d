//! The place of a chunk in its file, and the runs of lines that are added and removed there.

use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{ChunkLine, LineKind};
use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use crate::nearest::old_text;
use crate::text::find::{Shift, is_blank, split_indent};
use crate::text::lines::Text;

/// The place of a chunk.
#[derive(Debug)]
pub(super) struct Spot<'a> {
    /// The old lines, as far as they are in the file; where nothing but new lines are, an empty range.
    pub(super) range: Range<usize>,
    pub(super) tier: Tier,
    pub(super) candidates: usize,
    pub(super) shift: Shift,
    /// The chunk's lines without blank ones at its edges that the file does not have.
    pub(super) lines: &'a [ChunkLine],
    /// What the places of the last anchor head, as far as they are known.
    pub(super) heads: Vec<Range<usize>>,
}

impl<'a> Spot<'a> {
    pub(super) fn old_lines(&self) -> impl Iterator<Item = &'a ChunkLine> {
        self.lines.iter().filter(|line| line.kind != LineKind::Added)
    }

    /// Old lines that stand for all of them where only the indentation counts.
    pub(super) fn indents(&self) -> Vec<&'a [u8]> {
        let lines = self.old_lines().map(|line| line.text.as_bytes()).filter(|line| !is_blank(line));
        let mut lines: Vec<_> = if self.shift == Shift::None { Vec::new() } else { lines.collect() };
        lines.sort_by_key(|line| split_indent(line).0);
        lines.dedup_by_key(|line| split_indent(line).0);
        lines
    }
}

/// Lines that are added and removed without one that stays between them.
pub(super) struct Run {
    pub(super) chunk: usize,
    pub(super) above: usize,
    /// The removed lines, as the file has them.
    pub(super) old: Vec<String>,
    pub(super) new: Vec<String>,
}

/// The runs of a chunk, its new lines indented like the lines that were found.
pub(super) fn runs(chunk: usize, above: usize, spot: &Spot<'_>, text: &Text<'_>) -> Result<Vec<Run>, Failure> {
    let old = spot.indents();
    let lines = |kind| spot.lines.iter().filter(move |line| line.kind != kind).map(|line| line.text.as_bytes());
    spot.shift
        .check(lines(LineKind::Added), lines(LineKind::Removed))
        .map_err(|error| old_text::unshiftable(&error, text, above + 1, spot.old_lines().count()))?;
    let mut cursor = text.cursor_at(spot.range.start, above);
    let mut runs: Vec<Run> = Vec::new();
    let (mut is_open, mut new_line) = (false, 0);
    for line in spot.lines {
        if line.kind == LineKind::Context {
            cursor.next();
            (is_open, new_line) = (false, new_line + 1);
            continue;
        }
        if !is_open {
            runs.push(Run { chunk, above: cursor.above(), old: Vec::new(), new: Vec::new() });
            is_open = true;
        }
        let Some(run) = runs.last_mut() else { continue };
        if line.kind == LineKind::Removed {
            run.old.push(String::from_utf8_lossy(cursor.next().unwrap_or_default()).into_owned());
            continue;
        }
        new_line += 1;
        if is_blank(line.text.as_bytes()) {
            run.new.push(line.text.clone());
            continue;
        }
        let (indent, rest) = spot
            .shift
            .apply(&line.text, new_line, &old)
            .map_err(|error| old_text::unshiftable(&error, text, above + 1, spot.old_lines().count()))?;
        run.new.push([indent, rest].concat());
    }
    Ok(runs)
}
