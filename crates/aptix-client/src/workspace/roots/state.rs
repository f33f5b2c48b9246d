//! What Aptix keeps for itself about a root: locks, journal, outbox; owner-only, never in the workspace.

use std::io::ErrorKind;
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::io::Errno;

use crate::workspace::fs::{beneath, disk, errno};

/// Why a root's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refuses.
    #[error("cannot use the state directory {}: {source}", path.display())]
    System {
        /// The directory or file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// Somebody else could have written it.
    #[error("the state directory {} is open to others or belongs to somebody else", path.display())]
    Open {
        /// The directory.
        path: PathBuf,
    },
    /// Another process holds the lock.
    #[error("another process holds {}", path.display())]
    Busy {
        /// The lock file.
        path: PathBuf,
    },
}

/// Why something of our own cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(in crate::workspace) enum OwnError {
    /// The directory that it is in cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses something in that directory.
    #[error("{0}")]
    System(#[from] Errno),
}

impl OwnError {
    /// What the system says.
    pub(in crate::workspace) fn errno(&self) -> Errno {
        match self {
            Self::State(error) => error.errno(),
            Self::System(errno) => *errno,
        }
    }
}

impl StateError {
    /// That the system refuses something about a file.
    pub(in crate::workspace) fn of(path: PathBuf, errno: Errno) -> Self {
        Self::System { path, source: errno.into() }
    }

    /// What the system says.
    pub(in crate::workspace) fn errno(&self) -> Errno {
        match self {
            Self::System { source, .. } => Errno::from_io_error(source).unwrap_or(Errno::IO),
            Self::Open { .. } => Errno::PERM,
            Self::Busy { .. } => Errno::AGAIN,
        }
    }

    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::System { .. } => errno::write_failure(self.errno(), self.to_string()),
            Self::Open { .. } => Failure::new(Reason::PolicyDenied, self.to_string())
                .detail(Detail::Permission)
                .hint("make the directory yours, with mode 0700"),
            Self::Busy { .. } => Failure::new(Reason::WorkspaceBusy, self.to_string())
                .hint("wait until the other batch has ended, then send this one again"),
        }
    }
}

