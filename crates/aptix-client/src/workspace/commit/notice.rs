//! What a user should know although the commit succeeded.

use crate::workspace::commit::attributes::Loss;

/// Something that somebody should know although the commit succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Somebody wrote the old file while it was being replaced; what they wrote was kept under this name beside it.
    Kept {
        /// Position among the changes.
        change: usize,
        /// The name.
        name: String,
    },
    /// Somebody wrote the new file right after it was published.
    Overwritten {
        /// Position among the changes.
        change: usize,
    },
    /// The changes cannot be undone: what was in the files is more than is kept.
    NotUndoable,
    /// The system does not give the new file something that the old one had.
    Lost {
        /// Position among the changes.
        change: usize,
        /// What.
        loss: Loss,
    },
}
