//! The logical lines of a byte file: byte order mark, `\n` and `\r\n`, a last line without terminator.
//!
//! One pass over the bytes looks for NUL and counts line feeds block by block; a line is then found in its block.

use alloc::vec::Vec;

use memchr::{memchr, memchr_iter, memmem, memrchr};

use crate::text::edit::slice;

/// The UTF-8 byte order mark; never part of a line.
pub(crate) const BOM: &[u8] = b"\xef\xbb\xbf";
/// The byte order mark of UTF-32 that begins with NUL.
pub(crate) const UTF_32_BE: &[u8] = b"\0\0\xfe\xff";
/// Bytes whose line feeds are counted together.
const BLOCK: usize = 512;
/// Bytes that are looked at side by side.
const LANES: usize = 64;

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
    #[error(
        "the file begins with a UTF-16 or UTF-32 byte order mark, and line edits work on UTF-8 and other supersets of ASCII"
    )]
    Encoding,
    #[error("the file has a NUL byte at offset {0} and is taken for binary")]
    Nul(usize),
}

/// A file's bytes, known to have lines.
#[derive(Clone, Debug)]
pub(crate) struct Text<'a> {
    bytes: &'a [u8],
    start: usize,
    /// How many line feeds there are up to the end of each block.
    feeds: Vec<u32>,
    /// What lines end with if none does.
    usual: Terminator,
}

impl<'a> Text<'a> {
    /// Looks at every byte once.
    pub(crate) fn new(bytes: &'a [u8]) -> Result<Self, NotText> {
        if bytes.starts_with(b"\xff\xfe") || bytes.starts_with(b"\xfe\xff") {
            return Err(NotText::Encoding);
        }
        let (blocks, rest) = bytes.as_chunks::<BLOCK>();
        // Padded with bytes that are not looked for.
        let mut last = [b' '; BLOCK];
        if let Some(head) = last.get_mut(..rest.len()) {
            head.copy_from_slice(rest);
        }
        let mut lowest = [u8::MAX; LANES];
        let mut total = 0;
        let mut feeds = Vec::with_capacity(blocks.len() + 1);
        feeds.extend(blocks.iter().map(|block| {
            total += survey(block, &mut lowest);
            total
        }));
        feeds.push(total + survey(&last, &mut lowest));
        if lowest.contains(&0) {
            return Err(NotText::Nul(memchr(0, bytes).unwrap_or_default()));
        }
        let start = if bytes.starts_with(BOM) { BOM.len() } else { 0 };
        Ok(Self { bytes, start, feeds, usual: Terminator::Lf })
    }

    /// The same text, known to be derived from another: should no line have a terminator, they end as lines do there.
    pub(crate) fn come_from(self, base: &Text<'_>) -> Self {
        Self { usual: base.first_terminator(), ..self }
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

    /// How many lines there are.
    pub(crate) fn lines(&self) -> usize {
        self.feeds.last().map_or(0, |feeds| *feeds as usize) + usize::from(self.is_unterminated())
    }

    /// How many lines end at or above an offset.
    pub(crate) fn lines_above(&self, offset: usize) -> usize {
        let block = offset / BLOCK;
        let feeds = block.checked_sub(1).and_then(|block| self.feeds.get(block)).map_or(0, |feeds| *feeds as usize);
        let rest = slice(self.bytes, block * BLOCK..offset);
        feeds + memchr_iter(b'\n', rest).count()
    }

    /// Where the first line feed at or below an offset is; the cost does not depend on how far that is.
    pub(crate) fn next_feed(&self, from: usize) -> Option<usize> {
        let feed_in = |from: usize, block: usize| {
            let end = (block + 1) * BLOCK;
            memchr(b'\n', self.bytes.get(from..end.min(self.bytes.len()))?).map(|feed| from + feed)
        };
        let block = from / BLOCK;
        feed_in(from, block).or_else(|| {
            let passed = *self.feeds.get(block)?;
            let next = self.feeds.partition_point(|feeds| *feeds <= passed);
            feed_in(next * BLOCK, next)
        })
    }

    /// Where the last line feed above an offset is; the cost does not depend on how far that is.
    pub(crate) fn previous_feed(&self, to: usize) -> Option<usize> {
        let feed_in = |block: usize, to: usize| {
            let start = block * BLOCK;
            memrchr(b'\n', self.bytes.get(start..to.min(self.bytes.len()))?).map(|feed| start + feed)
        };
        let block = to / BLOCK;
        feed_in(block, to).or_else(|| {
            let above = *self.feeds.get(block.checked_sub(1)?)?;
            let holder = self.feeds.partition_point(|feeds| *feeds < above);
            feed_in(holder, (holder + 1) * BLOCK).filter(|_| above > 0)
        })
    }

    /// Whether some lines end with `\r\n` and others do not. Looks at every byte.
    pub(crate) fn is_mixed(&self) -> bool {
        let with_return = memmem::find_iter(self.bytes, b"\r\n").count();
        with_return > 0 && with_return < self.feeds.last().map_or(0, |feeds| *feeds as usize)
    }

    /// A cursor above line 1.
    pub(crate) fn cursor(&self) -> Cursor<'_> {
        self.cursor_at(self.start, 0)
    }

