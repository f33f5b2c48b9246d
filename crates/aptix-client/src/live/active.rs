//! What a file is to its readers at one moment: the file on disk, or the unsaved buffer that stands for it.

use std::ops::ControlFlow;
use std::sync::Arc;

use crate::workspace::read::open_file::OpenFile;
use crate::workspace::read::snapshot::ReadError;

/// A file that is read.
pub(super) enum Active {
    /// As it is on disk.
    File(OpenFile),
    /// As an editor holds it.
    Buffer {
        text: Arc<str>,
        /// Whether the owner of the file on disk may run it.
        is_executable: bool,
    },
}

impl Active {
    pub(super) const fn is_unsaved(&self) -> bool {
        matches!(self, Self::Buffer { .. })
    }

    pub(super) fn is_executable(&self) -> bool {
        match self {
            Self::File(file) => file.is_executable(),
            Self::Buffer { is_executable, .. } => *is_executable,
        }
    }

    /// Hands over its bytes from the first on, piece by piece, until `take` breaks off.
    pub(super) fn pieces(&self, take: &mut dyn FnMut(&[u8]) -> ControlFlow<()>) -> Result<(), ReadError> {
        match self {
            Self::File(file) => file.pieces(take).map_err(ReadError::System),
            Self::Buffer { text, .. } => {
                let _ = take(text.as_bytes());
                Ok(())
            }
        }
    }

    /// Whether it is still what was opened, as far as the system shows.
    pub(super) fn is_unchanged(&self) -> Result<bool, ReadError> {
        match self {
            Self::File(file) => file.is_unchanged().map_err(ReadError::System),
            Self::Buffer { .. } => Ok(true),
        }
    }
}
