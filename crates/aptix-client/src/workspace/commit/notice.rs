//! What a user should know although the commit succeeded.

/// Something that a user should know although the commit succeeded.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Notice {
    /// Another process wrote the old file while it was being replaced; what it wrote is kept under this name beside it.
    Kept {
        /// Position among the changes.
        change: usize,
        /// The name.
        name: String,
    },
    /// Another process wrote the new file right after it was published.
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

/// What a file that is replaced has, and the system does not give to the new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The owner or the group.
    Owner,
    /// The extended attribute of this name.
    Attribute(String),
}
