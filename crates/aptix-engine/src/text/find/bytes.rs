//! Searches for a text byte by byte. Preparing a linear-time search for a long text takes as long as searching some
//! kilobytes: in fewer, its head is searched for instead, and the rest compared. Where that head is found too often in
//! vain, all of the text is searched for.

use memchr::memmem::Finder;

use crate::text::edit::slice;

/// Bytes of a text that are its head.
const HEAD: usize = 48;
/// How many times as long as the text something is where its search is prepared.
const LONG: usize = 8;
/// How often the head may be found where the rest does not follow.
const MISSES: usize = 32;

/// A text that is searched for.
pub(crate) struct Search<'n> {
    text: &'n [u8],
    head: Finder<'n>,
    misses: usize,
    whole: Option<Finder<'n>>,
}

impl<'n> Search<'n> {
    /// Prepares to search in so many bytes.
    pub(crate) fn new(text: &'n [u8], length: usize) -> Self {
        let misses = if length / LONG < text.len() { 0 } else { MISSES };
        Self { text, head: Finder::new(slice(text, 0..HEAD)), misses, whole: None }
    }

    /// Where the text occurs first.
    pub(crate) fn find(&mut self, bytes: &[u8]) -> Option<usize> {
        let mut from = 0;
        while self.misses < MISSES {
            let at = from + self.head.find(slice(bytes, from..bytes.len()))?;
            if slice(bytes, at..bytes.len()).starts_with(self.text) {
                return Some(at);
            }
            self.misses += 1;
            from = at + 1;
        }
        let text = self.text;
        let whole = self.whole.get_or_insert_with(|| Finder::new(text));
        whole.find(slice(bytes, from..bytes.len())).map(|at| from + at)
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use memchr::memmem;

    use super::*;

    /// Finds what the library finds, also where the head is everywhere and the text hardly anywhere.
    #[test]
    fn every_place_is_found() {
        let mut file = Vec::new();
        for number in 0..200_u32 {
            file.extend_from_slice(&[b'-'; 60]);
            file.extend_from_slice(&number.to_le_bytes());
        }
        let last = slice(&file, file.len() - 64..file.len());
        let middle = slice(&file, 6400..6500);
        for text in [last, middle, b"-", b"x", &[b'-'; 61], &file] {
            for length in [0, file.len()] {
                let mut search = Search::new(text, length);
                let (mut found, mut from) = (Vec::new(), 0);
                while let Some(at) = search.find(slice(&file, from..file.len())) {
                    found.push(from + at);
                    from += at + 1;
                }
                let overlapping = (0..file.len()).filter(|at| slice(&file, *at..file.len()).starts_with(text));
                assert_eq!(found, overlapping.collect::<Vec<_>>());
                assert_eq!(found.first().copied(), memmem::find(&file, text));
            }
        }
    }
}
