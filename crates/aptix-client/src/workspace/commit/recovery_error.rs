//! Why a root is not ready for a batch: an earlier commit cannot be brought to an end.

use std::path::{Path, PathBuf};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::workspace::commit::journal_error::JournalError;
use crate::workspace::fs::errno;

/// What is done with a batch that is at its end.
pub(crate) const CLEAR_AWAY: &str = "clear away";

/// Why a root is not ready for a batch.
#[derive(Debug, thiserror::Error)]
pub enum RecoveryError {
    /// The journal cannot be read or written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// A root that took part in the commit cannot be opened.
    #[error("cannot open {}, a root of the batch recorded in {}: {errno}", root.display(), record.display())]
    Root {
        /// The root.
        root: PathBuf,
        /// The record.
        record: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// At the path of a root that took part in the commit there is another directory now.
    #[error(
        "{} is not the directory any more that it was when the batch recorded in {} stopped half-way",
        root.display(),
        record.display()
    )]
    Replaced {
        /// The root.
        root: PathBuf,
        /// The record.
        record: PathBuf,
    },
    /// The system refuses.
    #[error("cannot {doing} the batch recorded in {}: {errno}", record.display())]
    System {
        /// What was tried.
        doing: &'static str,
        /// The record.
        record: PathBuf,
        /// What the system says.
        errno: Errno,
    },
    /// The files fit neither end.
    #[error(
        "an earlier batch stopped half-way, recorded in {}; these files are neither as before nor as planned: {}",
        record.display(),
        files.join(", ")
    )]
    Torn {
        /// The record.
        record: PathBuf,
        /// The real paths of the files.
        files: Vec<String>,
    },
    /// Batches that only an earlier version can bring to their end.
    #[error(
        "{} holds batches of durability mode `journal`, which earlier versions had and this one cannot settle",
        path.display()
    )]
    WrittenAhead {
        /// The file.
        path: PathBuf,
    },
}

impl RecoveryError {
    /// Whether a batch that is carried out cannot be cleared away because the disk is full. Its files can be read as they are.
    pub(crate) fn is_for_lack_of_room(&self) -> bool {
        matches!(self, Self::System { doing: CLEAR_AWAY, errno: Errno::NOSPC | Errno::DQUOT, .. })
    }

    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Journal(error) => error.failure(),
            Self::System { errno, .. } if self.is_for_lack_of_room() => errno::write_failure(*errno, self.to_string()),
            Self::WrittenAhead { path } => {
                Failure::new(Reason::NeedsOperator, self.to_string()).hint(written_ahead_hint(path))
            }
            Self::Root { .. } | Self::Replaced { .. } | Self::Torn { .. } | Self::System { .. } => {
                Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR)
            }
        }
    }
}

/// What a person does about `path`, which only an earlier version can settle.
fn written_ahead_hint(path: &Path) -> String {
    format!(
        "run `aptix log` of the version that was used before on this root once, which settles it; or, if the files of the \
         root are as they should be, remove {}: then the batches in it can no longer be undone or reported",
        path.display()
    )
}
