//! Changed lines with as many lines around them as it takes for their old text to occur in the file once.

use alloc::vec::Vec;
use core::ops::Range;

use memchr::memmem;

use crate::diff::{Block, line_start, lines_below};
use crate::text::edit::slice;

/// Bytes that are looked through for all blocks together before it is too much.
const WORK: usize = 8 << 30;

/// Ranges of the base whose text occurs in it once, sorted and disjoint, each with its replacement. Nothing above
/// `top` is taken. `None` if that is too much work.
pub(super) fn unique(base: &[u8], top: usize, blocks: &[Block<'_>]) -> Option<Vec<(Range<usize>, Vec<u8>)>> {
    let mut work = WORK;
    let mut places: Vec<(Range<usize>, &[Block<'_>])> = Vec::with_capacity(blocks.len());
    for (index, block) in blocks.iter().enumerate() {
        let mut range = widened(base, top, block, &mut work)?;
        let mut first = index;
        while let Some((last, of)) = places.pop_if(|(last, _)| last.end > range.start) {
            // What has a unique text in it is unique.
            range = last.start.min(range.start)..range.end.max(last.end);
            first -= of.len();
        }
        places.push((range, blocks.get(first..=index)?));
    }
    Some(places.into_iter().map(|(range, blocks)| (range.clone(), replaced(base, range, blocks))).collect())
}

/// A block's range with lines around it, until its text is unique, and no longer there once the block is replaced.
fn widened(base: &[u8], top: usize, block: &Block<'_>, work: &mut usize) -> Option<Range<usize>> {
    let range = block.old.clone();
    let mut around = range.clone();
    let mut lines = usize::from(range.is_empty());
    loop {
        if lines > 0 {
            let start = (0..lines).fold(range.start, |start, _| line_start(base, start.saturating_sub(1)).max(top));
            around = start..lines_below(base, range.end, lines);
        }
        if around == (top..base.len())
            || (is_unique(base, around.clone(), work)? && is_gone(base, &around, block, work)?)
        {
            return Some(around);
        }
        lines = (lines + 1).max(lines * 3 / 2);
    }
}

/// Whether the text at a place occurs nowhere else, counting places that overlap, and the end of a file that lacks only
/// its last terminator.
fn is_unique(base: &[u8], range: Range<usize>, work: &mut usize) -> Option<bool> {
    *work = work.checked_sub(base.len())?;
    let text = slice(base, range.clone());
    let open = text.strip_suffix(b"\n").map(|open| open.strip_suffix(b"\r").unwrap_or(open));
    if open.is_some_and(|open| !open.is_empty() && !base.ends_with(b"\n") && base.ends_with(open)) {
        return Some(false);
    }
    let finder = memmem::Finder::new(text);
    let is_above = finder.find(slice(base, 0..range.end.saturating_sub(1))).is_some();
    Some(!is_above && finder.find(slice(base, range.start + 1..base.len())).is_none())
}

/// Whether the text at a place is gone once a block in it is replaced, and the text that is there then
/// does not occur above it already: the edit itself shows whether it was made.
fn is_gone(base: &[u8], around: &Range<usize>, block: &Block<'_>, work: &mut usize) -> Option<bool> {
    let length = around.len();
    let above = slice(base, around.start.saturating_sub(length)..around.start);
    let new = replaced(base, around.clone(), core::slice::from_ref(block));
    let below = slice(base, around.end..around.end.saturating_add(length));
    *work = work.checked_sub(base.len() + new.len())?;
    let beside = [above, &new, below].concat();
    let is_there = memmem::find(&beside, slice(base, around.clone())).is_some();
    Some(!is_there && (new.is_empty() || memmem::find(slice(base, 0..around.start), &new).is_none()))
}

/// The text of a range with its blocks replaced.
fn replaced(base: &[u8], range: Range<usize>, blocks: &[Block<'_>]) -> Vec<u8> {
    let mut new = Vec::new();
    let mut at = range.start;
    for block in blocks {
        new.extend_from_slice(slice(base, at..block.old.start));
        new.extend_from_slice(&block.new);
        at = block.old.end;
    }
    new.extend_from_slice(slice(base, at..range.end));
    new
}
