//! The place of a chunk in its file.

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{ChunkLine, LineKind};
use aptix_model::report::Tier;

use crate::text::find::{Shift, is_blank, split_indent};

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
