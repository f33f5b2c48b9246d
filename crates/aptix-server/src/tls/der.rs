//! Reads the elements of DER, as far as certificates need them.

/// The tag of a sequence.
pub(super) const SEQUENCE: u8 = 0x30;

/// Elements one after the other: the tag and the content of each.
#[derive(Clone, Copy, Default)]
pub(super) struct Elements<'b>(pub(super) &'b [u8]);

impl<'b> Elements<'b> {
    /// The elements within the first one, if it has this tag.
    pub(super) fn only(mut self, tag: u8) -> Option<Self> {
        self.next().filter(|(found, _)| *found == tag).map(|(_, content)| Self(content))
    }
}

impl<'b> Iterator for Elements<'b> {
    type Item = (u8, &'b [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let (&[tag, first], rest) = self.0.split_first_chunk()?;
        let (length, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81..=0x83 => {
                let (bytes, rest) = rest.split_at_checked(usize::from(first - 0x80))?;
                (bytes.iter().fold(0, |length, byte| length << 8 | usize::from(*byte)), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(length)?;
        self.0 = rest;
        Some((tag, content))
    }
}
