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
use crate::workspace::roots::stamp::Stamp;

/// Why a root's state cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StateError {
    /// The system refuses.
    #[error("cannot use the state directory {}: {source}", path.display())]
    System {
        /// The directory or file.
        path: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The system refuses to do something with a part of it.
    #[error("cannot {doing} {}: {errno}", path.display())]
    Part {
        /// What was tried.
        doing: &'static str,
        /// The directory or file.
        path: PathBuf,
        /// The system's error.
        errno: Errno,
    },
    /// Another user could have written this directory.
    #[error("the state directory {} is open to others or belongs to another user", .0.display())]
    Open(PathBuf),
    /// Another process holds this lock file.
    #[error("another process holds {}", .0.display())]
    Busy(PathBuf),
}

/// Why something of our own cannot be read or written.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OwnError {
    /// The directory that it is in cannot be used.
    #[error(transparent)]
    State(#[from] StateError),
    /// The system refuses something in that directory.
    #[error("{0}")]
    System(#[from] Errno),
}

impl OwnError {
    /// The system's error.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::State(error) => error.errno(),
            Self::System(errno) => *errno,
        }
    }
}

impl StateError {
    /// The system's error.
    pub(crate) fn errno(&self) -> Errno {
        match self {
            Self::System { source, .. } => errno::of(source),
            Self::Part { errno, .. } => *errno,
            Self::Open(_) => Errno::PERM,
            Self::Busy(_) => Errno::AGAIN,
        }
    }

    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::System { .. } | Self::Part { .. } => errno::write_failure(self.errno(), self.to_string()),
            Self::Open(_) => Failure::new(Reason::PolicyDenied, self.to_string())
                .detail(Detail::Permission)
                .hint("make the directory yours, with mode 0700"),
            Self::Busy(_) => Failure::new(Reason::WorkspaceBusy, self.to_string())
                .hint("wait until the other batch has ended, then send this one again"),
        }
    }
}

/// A part of a state directory: a directory in it, of the name given, for files of one kind.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Part(pub(crate) &'static str);

impl Part {
    /// The age clock.
    pub(crate) const AGE: Self = Self("age");
    /// What the agent remembers.
    pub(crate) const AGENT: Self = Self("agent");
    /// The clipboards of sessions.
    pub(crate) const CLIPBOARDS: Self = Self("clipboards");
    /// Files that cannot be used and are kept for a person to look at.
    pub(crate) const DAMAGED: Self = Self("damaged");
    /// Files that batches have displaced.
    pub(crate) const DISPLACED: Self = Self("displaced");
    /// The names of ended batches as earlier versions kept them.
    pub(crate) const DONE: Self = Self("done");
    /// The ids of batches whose reports the server has acknowledged.
    pub(crate) const ENDED: Self = Self("ended");
    /// What was in files that batches changed.
    pub(crate) const HISTORY: Self = Self("history");
    /// What is derived from other parts, so that they need not be listed.
    pub(crate) const INDEX: Self = Self("index");
    /// The records of commits.
    pub(crate) const JOURNAL: Self = Self("journal");
    /// What the server is still owed.
    pub(crate) const OUTBOX: Self = Self("outbox");
    /// Edits that were prepared and wait to be applied.
    pub(crate) const PREPARED: Self = Self("prepared");
    /// Batches that were refused here.
    pub(crate) const REFUSED: Self = Self("refused");
    /// Reports that the server has acknowledged.
    pub(crate) const REPORTED: Self = Self("reported");
    /// Files that are being written.
    pub(crate) const TMP: Self = Self("tmp");
}

/// Where the state of one root is kept.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StateDir {
    path: PathBuf,
}

impl StateDir {
    /// Its own name, which follows from the path of the root.
    pub(crate) fn name(&self) -> std::path::Display<'_> {
        self.path.file_name().map_or(&*self.path, Path::new).display()
    }

    /// The state of the root at a canonical path.
    pub(crate) fn of_root(state: &Path, root: &Path) -> Self {
        let name = aptix_engine::digest::sha256(root.as_os_str().as_bytes());
        Self { path: state.join("roots").join(name.to_string()) }
    }

    /// What is of no root alone, in a directory beside those of the roots.
    pub(crate) fn shared(path: &Path) -> Self {
        Self { path: path.to_owned() }
    }

    /// The state of another root, at a canonical path.
    pub(crate) fn of_other_root(&self, root: &Path) -> Option<Self> {
        self.path.parent().and_then(Path::parent).map(|state| Self::of_root(state, root))
    }

    /// The state directory of a name beside this one; `None` where a state has no such name.
    pub(crate) fn named(&self, name: &str) -> Option<Self> {
        name.parse::<Sha256Digest>().ok()?;
        self.path.parent().map(|roots| Self { path: roots.join(name) })
    }

    /// Whether it is the state of the root at a canonical path.
    pub(crate) fn is_of(&self, root: &Path) -> bool {
        self.of_other_root(root).is_some_and(|other| other.path == self.path)
    }

    /// The states that there are of other roots; none where nothing was ever kept.
    pub(crate) fn siblings(&self) -> Result<Vec<Self>, StateError> {
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
                found.push(Self { path: entry.path() });
            }
        }
        Ok(found)
    }

    /// The directory of the states of all roots as it is: one look. While it is the same, no state was added or removed.
    pub(crate) fn stamp_of_all(&self) -> Result<Stamp, StateError> {
        let roots = self.path.parent().unwrap_or(&self.path);
        Stamp::at(roots).map_err(|source| StateError::System { path: roots.to_owned(), source })
    }

    /// That the system refuses to do something with a part.
    pub(crate) fn failed(&self, part: Part, doing: &'static str) -> impl Fn(Errno) -> StateError + use<> {
        let path = self.part(part);
        move |errno| StateError::Part { doing, path: path.clone(), errno }
    }

    /// Whether anything was ever kept about this root.
    pub(crate) fn exists(&self) -> bool {
        // What cannot be looked at is never taken for nothing.
        !self.path.symlink_metadata().is_err_and(|error| error.kind() == ErrorKind::NotFound)
    }

    /// The path of the directory.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The path of a part.
    pub(crate) fn part(&self, part: Part) -> PathBuf {
        self.path.join(part.0)
    }

    /// Holds a part, if there is one; makes nothing.
    pub(crate) fn find(&self, part: Part) -> Result<Option<OwnedFd>, StateError> {
        let path = self.part(part);
        match beneath::open_held(&path) {
            Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
            opened => opened.map(Some).map_err(|source| StateError::System { path, source }),
        }
    }

    /// Holds a part; makes it and the state directory if need be.
    pub(crate) fn open(&self, part: Part) -> Result<OwnedFd, StateError> {
        if let Some(found) = self.find(part)? {
            return self.check_own().map(|()| found);
        }
        let path = self.part(part);
        self.make(&path)?;
        beneath::open_held(&path).map_err(|source| StateError::System { path, source })
    }

    pub(crate) fn make(&self, path: &Path) -> Result<(), StateError> {
        disk::private_dir(path).map_err(|source| StateError::System { path: path.to_owned(), source })?;
        self.check_own()
    }

    pub(crate) fn check_own(&self) -> Result<(), StateError> {
        let system = |source| StateError::System { path: self.path.clone(), source };
        let metadata = self.path.metadata().map_err(system)?;
        let own = metadata.uid() == rustix::process::geteuid().as_raw() && metadata.mode() & 0o077 == 0;
        if own { Ok(()) } else { Err(StateError::Open(self.path.clone())) }
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
