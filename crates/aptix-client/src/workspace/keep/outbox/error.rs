//! Why the outbox cannot be used.

use std::path::PathBuf;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::roots::state::StateError;

/// Why the outbox cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum OutboxError {
    /// The state directory cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// A later version wrote this log.
    #[error("{} was written by a later version of aptix, which has to go on with it", .0.display())]
    Version(PathBuf),
}

impl OutboxError {
    /// The failure that the author of the edit gets.
    pub(crate) fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::Version(_) => Failure::new(Reason::NeedsOperator, self.to_string())
                .hint("go on with that version of aptix, or remove the file: reports that wait in it are lost then"),
        }
    }

    /// The system's error.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::State(error) => error.errno(),
            Self::Version(_) => Errno::PROTO,
        }
    }

    /// Whether it passes by itself, or once a person has made space on the disk.
    #[must_use]
    pub(crate) fn will_pass(&self) -> bool {
        // `AGAIN`: another process holds the lock.
        let passing = [Errno::NOSPC, Errno::DQUOT, Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::AGAIN];
        passing.contains(&self.errno())
    }
}
