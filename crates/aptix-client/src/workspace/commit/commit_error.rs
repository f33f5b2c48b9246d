//! Why a batch is not committed, or an earlier one not recovered, and the failure that the author gets.

use std::path::{Path, PathBuf};

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::io::Errno;

use crate::workspace::commit::journal::JournalError;
use crate::workspace::fs::errno;
use crate::workspace::roots::state::StateError;

/// What keeps one file from being written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum FileFault {
    /// Another process wrote it since it was read.
    #[error("another process wrote the file after it was read")]
    Changed {
        /// The digest it has now.
        current: Option<Sha256Digest>,
    },
    /// There is no file any more.
    #[error("another process removed the file after it was read")]
    Removed,
    /// Its bytes are as they were, but not the rest.
    #[error("another process changed the file's owner, mode or attributes after it was read")]
    Attributes,
    /// A file that must not exist has appeared.
    #[error("a file appeared at this path after it was found free")]
    Exists,
    /// The directory was removed since.
    #[error("its directory was removed after it was found")]
    ParentGone,
    /// The file or its directory is closed to changes.
    #[error("the file or its directory is immutable or append-only")]
    Immutable,
    /// The staged file is not as it was written.
    #[error("another process altered the staged file")]
    Tampered,
    /// A parent cannot be made.
    #[error("cannot make the directory: {errno}")]
    MakeDir {
        /// The system's error number.
        errno: Errno,
    },
    /// The system refuses.
    #[error("cannot {doing}: {errno}")]
    System {
        /// What was tried.
        doing: &'static str,
        /// The system's error number.
        errno: Errno,
    },
}

/// Why a batch was not committed. Unless the variant says otherwise, nothing has changed.
#[derive(Debug, thiserror::Error)]
pub enum CommitError {
    /// The locks or the state directory.
    #[error(transparent)]
    State(#[from] StateError),
    /// An earlier commit is in the way.
    #[error(transparent)]
    Recovery(#[from] RecoveryError),
    /// The journal cannot be written.
    #[error(transparent)]
    Journal(#[from] JournalError),
    /// The caller's last check.
    #[error("{}", .0.message)]
    Refused(Box<Failure>),
    /// A file, before any was published.
    #[error("{fault}")]
    File {
        /// Position among the changes.
        change: usize,
        /// What is wrong.
        fault: FileFault,
    },
    /// A file, after others were published; those were put back.
    #[error("{fault}; every file was put back")]
    RolledBack {
        /// Position among the changes.
        change: usize,
        /// What is wrong.
        fault: FileFault,
    },
    /// A batch that was rolled back, where another process wrote meanwhile.
    #[error("{error}; what another process wrote meanwhile is kept as {}", names.join(", "))]
    Kept {
        /// Why it was rolled back.
        error: Box<CommitError>,
        /// The real paths of what was kept.
        names: Vec<String>,
    },
    /// The disk failed at the commit point, and again when that was to be undone: the next command finds out.
    #[error(
        "{error}; clearing away failed as well: {cause}; the next command on this root applies the batch wholly or not \
         at all, by the record {}",
        record.display()
    )]
    Undecided {
        /// What failed at first.
        error: Box<CommitError>,
        /// What failed then.
        cause: String,
        /// The record.
        record: PathBuf,
    },
    /// A file, after others were published, and those could not be put back.
    #[error("{fault}; putting the other files back failed as well: {cause}; see the record {}", record.display())]
    NeedsOperator {
        /// Position among the changes.
        change: usize,
        /// What is wrong with it.
        fault: FileFault,
        /// What is wrong with putting back.
        cause: Errno,
        /// The record that names the files.
        record: PathBuf,
    },
}

impl FileFault {
    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let again = "read the file again and send the batch anew, made for what it holds now";
        let changed = Failure::new(Reason::FileChanged, self.to_string()).hint(again);
        match self {
            Self::Changed { current } => Failure { current_sha256: *current, ..changed },
            Self::Attributes => changed,
            Self::Tampered => Failure::new(Reason::HashFailed, self.to_string())
                .hint("nothing of the batch is in place; send it again"),
            Self::Removed => changed.hint("bring the file back, or leave it out of the batch"),
            Self::Exists => Failure::new(Reason::FileExists, self.to_string())
                .hint("read the file, then send the batch again with overwrite, or with another path"),
            Self::ParentGone => Failure::new(Reason::WriteFailed, self.to_string())
                .detail(Detail::ParentGone)
                .hint("look which directories there are before sending the batch again"),
            Self::Immutable => Failure::new(Reason::WriteFailed, self.to_string())
                .detail(Detail::Immutable)
                .hint("a person has to take the attribute away first"),
            Self::MakeDir { errno } => {
                Failure { reason: Reason::DirectoryCreateFailed, ..errno::write_failure(*errno, self.to_string()) }
            }
            Self::System { errno, .. } => errno::write_failure(*errno, self.to_string()),
        }
    }
}

impl CommitError {
    /// Which change it is about.
    #[must_use]
    pub fn change(&self) -> Option<usize> {
        match self {
            Self::Kept { error, .. } => error.change(),
            Self::File { change, .. } | Self::RolledBack { change, .. } | Self::NeedsOperator { change, .. } => {
                Some(*change)
            }
            Self::State(_) | Self::Recovery(_) | Self::Journal(_) | Self::Refused(_) | Self::Undecided { .. } => None,
        }
    }

    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::State(error) => error.failure(),
            Self::Recovery(error) => error.failure(),
            Self::Journal(error) => error.failure(),
            Self::Refused(failure) => (**failure).clone(),
            Self::Kept { error, .. } => Failure { message: self.to_string(), ..error.failure() },
            Self::File { fault, .. } => fault.failure(),
            Self::RolledBack { fault, .. } => {
                let failure = Failure { message: self.to_string(), ..fault.failure() };
                let system = failure.reason == Reason::WriteFailed && failure.detail != Some(Detail::ParentGone);
                if system { failure.detail(Detail::RolledBack) } else { failure }
            }
            Self::NeedsOperator { .. } | Self::Undecided { .. } => {
                Failure::new(Reason::NeedsOperator, self.to_string()).hint(errno::OPERATOR)
            }
        }
    }
}

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
        /// The system's error number.
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
        /// The system's error number.
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
    /// Batches that only an earlier version can complete.
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

    /// The failure that the author of the edit gets.
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
