//! Why the journal of a root cannot be used.

use std::path::PathBuf;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::commit::record_file::RecordError;
use crate::workspace::fs::errno;
use crate::workspace::roots::state::StateError;

/// Why the journal cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum JournalError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses.
    #[error("cannot {doing} the journal {}: {errno}", path.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The journal's directory.
        path: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// What is kept of the batch when its record ends cannot be kept.
    #[error("{}", .0.message)]
    Ending(Box<Failure>),
    /// A record that is there and cannot be acted on.
    #[error("the record {} cannot be used: {source}", path.display())]
    Record {
        /// The record.
        path: PathBuf,
        /// What is wrong with it.
        source: RecordError,
    },
}

impl JournalError {
    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::System { errno, doing: "read", .. } => {
                Failure { reason: Reason::NeedsOperator, ..errno::read_failure(*errno, self.to_string()) }
            }
            Self::System { errno, .. } => errno::write_failure(*errno, self.to_string()),
            Self::Ending(failure) => Failure::clone(failure),
            Self::Record { .. } => Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR),
        }
    }
}
