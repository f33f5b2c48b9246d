//! Takes a part of a file out of its bytes while they pass.

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::live::Portion;

use super::facts::line_feeds;

/// The part that is being taken.
#[derive(Debug)]
pub struct Taking {
    portion: Portion,
    /// Most bytes that are taken.
    most: usize,
    /// How many bytes, and how many line feeds, have passed.
    passed: (u64, u64),
    /// Where the part begins: the byte, from 0, and the line, from 1.
    start: Option<(u64, u64)>,
    taken: Vec<u8>,
    is_too_large: bool,
}

/// The part that was taken.
#[derive(PartialEq, Eq, Debug)]
pub struct Taken {
    /// Its bytes; absent if they were too many.
    pub content: Option<Vec<u8>>,
    /// Where it begins, in bytes; at the end of the file if nothing of it is there.
    pub offset: u64,
    /// The number of the line in which it begins, from 1.
    pub first_line: u64,
}

impl Taking {
    /// Begins to take a part of at most so many bytes.
    #[must_use]
    pub const fn new(portion: Portion, most: usize) -> Self {
        Self { portion, most, passed: (0, 0), start: None, taken: Vec::new(), is_too_large: false }
    }

    /// Passes the next bytes.
    pub fn add(&mut self, piece: &[u8]) {
        let wanted = self.wanted(piece);
        let (bytes, feeds) = self.passed;
        self.passed = (bytes + piece.len() as u64, feeds + line_feeds(piece));
        let part = piece.get(wanted.clone()).unwrap_or_default();
        if part.is_empty() {
            return;
        }
        let before = piece.get(..wanted.start).unwrap_or_default();
        self.start.get_or_insert((bytes + before.len() as u64, feeds + line_feeds(before) + 1));
        if self.is_too_large || self.taken.len() + part.len() > self.most {
            (self.is_too_large, self.taken) = (true, Vec::new());
        } else {
            self.taken.extend_from_slice(part);
        }
    }

    /// Which of the next bytes belong to the part.
    fn wanted(&self, piece: &[u8]) -> Range<usize> {
        let (bytes, feeds) = self.passed;
        match self.portion {
            Portion::Whole => 0..piece.len(),
            Portion::Lines(first, last) => {
                let start = behind(piece, (first.get() as u64 - 1).saturating_sub(feeds));
                let end = last.map_or(piece.len(), |last| behind(piece, (last.get() as u64).saturating_sub(feeds)));
                start..end
            }
            Portion::Bytes { offset, length } => {
                let in_piece =
                    |at: u64| usize::try_from(at.saturating_sub(bytes)).unwrap_or(usize::MAX).min(piece.len());
                in_piece(offset)..in_piece(offset.saturating_add(length))
            }
        }
    }

    /// The part, once all bytes have passed.
    #[must_use]
    pub fn end(self) -> Taken {
        let (bytes, feeds) = self.passed;
        let (offset, first_line) = self.start.unwrap_or((bytes, feeds + 1));
        Taken { content: (!self.is_too_large).then_some(self.taken), offset, first_line }
    }
}

/// The place behind so many line feeds; the end where there are fewer.
fn behind(piece: &[u8], line_feeds: u64) -> usize {
    let Some(last) = usize::try_from(line_feeds).unwrap_or(usize::MAX).checked_sub(1) else { return 0 };
    let mut feeds = piece.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    feeds.nth(last).map_or(piece.len(), |(at, _)| at + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use aptix_model::lines::LineNumber;

    /// However the bytes are cut into pieces, the part is the same.
    #[test]
    fn a_part_is_taken_whatever_the_pieces() {
        let line = |number| LineNumber::new(number).unwrap();
        let lines = |first, last: Option<i64>| Portion::Lines(line(first), last.map(line));
        let bytes = |offset, length| Portion::Bytes { offset, length };
        let text = b"one\ntwo\r\n\nfour";
        let cases: [(Portion, Option<&[u8]>, u64, u64); 14] = [
            (Portion::Whole, Some(text), 0, 1),
            (lines(1, Some(1)), Some(b"one\n"), 0, 1),
            (lines(2, Some(3)), Some(b"two\r\n\n"), 4, 2),
            (lines(3, Some(3)), Some(b"\n"), 9, 3),
            (lines(4, None), Some(b"four"), 10, 4),
            (lines(2, Some(900)), Some(b"two\r\n\nfour"), 4, 2),
            (lines(5, None), Some(b""), 14, 4),
            (lines(900, Some(901)), Some(b""), 14, 4),
            (bytes(0, 3), Some(b"one"), 0, 1),
            (bytes(3, 2), Some(b"\nt"), 3, 1),
            (bytes(5, 5), Some(b"wo\r\n\n"), 5, 2),
            (bytes(12, 900), Some(b"ur"), 12, 4),
            (bytes(14, 1), Some(b""), 14, 4),
            (bytes(u64::MAX, u64::MAX), Some(b""), 14, 4),
        ];
        for (portion, expected, offset, first_line) in cases {
            for size in 1..=text.len() {
                let mut taking = Taking::new(portion, text.len());
                text.chunks(size).for_each(|piece| taking.add(piece));
                let expected = Taken { content: expected.map(<[u8]>::to_vec), offset, first_line };
                assert_eq!(taking.end(), expected, "{portion:?} in pieces of {size}");
            }
        }
        let mut taking = Taking::new(Portion::Whole, 3);
        text.chunks(2).for_each(|piece| taking.add(piece));
        assert_eq!(taking.end(), Taken { content: None, offset: 0, first_line: 1 });
    }
}
