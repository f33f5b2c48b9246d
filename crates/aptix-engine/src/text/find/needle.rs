//! Old text as it is searched for: bytes that may begin within a line, or whole lines.

use alloc::vec::Vec;

use memchr::memchr_iter;

use crate::text::edit::slice;

/// Text that is searched for.
#[derive(Clone, Debug)]
pub(crate) struct Needle<'n> {
    /// The bytes, of a needle that may begin and end within a line.
    pub(super) bytes: Option<&'n [u8]>,
    /// Its lines, without terminators.
    pub(super) lines: Vec<&'n [u8]>,
    pub(super) end: End,
}

/// What the last line of a needle must be in the file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum End {
    /// The first bytes of a line.
    Within,
    /// A whole line, whose terminator does not belong to the place.
    Line,
    /// A whole line, whose terminator belongs to the place.
    Terminated,
}

impl<'n> Needle<'n> {
    /// A text, which may begin and end within lines. The empty text matches nowhere.
    pub(crate) fn text(text: &'n str) -> Self {
        let bytes = text.as_bytes();
        let mut lines: Vec<&[u8]> = Vec::with_capacity(1 + memchr_iter(b'\n', bytes).count());
        let mut start = 0;
        for feed in memchr_iter(b'\n', bytes) {
            lines.push(slice(bytes, start..feed));
            start = feed + 1;
        }
        lines.push(slice(bytes, start..bytes.len()));
        let mut end = End::Within;
        if lines.len() > 1 && lines.last().is_some_and(|line| line.is_empty()) {
            lines.pop();
            end = End::Terminated;
        }
        let terminated = lines.len() - usize::from(end == End::Within);
        lines.iter_mut().take(terminated).for_each(|line| *line = line.strip_suffix(b"\r").unwrap_or(line));
        Self { bytes: Some(text.as_bytes()), lines, end }
    }

    /// The lines, without terminators.
    pub(crate) fn as_lines(&self) -> &[&'n [u8]] {
        &self.lines
    }

    /// The lines without those, at its top and its bottom, that the place where it was found lacks; `None` if it has not so
    /// many, which is a defect of what found it.
    pub(crate) fn lines_within(&self, (above, below): (usize, usize)) -> Option<&[&'n [u8]]> {
        self.lines.get(above..self.lines.len().checked_sub(below)?)
    }

    /// Whether it stands for whole lines only.
    pub(crate) const fn is_lines(&self) -> bool {
        self.bytes.is_none()
    }

    /// Whole lines of bytes, given without terminators. Zero lines match nowhere.
    pub(crate) fn whole_lines(lines: impl IntoIterator<Item = &'n [u8]>) -> Self {
        Self { bytes: None, lines: lines.into_iter().collect(), end: End::Terminated }
    }

    /// Whole lines, given without terminators. Zero lines match nowhere.
    pub(crate) fn lines(lines: impl IntoIterator<Item = &'n str>) -> Self {
        Self { bytes: None, lines: lines.into_iter().map(str::as_bytes).collect(), end: End::Terminated }
    }
}
