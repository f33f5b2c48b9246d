//! Why policy closes a file to every batch, and what the author of an edit is told about it.

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::paths::Listed;

/// Why policy closes a file to every batch.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum Denial {
    /// It is on a list.
    #[error("{0}")]
    Listed(Listed),
    /// Policy itself is in it.
    #[error("the file belongs to Aptix itself and is never edited ({real:?})")]
    Own {
        /// The real path.
        real: String,
    },
    /// A link leads to it.
    #[error("it is reached by a link, and policy says links = \"refuse\"; its real path is {real:?}")]
    Link {
        /// The real path.
        real: String,
    },
}

impl Denial {
    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let (detail, hint) = match self {
            Self::Listed(_) => (Detail::Denied, "leave this file out of the batch; no answer opens it"),
            Self::Own { .. } => (Detail::Protected, "leave this file out of the batch; no answer opens it"),
            Self::Link { .. } => (Detail::Symlink, "name the file by its real path"),
        };
        Failure::new(Reason::PolicyDenied, self.to_string()).detail(detail).hint(hint)
    }
}