    /// A cursor at an offset where a line starts, with so many lines above.
    pub(crate) fn cursor_at(&self, offset: usize, above: usize) -> Cursor<'_> {
        Cursor { bytes: self.bytes, feeds: &self.feeds, at: offset, above }
    }

    /// The terminator of line 1, the usual one if it has none.
    pub(crate) fn first_terminator(&self) -> Terminator {
        self.terminator_at(self.next_feed(0))
    }

    /// What an unterminated last line would end with: the terminator of the line above it, else the usual one.
    pub(crate) fn last_terminator(&self) -> Terminator {
        self.terminator_at(self.previous_feed(self.bytes.len()))
    }

    fn terminator_at(&self, feed: Option<usize>) -> Terminator {
        feed.map_or(self.usual, |feed| Terminator::at_end_of(slice(self.bytes, self.start..feed + 1)))
    }
}

/// How many line feeds a block has; `lowest` falls to its lowest bytes.
fn survey(block: &[u8; BLOCK], lowest: &mut [u8; LANES]) -> u32 {
    // Lanes that do not depend on each other, and a length that is known, so that the compiler takes many bytes at a
    // time. A lane meets few enough bytes of a block to count them in one.
    let (chunks, _) = block.as_chunks::<LANES>();
    let mut feeds = [0_u8; LANES];
    for chunk in chunks {
        for ((feeds, low), byte) in feeds.iter_mut().zip(&mut *lowest).zip(chunk) {
            *feeds += u8::from(*byte == b'\n');
            *low = (*low).min(*byte);
        }
    }
    sum(&feeds)
}

/// The sum of all lanes: eight at a time, in halves that have room for it.
fn sum(lanes: &[u8; LANES]) -> u32 {
    const EVEN: u64 = 0x00ff_00ff_00ff_00ff;
    let (words, _) = lanes.as_chunks::<8>();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let quarters: u64 = words.map(|word| (word & EVEN) + (word >> 8 & EVEN)).sum();
    (quarters.wrapping_mul(0x0001_0001_0001_0001) >> 48) as u32
}

/// A place between two lines, moving forward only.
#[derive(Clone, Debug)]
pub(crate) struct Cursor<'a> {
    bytes: &'a [u8],
    feeds: &'a [u32],
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
        if above <= self.above {
            return Ok(());
        }
        // The first block with enough line feeds has the one that is looked for.
        let mut block = self.at / BLOCK;
        while self.feeds.get(block).is_some_and(|feeds| (*feeds as usize) < above) {
            block += 1;
        }
        if block == self.feeds.len() {
            return self.seek_last(above);
        }
        let (mut from, mut missing) = (self.at, above - self.above);
        if let Some(feeds) = block.checked_sub(1).and_then(|block| self.feeds.get(block))
            && block * BLOCK > self.at
        {
            (from, missing) = (block * BLOCK, above - *feeds as usize);
        }
        // In it, whole chunks are passed by; only the last few line feeds are sought one by one.
        let (chunks, _) = slice(self.bytes, from..self.bytes.len()).as_chunks::<LANES>();
        for chunk in chunks {
            let feeds = chunk.iter().map(|byte| u8::from(*byte == b'\n')).sum::<u8>() as usize;
            if feeds >= missing {
                break;
            }
            (from, missing) = (from + LANES, missing - feeds);
        }
        let rest = slice(self.bytes, from..self.bytes.len());
        let feed = memchr_iter(b'\n', rest).nth(missing - 1);
        self.at = feed.map_or(self.bytes.len(), |feed| from + feed + 1);
        self.above = above;
        Ok(())
    }

    /// Moves to the end, where only a line without terminator can be missing.
    fn seek_last(&mut self, above: usize) -> Result<(), usize> {
        let terminated = self.feeds.last().map_or(0, |feeds| *feeds as usize);
        if self.at < self.bytes.len() {
            self.at = self.bytes.len();
            self.above = terminated + usize::from(!self.bytes.ends_with(b"\n"));
        }
        if self.above < above { Err(self.above) } else { Ok(()) }
    }

    /// Steps over the next line if its text is `expected`, and returns what ends it. `expected` has no line feed.
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
    /// The text of a line, without byte order mark and terminator.
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let rest = self.bytes.get(self.at..).filter(|rest| !rest.is_empty())?;
        self.above += 1;
        let Some(end) = memchr(b'\n', rest) else {
            self.at = self.bytes.len();
            return Some(rest);
        };
        self.at += end + 1;
        let line = rest.get(..=end)?;
        line.strip_suffix(Terminator::at_end_of(line).as_bytes())
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec;

    use super::*;

    /// Line feeds beside the ends of blocks, and far from each other, are found from every offset.
    #[test]
    fn feeds_are_found_at_any_distance() {
        for feeds in [vec![], vec![0], vec![BLOCK - 1, BLOCK], vec![3, 5 * BLOCK], vec![2 * BLOCK, 7 * BLOCK + 1]] {
            let mut bytes = vec![b'x'; 7 * BLOCK + 2];
            feeds.iter().for_each(|feed: &usize| bytes[*feed] = b'\n');
            let text = Text::new(&bytes).unwrap();
            for at in 0..=bytes.len() {
                assert_eq!(text.next_feed(at), memchr(b'\n', &bytes[at..]).map(|feed| at + feed), "{feeds:?} {at}");
                assert_eq!(text.previous_feed(at), memrchr(b'\n', &bytes[..at]), "{feeds:?} {at}");
            }
        }
    }
}
