//! One buffer: which file it is of, and its text.

use std::sync::Arc;

use crate::workspace::read::place::Place;

/// Most bytes of a buffer's text.
pub(crate) const TEXT_BYTES: usize = 1 << 20;

/// A buffer with text that was not saved when it was announced.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Buffer {
    /// The root, from 0.
    pub(crate) root: usize,
    /// The file's path in the root, as the editor named it.
    pub(crate) path: String,
    /// Its real path there, links expanded.
    pub(crate) real: String,
    /// Its lower-case key.
    pub(crate) doc_path: String,
    /// The text, in UTF-8, with the terminators and the byte order mark that a save would write. Absent if the editor does not
    /// show it, or it is larger than [`TEXT_BYTES`].
    pub(crate) text: Option<Arc<str>>,
}

impl Buffer {
    /// Whether it is of the file at a place.
    pub(super) fn is_of(&self, place: &Place) -> bool {
        let is_named = self.path == place.path.as_str() || self.real == place.real();
        // Where there is no file yet, names that differ in case alone are one.
        self.root == place.root() && (is_named || (place.found.is_none() && self.doc_path == place.doc_path))
    }

    /// Whether the text is another one than the bytes on disk; absent where there are none, or more than a buffer has.
    pub(super) fn differs(&self, on_disk: Option<&[u8]>) -> bool {
        self.text.as_ref().map(|text| text.as_bytes()) != on_disk || on_disk.is_none()
    }
}
