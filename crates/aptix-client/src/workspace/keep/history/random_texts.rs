//! Texts and edits that look random, the same ones in each run.

use std::ops::Range;

use aptix_engine::text::edit::TextEdit;

pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub(crate) fn below(&mut self, limit: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(self.0 >> 33).unwrap() % limit.max(1)
    }

    /// Text, with any line ends and none at its end, or bytes that are no text.
    pub(crate) fn bytes(&mut self, most: usize) -> Vec<u8> {
        let pieces: [&[u8]; 7] = [b"a", b"\n", b"\r\n", "\u{e9}".as_bytes(), b"\xff\xfe", b"\0", b"line\n"];
        (0..self.below(most)).flat_map(|_| pieces[self.below(pieces.len())]).copied().collect()
    }

    /// At least half as many lines as there may be: most of them like no other, with any line ends, at the end perhaps none.
    pub(crate) fn lines(&mut self, most: usize) -> Vec<u8> {
        let count = most / 2 + self.below(most / 2);
        let mut text: Vec<u8> = (0..count).flat_map(|_| self.line()).collect();
        text.truncate(text.len() - self.below(2));
        text
    }

    fn line(&mut self) -> Vec<u8> {
        let mut line = match self.below(4) {
            0 => [&b""[..], b"}", b"\xff", b"\0\0"][self.below(4)].to_vec(),
            _ => format!("line {} \u{e9}", self.below(1 << 30)).into_bytes(),
        };
        line.extend_from_slice([&b"\n"[..], b"\r\n"][usize::from(self.below(9) == 0)]);
        line
    }

    /// A few replacements anywhere in a base of so many bytes.
    pub(crate) fn edit_of(&mut self, base: usize) -> TextEdit {
        let mut ends: Vec<_> = (0..2 * self.below(6)).map(|_| self.below(base + 1)).collect();
        ends.sort_unstable();
        TextEdit::new(ends.chunks(2).map(|pair| (pair[0]..pair[1], self.bytes(5))).collect::<Vec<_>>()).unwrap()
    }

    /// A few small replacements of a text: some are of whole lines, or of nothing, or with lines that were there.
    pub(crate) fn edit(&mut self, text: &[u8]) -> TextEdit {
        let mut starts: Vec<_> = (0..1 + self.below(4)).map(|_| self.below(text.len() + 1)).collect();
        starts.sort_unstable();
        let line = |at: usize| text[..at].iter().rposition(|byte| *byte == b'\n').map_or(0, |feed| feed + 1);
        let mut replacements: Vec<(Range<usize>, Vec<u8>)> = Vec::new();
        for start in starts {
            let end = (start + self.below(60) * self.below(2)).min(text.len());
            let range = if self.below(2) == 0 { line(start)..line(end) } else { start..end };
            let new = match self.below(5) {
                0 => Vec::new(),
                1 => text[line(start)..range.end.max(line(start))].to_vec(),
                2 => self.bytes(5),
                _ => (0..=self.below(2)).flat_map(|_| self.line()).collect(),
            };
            if replacements.last().is_none_or(|(last, _)| last.end < range.start) {
                replacements.push((range, new));
            }
        }
        TextEdit::new(replacements).unwrap()
    }
}
