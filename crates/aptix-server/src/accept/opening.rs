//! The first bytes of a connection: the preface of HTTP/2, or the whole head of a request of HTTP/1.1.

use std::io;

/// What a connection of HTTP/2 begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";

/// Bytes of a head of HTTP/1.1.
const HEAD_BYTES: usize = 16 << 10;

/// What came of the first bytes so far.
#[derive(Default)]
pub(super) struct Opening(Vec<u8>);

impl Opening {
    /// Takes bytes that came. Answers whether the preface or the head is complete with them.
    ///
    /// # Errors
    /// When a head is longer than any may be.
    pub(super) fn take(&mut self, bytes: &[u8]) -> io::Result<bool> {
        // The end of a head may lie across what came before.
        let unseen = self.0.len().saturating_sub(2);
        let room = HEAD_BYTES.saturating_sub(self.0.len());
        self.0.extend(bytes.iter().take(room));
        if PREFACE.starts_with(&self.0) {
            return Ok(self.0.len() == PREFACE.len());
        }
        if self.0.starts_with(PREFACE) || self.0.get(unseen..).is_some_and(ends_head) {
            return Ok(true);
        }
        if bytes.len() > room { Err(io::ErrorKind::InvalidData.into()) } else { Ok(false) }
    }
}

/// Whether an empty line is in there. Its carriage return may be missing.
fn ends_head(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(3).any(|end| end == b"\n\r\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// After how many pieces the opening is complete.
    fn complete<'a>(pieces: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Option<usize>> {
        let mut opening = Opening::default();
        for (index, piece) in pieces.into_iter().enumerate() {
            if opening.take(piece)? {
                return Ok(Some(index + 1));
            }
        }
        Ok(None)
    }

    #[test]
    fn the_end_is_found_however_the_bytes_are_cut() {
        for whole in [
            PREFACE,
            b"GET / HTTP/1.1\r\n\r\n",
            b"POST /a HTTP/1.1\r\nhost: a\r\n\r\n",
            b"POST /a HTTP/1.1\nhost: a\n\n",
        ] {
            for size in 1..=whole.len() {
                let pieces = whole.chunks(size);
                assert_eq!(complete(pieces.clone()).unwrap(), Some(pieces.len()), "pieces of {size}");
                assert_eq!(complete(pieces.take(whole.len().div_ceil(size) - 1)).unwrap(), None, "pieces of {size}");
            }
        }
        let more = [PREFACE, b"more"].concat();
        assert_eq!(complete([more.as_slice()]).unwrap(), Some(1));
    }

    #[test]
    fn a_head_without_an_end_is_refused() {
        let piece = [b'x'; 1 << 10];
        assert_eq!(complete([piece.as_slice(); 16]).unwrap(), None);
        assert_eq!(complete([piece.as_slice(); 17]).unwrap_err().kind(), io::ErrorKind::InvalidData);
    }
}
