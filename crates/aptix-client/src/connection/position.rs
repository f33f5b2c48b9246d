//! How far the events of a server have been handled.

use aptix_model::cursor::Cursor;
use aptix_model::id::Revision;

/// How far a server's events have been handled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Position {
    /// By a revision alone, where the server did not name its history.
    Revision(Revision),
    /// By a cursor, which the server checks.
    Cursor(Cursor),
}

impl Position {
    /// Before the first event.
    pub const START: Self = Self::Revision(Revision(0));

    /// The last event that was handled.
    #[must_use]
    pub const fn revision(self) -> Revision {
        match self {
            Self::Revision(revision) => revision,
            Self::Cursor(cursor) => cursor.revision,
        }
    }
}
