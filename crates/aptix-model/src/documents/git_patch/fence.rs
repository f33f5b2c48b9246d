//! A Markdown fence around a diff, as far as it shows where the diff ends.

/// A line of backticks or tildes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Fence {
    mark: u8,
    length: usize,
    /// Whether nothing follows, so that it can close another one.
    is_bare: bool,
}

impl Fence {
    /// Reads a line that is a fence, indented by at most three blanks.
    pub(super) fn read(line: &[u8]) -> Option<Self> {
        let line = line.trim_ascii_end();
        let text = line.trim_ascii_start();
        let mark = *text.first().filter(|mark| matches!(mark, b'`' | b'~'))?;
        let length = text.iter().take_while(|byte| **byte == mark).count();
        let (_, rest) = text.split_at(length);
        let is_fence = length >= 3 && line.len() - text.len() <= 3 && !(mark == b'`' && rest.contains(&b'`'));
        is_fence.then(|| Self { mark, length, is_bare: rest.trim_ascii().is_empty() })
    }

    /// Whether another fence closes this one.
    pub(super) const fn is_closed_by(&self, next: &Self) -> bool {
        self.mark == next.mark && self.length <= next.length && next.is_bare
    }
}
