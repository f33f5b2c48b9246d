//! Conflict markers, and texts that consist of SEARCH/REPLACE blocks or are one fenced block.

use alloc::vec::Vec;
use core::ops::Range;

use super::scan::lines;

/// The runs that conflict markers begin with, in their order.
pub(super) const RUNS: [&[u8]; 3] = [b"<<<<<<<", b"=======", b">>>>>>>"];

/// Whether a line is the marker of this run: seven marks at column 0, then nothing, or a blank and a name.
fn is_marker(line: &[u8], run: &[u8]) -> bool {
    match line.strip_prefix(run) {
        Some([]) => true,
        Some([b' ', rest @ ..]) => run != RUNS[1] || rest.trim_ascii().is_empty(),
        _ => false,
    }
}

/// Where all three markers occur in their order, top to bottom; each from its first marker to its last one.
pub(super) fn conflicts(text: &[u8]) -> Vec<Range<usize>> {
    let mut found = Vec::new();
    if memchr::memmem::find(text, RUNS[0]).is_none() {
        return found;
    }
    let (mut start, mut is_divided) = (None, false);
    for (offset, line) in lines(text) {
        if is_marker(line, RUNS[0]) {
            (start, is_divided) = (Some(offset), false);
        } else if is_marker(line, RUNS[1]) {
            is_divided = start.is_some();
        } else if is_divided && is_marker(line, RUNS[2]) {
            found.extend(start.take().map(|start| start..offset + line.len()));
            is_divided = false;
        }
    }
    found
}

/// The offset of the first block, if a text is nothing but blocks, the names of files above them and fences around them.
pub(super) fn is_blocks(text: &[u8]) -> Option<usize> {
    let mut first = None;
    let mut place = Place::Outside;
    for (offset, line) in lines(text) {
        let part = Part::of(line.trim_ascii_end());
        place = match (place, part) {
            (Place::Outside, Some(Part::Search)) => {
                first = first.or(Some(offset));
                Place::Search
            }
            (Place::Search, Some(Part::Divider)) => Place::Replace,
            (Place::Replace, Some(Part::Replace)) => Place::Outside,
            (Place::Outside, _) if !may_stand_outside(line.trim_ascii()) => return None,
            (place, _) => place,
        };
    }
    first.filter(|_| place == Place::Outside)
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Place {
    Outside,
    Search,
    Replace,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Search,
    Divider,
    Replace,
}

impl Part {
    fn of(line: &[u8]) -> Option<Self> {
        let mark = *line.first()?;
        let count = line.iter().take_while(|byte| **byte == mark).count();
        if !(5..=9).contains(&count) {
            return None;
        }
        match (mark, line.get(count..)?) {
            (b'<' | b'-', b" SEARCH" | b" SEARCH>") => Some(Self::Search),
            (b'=', b"") => Some(Self::Divider),
            (b'>' | b'+', b" REPLACE" | b" REPLACE>") => Some(Self::Replace),
            _ => None,
        }
    }
}

/// Whether a line is blank, a fence, or may be the name of a file: one word, perhaps in bold or as code.
fn may_stand_outside(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"```") || line.starts_with(b"~~~") || !line.contains(&b' ')
}

/// The offset of the first line, if it and the last line are one pair of fences; blank lines around them do not count.
///
/// A fence inside that has an info string opens a block of its own, which the next bare fence closes.
pub(super) fn first_fence_of_pair(text: &[u8]) -> Option<usize> {
    let mut lines = lines(text).filter(|(_, line)| !line.trim_ascii().is_empty());
    let (offset, first) = lines.next()?;
    let outer = Fence::of(first)?;
    let mut depth = 1_usize;
    for (_, line) in lines {
        if depth == 0 {
            return None;
        }
        match Fence::of(line).filter(|fence| fence.mark == outer.mark && fence.length >= outer.length) {
            Some(fence) if fence.is_bare => depth -= 1,
            Some(_) => depth += 1,
            None => {}
        }
    }
    (depth == 0).then_some(offset)
}

/// A line that opens or closes a block.
struct Fence {
    mark: u8,
    length: usize,
    /// Whether nothing follows the marks.
    is_bare: bool,
}

impl Fence {
    fn of(line: &[u8]) -> Option<Self> {
        let mark = *line.first().filter(|byte| matches!(byte, b'`' | b'~'))?;
        let length = line.iter().take_while(|byte| **byte == mark).count();
        let info = line.get(length..)?.trim_ascii();
        let is_fence = length >= 3 && !(mark == b'`' && info.contains(&b'`'));
        is_fence.then_some(Self { mark, length, is_bare: info.is_empty() })
    }
}
