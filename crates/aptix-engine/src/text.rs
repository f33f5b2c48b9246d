//! The logical lines of a byte file: byte order mark, `\n` and `\r\n`, a last line without terminator.
//!
//! Lines are found by counting line feeds forward, many at once; no index of lines is built.

use memchr::{memchr, memchr_iter, memrchr};

/// The UTF-8 byte order mark; never part of a line.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// Lines that are stepped over one by one: cheaper than counting.
const NEAR: usize = 8;
/// Bytes of a line, guessed low: so many for each line wanted are counted at once.
const SHORT_LINE: usize = 16;
/// Bytes that are counted at once at most.
const MAX_SPAN: usize = 64 << 10;
/// Bytes below which counting is not worth it.
const MIN_SPAN: usize = 512;

/// What ends a line. A carriage return alone is text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Terminator {
    Lf,
    CrLf,
}

impl Terminator {
    pub(crate) const fn as_bytes(self) -> &'static [u8] {
        match self {
            Self::Lf => b"\n",
            Self::CrLf => b"\r\n",
        }
    }

    /// The terminator of the line that `head`, up to and with a line feed, ends with.
    pub(crate) fn at_end_of(head: &[u8]) -> Self {
        if head.ends_with(b"\r\n") { Self::CrLf } else { Self::Lf }
    }
}

/// Why bytes cannot be edited line by line.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum NotText {
    /// A byte order mark of UTF-16 or UTF-32.
    #[error(
        "the file begins with a UTF-16 or UTF-32 byte order mark, and line edits work on UTF-8 and other supersets of ASCII"
    )]
    Encoding,
    /// A NUL byte.
    #[error("the file has a NUL byte at offset {0} and is taken for binary")]
    Nul(usize),
}

/// A file's bytes, known to have lines.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    start: usize,
}

impl<'a> Text<'a> {
    /// Looks at every byte once.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, NotText> {
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err(NotText::Encoding);
        }
        if let Some(offset) = memchr(0, bytes) {
            return Err(NotText::Nul(offset));
        }
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        Ok(Self { bytes, start })
    }

    /// Everything, byte order mark included.
    pub(crate) const fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// Where line 1 starts.
    pub(crate) const fn start(&self) -> usize {
        self.start
    }

    /// Whether the last line has no terminator. A file without lines has none that could lack one.
    pub(crate) fn is_unterminated(&self) -> bool {
        self.bytes.len() > self.start && !self.bytes.ends_with(b"\n")
    }

    /// A cursor above line 1.
    pub(crate) const fn cursor(&self) -> Cursor<'a> {
        self.cursor_at(self.start, 0)
    }

    /// A cursor at an offset where a line starts, with so many lines above.
    pub(crate) const fn cursor_at(&self, offset: usize, above: usize) -> Cursor<'a> {
        Cursor { bytes: self.bytes, start: self.start, at: offset, above }
    }

    /// The terminator of line 1, `\n` if it has none.
    pub(crate) fn first_terminator(&self) -> Terminator {
        let end = memchr(b'\n', self.bytes).map_or(0, |at| at + 1);
        Terminator::at_end_of(self.bytes.get(self.start..end).unwrap_or_default())
    }

    /// What an unterminated last line would end with: the terminator of the line above it, else `\n`.
    pub(crate) fn last_terminator(&self) -> Terminator {
        let end = memrchr(b'\n', self.bytes).map_or(0, |at| at + 1);
        Terminator::at_end_of(self.bytes.get(self.start..end).unwrap_or_default())
    }
}

/// A logical line.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Line<'a> {
    /// Its text, without byte order mark and terminator.
    pub(crate) text: &'a [u8],
    /// What ends it; only the last line may have nothing.
    pub(crate) terminator: Option<Terminator>,
}

/// A place between two lines, moving forward only.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    start: usize,
    at: usize,
    above: usize,
}

impl<'a> Cursor<'a> {
    /// The byte offset.
    pub(crate) const fn at(&self) -> usize {
        self.at
    }

    /// How many lines lie above.
    pub(crate) const fn above(&self) -> usize {
        self.above
    }

    /// Moves to the place below so many lines, or, failing that, to the end.
    ///
    /// # Errors
    /// The number of lines there are, when they are fewer.
    pub(crate) fn seek(&mut self, above: usize) -> Result<(), usize> {
        let mut span = MAX_SPAN;
        while self.above < above {
            let missing = above - self.above;
            let rest = self.bytes.get(self.at..).unwrap_or_default();
            if rest.is_empty() {
                return Err(self.above);
            }
            let is_near = missing <= NEAR;
            let length = if is_near { rest.len() } else { span.min(missing.saturating_mul(SHORT_LINE)) };
            let block = rest.get(..length).unwrap_or(rest);
            if (is_near || span < MIN_SPAN)
                && let Some(feed) = memchr_iter(b'\n', block).nth(missing - 1)
            {
                self.at += feed + 1;
                self.above = above;
                break;
            }
            let feeds = memchr_iter(b'\n', block).count();
            if feeds >= missing {
                // Too far: count in smaller steps, and in the end one by one.
                span = block.len() / 4;
                continue;
            }
            self.at += block.len();
            self.above += feeds;
            if self.at == self.bytes.len() && self.at > self.start && !self.bytes.ends_with(b"\n") {
                self.above += 1;
            }
        }
        Ok(())
    }

    /// Steps over the next line if its text is `expected`, and says what ends it. `expected` has no line feed.
    pub(crate) fn step_over(&mut self, expected: &[u8]) -> Option<Option<Terminator>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        let (terminator, length) = match rest.strip_prefix(expected)? {
            [] => (None, 0),
            [b'\n', ..] if !expected.ends_with(b"\r") => (Some(Terminator::Lf), 1),
            [b'\r', b'\n', ..] => (Some(Terminator::CrLf), 2),
            _ => return None,
        };
        self.at += expected.len() + length;
        self.above += 1;
        Some(terminator)
    }
}

impl<'a> Iterator for Cursor<'a> {
    type Item = Line<'a>;

    fn next(&mut self) -> Option<Line<'a>> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        self.above += 1;
        let Some(end) = memchr(b'\n', rest) else {
            self.at = self.bytes.len();
            return Some(Line { text: rest, terminator: None });
        };
        self.at += end + 1;
        let line = rest.get(..=end)?;
        let terminator = Terminator::at_end_of(line);
        let text = line.strip_suffix(terminator.as_bytes()).unwrap_or(line);
        Some(Line { text, terminator: Some(terminator) })
    }
}
