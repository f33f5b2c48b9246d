//! The lines of a diff as they are read, and what is at the next one.

/// What bounds the text of a diff.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::documents) enum Extent {
    /// Nothing: it is a document, which may have been cut off anywhere.
    Document,
    /// A fence that is closed.
    Fence,
}

/// The lines of a diff that are still to be read.
#[derive(Clone, Copy)]
pub(super) struct Lines<'a> {
    pub(super) rest: &'a [u8],
    /// The number of the next line, from 1.
    pub(super) number: usize,
    /// What bounds them.
    pub(super) extent: Extent,
    /// Whether some of the lines above are no lines of a diff.
    pub(super) has_text: bool,
    /// The fence around them, if the text above opens one.
    pub(super) fence: Option<Fence>,
    /// Whether the header of a hunk above ends with a carriage return.
    pub(super) has_returns: bool,
    /// Whether the diff ends in an added line without a line feed, which is the last one of a hunk by its counts.
    pub(super) is_cut: bool,
}

impl<'a> Lines<'a> {
    pub(super) const fn of(bytes: &'a [u8], extent: Extent) -> Self {
        Self { rest: bytes, number: 1, extent, has_text: false, fence: None, has_returns: false, is_cut: false }
    }

    /// The next line with its terminator.
    pub(super) fn peek(&self) -> Option<&'a [u8]> {
        let end = self.rest.iter().position(|byte| *byte == b'\n').map_or(self.rest.len(), |feed| feed + 1);
        self.rest.get(..end).filter(|line| !line.is_empty())
    }

    pub(super) fn skip(&mut self) {
        let end = self.peek().map_or(0, <[u8]>::len);
        self.rest = self.rest.split_at(end).1;
        self.number += 1;
    }

    /// The next line that is not blank.
    pub(super) fn peek_past_blank(mut self) -> Self {
        while self.peek().is_some_and(|line| line.trim_ascii().is_empty()) {
            self.skip();
        }
        self
    }

    /// Whether the next line closes the fence around the diff.
    pub(super) fn is_at_closing_fence(&self) -> bool {
        self.fence.zip(self.peek().and_then(Fence::read)).is_some_and(|(fence, next)| fence.is_closed_by(&next))
    }

    /// Whether the next lines name the two sides of a file.
    pub(super) fn is_at_sides(mut self) -> bool {
        let is_old = self.peek().is_some_and(|line| line.starts_with(b"--- "));
        self.skip();
        is_old && self.peek().is_some_and(|line| line.starts_with(b"+++ "))
    }

    /// Whether a file of the diff begins at the next line.
    pub(super) fn is_at_file(self) -> bool {
        self.is_at_sides() || self.peek().is_some_and(|line| line.starts_with(b"diff --git "))
    }

    /// Whether the next lines are the signature of a mail: dashes, and below them the version of a program or the end.
    pub(super) fn is_at_signature(mut self) -> bool {
        let Some(dashes) = self.peek().map(trim_end).filter(|line| matches!(*line, b"-- " | b"--")) else {
            return false;
        };
        self.skip();
        match self.peek_past_blank().peek() {
            Some(line) => line.first().is_some_and(u8::is_ascii_digit) && line.contains(&b'.'),
            None => dashes == b"-- ",
        }
    }
}

/// A line of a header without its terminator.
pub(super) fn trim_end(line: &[u8]) -> &[u8] {
    let line = line.strip_suffix(b"\n").unwrap_or(line);
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// A line of backticks or tildes: a Markdown fence around a diff, as far as it shows where the diff ends.
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