/// Where the state of one root is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    fn at(path: PathBuf) -> Self {
        Self { path }
    }

    /// Its own name, which follows from the path of the root.
    pub(in crate::workspace) fn name(&self) -> std::path::Display<'_> {
        self.path.file_name().map_or(&*self.path, Path::new).display()
    }

    /// The state of the root at a canonical path.
    pub(in crate::workspace) fn of_root(state: &Path, root: &Path) -> Self {
        let name = aptix_engine::digest::sha256(root.as_os_str().as_bytes());
        Self::at(state.join("roots").join(name.to_string()))
    }

    /// The state of another root, at a canonical path.
    pub(in crate::workspace) fn of_other_root(&self, root: &Path) -> Option<Self> {
        self.path.parent().and_then(Path::parent).map(|state| Self::of_root(state, root))
    }

    /// Whether it is the state of the root at a canonical path.
    pub(in crate::workspace) fn is_of(&self, root: &Path) -> bool {
        self.of_other_root(root).is_some_and(|other| other.path == self.path)
    }

    /// The states that there are of other roots; none where nothing was ever kept.
    pub(in crate::workspace) fn siblings(&self) -> Result<Vec<Self>, StateError> {
        let Some(roots) = self.path.parent() else { return Ok(Vec::new()) };
        let system = |source| StateError::System { path: roots.to_owned(), source };
        let entries = match std::fs::read_dir(roots) {
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(system)?,
        };
        let mut found = Vec::new();
        for entry in entries {
            let entry = entry.map_err(system)?;
            let is_state = entry.file_name().to_str().is_some_and(|name| name.parse::<Sha256Digest>().is_ok());
            if is_state && entry.path() != self.path && entry.file_type().map_err(system)?.is_dir() {
                found.push(Self::at(entry.path()));
            }
        }
        Ok(found)
    }

    /// Whether anything was ever kept about this root.
    pub(crate) fn exists(&self) -> bool {
        // What cannot be looked at is never taken for nothing.
        !self.path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The directory, to be told to a person.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the directory and what it consists of, and holds the part in which journal records stand.
    pub(in crate::workspace) fn open_journal(&self) -> Result<OwnedFd, StateError> {
        self.open("journal")
    }

    /// As [`Self::open_journal`], where there is one; makes nothing.
    pub(in crate::workspace) fn find_journal(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("journal")
    }

    fn find(&self, part: &str) -> Result<Option<OwnedFd>, StateError> {
        let path = self.path.join(part);
        match beneath::open_held(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|source| StateError::System { path, source }),
        }
    }

    /// As [`Self::open_journal`], for what the server is still owed.
    pub(in crate::workspace) fn open_outbox(&self) -> Result<OwnedFd, StateError> {
        self.open("outbox")
    }

    /// As [`Self::open_outbox`], where there is one; makes nothing.
    pub(in crate::workspace) fn find_outbox(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("outbox")
    }

    /// The names of ended batches as earlier versions kept them, where there are any; makes nothing.
    pub(in crate::workspace) fn find_done(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("done")
    }

    /// As [`Self::open_journal`], for the ids of batches that the server needs no word about any more.
    pub(in crate::workspace) fn open_ended(&self) -> Result<OwnedFd, StateError> {
        self.open("ended")
    }

    /// As [`Self::open_ended`], where there are any; makes nothing.
    pub(in crate::workspace) fn find_ended(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("ended")
    }

    /// As [`Self::open_journal`], for files that are being written.
    pub(in crate::workspace) fn open_tmp(&self) -> Result<OwnedFd, StateError> {
        self.open("tmp")
    }

    /// As [`Self::open_tmp`], where there is one; makes nothing.
    pub(in crate::workspace) fn find_tmp(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("tmp")
    }

    /// As [`Self::open_journal`], for files that cannot be used and are kept for a person to look at.
    pub(in crate::workspace) fn open_damaged(&self) -> Result<OwnedFd, StateError> {
        self.open("damaged")
    }

    /// As [`Self::open_journal`], for reports that the server has acknowledged.
    pub(in crate::workspace) fn open_reported(&self) -> Result<OwnedFd, StateError> {
        self.open("reported")
    }

    /// As [`Self::open_journal`], for the clipboards of sessions.
    pub(in crate::workspace) fn open_clipboards(&self) -> Result<OwnedFd, StateError> {
        self.open("clipboards")
    }

    /// As [`Self::open_clipboards`], where there are any; makes nothing.
    pub(in crate::workspace) fn find_clipboards(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("clipboards")
    }

    /// As [`Self::open_journal`], for what was in files that batches changed.
    pub(in crate::workspace) fn open_history(&self) -> Result<OwnedFd, StateError> {
        self.open("history")
    }

    /// As [`Self::open_history`], where there is one; makes nothing.
    pub(in crate::workspace) fn find_history(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("history")
    }

    /// As [`Self::open_journal`], for the age clock.
    pub(in crate::workspace) fn open_age(&self) -> Result<OwnedFd, StateError> {
        self.open("age")
    }

    /// As [`Self::open_age`], where there is one; makes nothing.
    pub(in crate::workspace) fn find_age(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("age")
    }

    /// As [`Self::open_journal`], for the files that batches have displaced.
    pub(in crate::workspace) fn open_displaced(&self) -> Result<OwnedFd, StateError> {
        self.open("displaced")
    }

    /// As [`Self::open_displaced`], where there are any; makes nothing.
    pub(in crate::workspace) fn find_displaced(&self) -> Result<Option<OwnedFd>, StateError> {
        self.find("displaced")
    }

    /// Where the files are that batches have displaced.
    pub(in crate::workspace) fn displaced(&self) -> PathBuf {
        self.path.join("displaced")
    }

    /// As [`Self::open_journal`], for what the agent remembers.
    pub(in crate::workspace) fn open_agent(&self) -> Result<OwnedFd, StateError> {
        self.open("agent")
    }

    fn open(&self, part: &str) -> Result<OwnedFd, StateError> {
        if let Some(found) = self.find(part)? {
            return self.check_own().map(|()| found);
        }
        let path = self.path.join(part);
        self.make(&path)?;
        beneath::open_held(&path).map_err(|source| StateError::System { path, source })
    }

    pub(in crate::workspace) fn make(&self, path: &Path) -> Result<(), StateError> {
        disk::private_dir(path).map_err(|source| StateError::System { path: path.to_owned(), source })?;
        self.check_own()
    }

    pub(in crate::workspace) fn check_own(&self) -> Result<(), StateError> {
        let system = |source| StateError::System { path: self.path.clone(), source };
        let metadata = self.path.metadata().map_err(system)?;
        let own = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if own { Ok(()) } else { Err(StateError::Open { path: self.path.clone() }) }
    }
}

/// The canonical path of something that need not exist.
pub(crate) fn real_path(path: &Path) -> Result<PathBuf, std::io::Error> {
    match (path.canonicalize(), path.parent(), path.file_name()) {
        (Err(error), Some(parent), Some(name)) if error.kind() == ErrorKind::NotFound => {
            Ok(real_path(parent)?.join(name))
        }
        (outcome, ..) => outcome,
    }
}
