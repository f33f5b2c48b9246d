//! What follows the last block: prose, or the beginning of a block whose rest never arrived.

use super::names;
use crate::documents::text_lines::{Line, cut_short, quoted};
use crate::failure::Failure;

/// The lines since the last block.
#[derive(Default)]
pub(super) struct Tail<'a> {
    /// The last line that is not blank.
    last: Option<Line<'a>>,
    /// Whether a fence is open, and since when.
    fence: Fence,
    /// Whether the markers of the last block are dashes.
    is_dashed: bool,
}

/// Whether a fence is open.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
enum Fence {
    #[default]
    Closed,
    /// It was opened above a block.
    AroundBlock,
    /// It was opened below the last block.
    Opened,
}

impl<'a> Tail<'a> {
    /// Adds a line outside of all blocks.
    pub(super) fn add(&mut self, line: Line<'a>, is_below_block: bool) {
        if line.text.trim().is_empty() {
            return;
        }
        if let Some(info) = names::fence(line.text) {
            // A bare fence right below a block ends one whose beginning is not part of the document.
            let closes =
                info.trim().is_empty() && (self.fence != Fence::Closed || is_below_block && self.last.is_none());
            self.fence = if closes { Fence::Closed } else { Fence::Opened };
        }
        self.last = Some(line);
    }

    /// Forgets what is above a block, which begins with `marker`.
    pub(super) fn pass_block(&mut self, marker: &str) {
        let fence = if self.fence == Fence::Closed { Fence::Closed } else { Fence::AroundBlock };
        *self = Self { last: None, fence, is_dashed: marker.starts_with('-') };
    }

    /// Refuses a document that ends where another block begins.
    ///
    /// # Errors
    /// When the last line is part of a marker, names a file, may be part of such a name, announces something, or opened a
    /// fence.
    pub(super) fn check(&self, document: &str) -> Result<(), Failure> {
        self.check_marker()?;
        let Some(line) = self.last else { return Ok(()) };
        let is_path = |name: &str| names::is_path(name) && !name.contains(['{', '(', '"']);
        let found = if self.fence == Fence::Opened {
            "ends in a fence that was opened below the last block"
        } else if names::of(line.text).is_some_and(is_path) {
            "ends with the name of a file and no block below it"
        } else if line.text.trim_end().ends_with(':') {
            "ends with a colon and nothing below it"
        } else if document.ends_with(line.text) && !line.text.trim().contains(' ') {
            "ends in one word without a line feed, which may be part of the name of another file"
        } else {
            return Ok(());
        };
        Err(cut_short(line.number, format!("the document {found}: {}", quoted(line.text))))
    }

    /// Refuses a document that ends in the middle of a marker.
    ///
    /// # Errors
    /// When the last line is nothing but the first marks of one.
    pub(super) fn check_marker(&self) -> Result<(), Failure> {
        let is_run = |line: &Line<'_>, mark: char| line.text.trim_end().trim_start_matches(mark).is_empty();
        match self.last.filter(|line| is_run(line, '<') || self.is_dashed && is_run(line, '-')) {
            Some(line) => {
                let message = format!("the document ends in the middle of a marker: {}", quoted(line.text));
                Err(cut_short(line.number, message))
            }
            None => Ok(()),
        }
    }
}
