//! A text that is one fenced block, as answers show files.

use super::scan::lines;

/// The offset of the first line, if it and the last line are one pair of fences; blank lines around them do not count.
///
/// A fence inside that has an info string opens a block of its own, which the next bare fence closes.
pub(super) fn first_of_pair(text: &[u8]) -> Option<usize> {
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
