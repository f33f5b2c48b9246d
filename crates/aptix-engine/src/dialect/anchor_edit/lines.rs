//! The lines of a text by their position.

use alloc::vec::Vec;
use core::ops::Range;

use crate::text::edit::slice;
use crate::text::lines::{Terminator, Text};

/// Where each line of a text starts.
pub(super) struct Lines<'t> {
    pub(super) text: &'t Text<'t>,
    pub(super) starts: Vec<usize>,
}

impl<'t> Lines<'t> {
    pub(super) fn of(text: &'t Text<'t>) -> Self {
        let mut starts = Vec::with_capacity(text.lines() + 1);
        let mut cursor = text.cursor();
        starts.push(cursor.at());
        while cursor.next().is_some() {
            starts.push(cursor.at());
        }
        Self { text, starts }
    }

    pub(super) fn count(&self) -> usize {
        self.starts.len() - 1
    }

    pub(super) fn start(&self, index: usize) -> usize {
        self.starts.get(index).copied().unwrap_or(self.text.bytes().len())
    }

    pub(super) fn range(&self, above: usize, removed: usize) -> Range<usize> {
        self.start(above)..self.start(above + removed)
    }

    /// The text of a line, by its position from 0.
    pub(super) fn line(&self, index: usize) -> &'t [u8] {
        let line = slice(self.text.bytes(), self.range(index, 1));
        match line.strip_suffix(b"\n") {
            Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
            None => line,
        }
    }

    /// What ends a line, by its position; of no line, what ends line 1.
    pub(super) fn terminator(&self, index: usize) -> Terminator {
        if index >= self.count() {
            return self.text.first_terminator();
        }
        let line = slice(self.text.bytes(), self.range(index, 1));
        if line.ends_with(b"\n") { Terminator::at_end_of(line) } else { self.text.last_terminator() }
    }
}
