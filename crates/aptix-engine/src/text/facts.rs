//! What a file's bytes are, found out piece by piece: digest, lines, terminators, encoding.

use alloc::vec::Vec;

use aptix_model::digest::Sha256Digest;
use aptix_model::live::{Encoding, Terminators, TextFacts};
use sha2::{Digest, Sha256};

/// The byte order mark of UTF-8.
const MARK: &[u8] = b"\xef\xbb\xbf";

/// Finds out what bytes are while they pass.
#[derive(Debug, Default)]
pub struct Facts {
    hasher: Sha256,
    bytes: u64,
    line_feeds: u64,
    with_return: u64,
    /// The first bytes, as far as a byte order mark may go.
    head: Vec<u8>,
    last: Option<u8>,
    has_nul: bool,
    /// The beginning of a character that the last piece ended in.
    cut: Vec<u8>,
    is_not_utf8: bool,
}

impl Facts {
    /// What these bytes are.
    #[must_use]
    pub fn of(bytes: &[u8]) -> TextFacts {
        let mut facts = Self::default();
        facts.add(bytes);
        facts.end()
    }

    /// Takes the next bytes.
    pub fn add(&mut self, piece: &[u8]) {
        let Some((last, _)) = piece.split_last() else { return };
        self.hasher.update(piece);
        self.bytes += piece.len() as u64;
        let missing = MARK.len().saturating_sub(self.head.len());
        self.head.extend(piece.iter().take(missing));
        self.has_nul |= piece.contains(&0);
        self.line_feeds += line_feeds(piece);
        let begins_after_return = self.last == Some(b'\r') && piece.starts_with(b"\n");
        let within = piece.windows(2).filter(|pair| *pair == b"\r\n").count() as u64;
        self.with_return += within + u64::from(begins_after_return);
        self.last = Some(*last);
        self.check_utf8(piece);
    }

    fn check_utf8(&mut self, piece: &[u8]) {
        if self.is_not_utf8 {
            return;
        }
        let joined;
        let text = if self.cut.is_empty() {
            piece
        } else {
            joined = [&core::mem::take(&mut self.cut), piece].concat();
            &joined
        };
        if let Err(error) = core::str::from_utf8(text) {
            match error.error_len() {
                None => self.cut = text.get(error.valid_up_to()..).unwrap_or_default().to_vec(),
                Some(_) => self.is_not_utf8 = true,
            }
        }
    }

    /// How many bytes there were so far.
    #[must_use]
    pub const fn bytes(&self) -> u64 {
        self.bytes
    }

    /// What all the bytes are.
    #[must_use]
    pub fn end(self) -> TextFacts {
        let is_marked = self.head == MARK;
        let is_utf16 = self.head.starts_with(b"\xff\xfe") || self.head.starts_with(b"\xfe\xff");
        let body = self.bytes - if is_marked { MARK.len() as u64 } else { 0 };
        let has_open_line = body > 0 && self.last != Some(b'\n');
        TextFacts {
            sha256: Sha256Digest::from_bytes(self.hasher.finalize().into()),
            line_count: self.line_feeds + u64::from(has_open_line),
            terminators: match (self.with_return, self.line_feeds) {
                (_, 0) => Terminators::None,
                (0, _) => Terminators::Lf,
                (with, all) if with == all => Terminators::Crlf,
                _ => Terminators::Mixed,
            },
            encoding: if is_utf16 {
                Encoding::Utf16
            } else if self.has_nul {
                Encoding::Binary
            } else if self.is_not_utf8 || !self.cut.is_empty() {
                Encoding::Other
            } else if is_marked {
                Encoding::Utf8Marked
            } else {
                Encoding::Utf8
            },
        }
    }
}

/// How many line feeds there are in bytes.
pub(crate) fn line_feeds(bytes: &[u8]) -> u64 {
    bytes.iter().filter(|byte| **byte == b'\n').count() as u64
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::digest::sha256;

    /// However the bytes are cut into pieces, they are the same.
    #[test]
    fn bytes_are_described_whatever_the_pieces() {
        use Encoding::{Binary, Other, Utf8, Utf8Marked, Utf16};
        use Terminators::{Crlf, Lf, Mixed, None};
        let cases: [(&[u8], u64, Terminators, Encoding); 16] = [
            (b"", 0, None, Utf8),
            (b"a", 1, None, Utf8),
            (b"a\n", 1, Lf, Utf8),
            (b"\n\n", 2, Lf, Utf8),
            (b"a\r\nb\r\n", 2, Crlf, Utf8),
            (b"a\r\nb\n", 2, Mixed, Utf8),
            (b"a\rb", 1, None, Utf8),
            (b"\r\n\r", 2, Crlf, Utf8),
            (b"\xef\xbb\xbf", 0, None, Utf8Marked),
            (b"\xef\xbb\xbfa\n", 1, Lf, Utf8Marked),
            ("\u{e9}\u{65e5}\u{1f980}\n".as_bytes(), 1, Lf, Utf8),
            (b"\xe9\n", 1, Lf, Other),
            (b"a\xe6\x97", 1, None, Other),
            (b"a\0\n", 1, Lf, Binary),
            (b"\xff\xfea\0", 1, None, Utf16),
            (b"\xef\xbb", 1, None, Other),
        ];
        for (bytes, line_count, terminators, encoding) in cases {
            for size in 1..=bytes.len().max(1) {
                let mut facts = Facts::default();
                bytes.chunks(size).for_each(|piece| facts.add(piece));
                assert_eq!(facts.bytes(), bytes.len() as u64);
                let expected = TextFacts { sha256: sha256(bytes), line_count, terminators, encoding };
                assert_eq!(facts.end(), expected, "{bytes:?} in pieces of {size}");
            }
        }
    }
}
