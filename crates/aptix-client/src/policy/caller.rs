//! Who sends edits and asks for files, as far as policy tells them apart.

use super::Deletions;

/// Who sends edits and asks for files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Caller {
    /// The user at their own shell: `aptix apply`, `aptix undo`.
    Shell,
    /// The server that an agent works for, and every author behind it.
    Server,
    /// A model that calls the tools of `aptix mcp`.
    Model,
}

impl Caller {
    /// Whether a person is asked before a file is deleted, where no policy file says so.
    #[must_use]
    pub(super) const fn deletions(self) -> Deletions {
        match self {
            Self::Shell => Deletions::Allow,
            Self::Server | Self::Model => Deletions::Ask,
        }
    }
}
