//! A root: a directory that a person opened for editing, under a name, held open for as long as it is in use.

use std::ffi::{OsStr, OsString};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use aptix_model::path::{PathError, WorkspacePath, fold};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::workspace::fs::beneath;
use crate::workspace::roots::state::StateDir;

/// What a person writes to open a root: `[NAME=]DIR`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RootSpec {
    /// The name, where one is given.
    pub name: Option<String>,
    /// The directory.
    pub dir: PathBuf,
}

impl FromStr for RootSpec {
    type Err = std::convert::Infallible;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        Ok(match text.split_once('=') {
            Some((name, dir)) => Self { name: Some(name.to_owned()), dir: dir.into() },
            None => Self { name: None, dir: text.into() },
        })
    }
}

/// Why a root cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum RootError {
    /// There is no such directory, or it may not be entered.
    #[error("cannot open the root {}: {source}", dir.display())]
    Open {
        /// As the person wrote it.
        dir: PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The directory's own name cannot be a root's name.
    #[error("{name:?} cannot name the root {}: {source}", dir.display())]
    Name {
        /// As the person wrote it.
        dir: PathBuf,
        /// The name.
        name: String,
        /// The rule it breaks.
        source: PathError,
    },
    /// This name, which is not a single component.
    #[error("{0:?} cannot name a root: a name has no slash")]
    Slash(String),
    /// This directory, which is of Aptix's own state.
    #[error("{} belongs to Aptix itself and is never edited", .0.display())]
    Own(PathBuf),
    /// No root was given.
    #[error("a workspace has at least one root")]
    NoRoot,
    /// Two roots of one name.
    #[error("two roots are named {name:?}: {} and {}", one.display(), other.display())]
    SameName {
        /// The name.
        name: String,
        /// One directory.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
    /// One root lies in another, or is the other.
    #[error("the roots {} and {} overlap", one.display(), other.display())]
    Overlap {
        /// One directory.
        one: PathBuf,
        /// The other.
        other: PathBuf,
    },
}

/// Identifies a root: its canonical path, and which directory it is, whatever its path.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct RootMark {
    pub(crate) path: OsString,
    pub(crate) device: u64,
    pub(crate) inode: u64,
}

/// A directory opened for editing.
#[derive(Debug)]
pub struct Root {
    name: String,
    path: PathBuf,
    dir: Arc<OwnedFd>,
    pub(crate) mark: RootMark,
    /// Where in this root Aptix keeps its own state, folded, if the root holds it.
    own_state: Option<String>,
    state: StateDir,
}

impl Root {
    /// Opens a root; `state` is the canonical directory under which Aptix keeps the state of all roots.
    ///
    /// # Errors
    /// When the directory cannot be opened, or its name cannot be a root's.
    pub(crate) fn open(spec: &RootSpec, state: &Path) -> Result<Self, RootError> {
        let failed = |source| RootError::Open { dir: spec.dir.clone(), source };
        let path = spec.dir.canonicalize().map_err(failed)?;
        let dir = beneath::open_held(&path).map_err(failed)?;
        let name = root_name(spec, &path)?;
        if path.starts_with(state) {
            return Err(RootError::Own(path));
        }
        let own_state = state.strip_prefix(&path).ok().and_then(Path::to_str).map(fold);
        let mark = mark(&dir, &path).map_err(|errno| failed(errno.into()))?;
        Ok(Self { name, dir: Arc::new(dir), mark, own_state, state: StateDir::of_root(state, &path), path })
    }

    /// The name, lower-case.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The directory's real path when it was opened.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Where Aptix keeps its own things about this root.
    #[must_use]
    pub const fn state(&self) -> &StateDir {
        &self.state
    }

    /// Which directory it is, whatever its path: device and inode.
    pub(crate) const fn identity(&self) -> (u64, u64) {
        (self.mark.device, self.mark.inode)
    }

    /// Whether it is the very directory that is marked, whatever its path was then.
    pub(crate) const fn is_marked(&self, mark: &RootMark) -> bool {
        self.mark.device == mark.device && self.mark.inode == mark.inode
    }

    /// Whether the directory was removed since it was opened: what is written in it now would never be found.
    pub(crate) fn is_removed(&self) -> bool {
        // A failure to look is reported by the next operation.
        rustix::fs::fstat(&self.dir).is_ok_and(|stat| stat.st_nlink == 0)
    }

    /// Whether another directory, or nothing, has its path now.
    pub(crate) fn has_moved(&self) -> bool {
        match rustix::fs::stat(&self.path) {
            Ok(stat) => (stat.st_dev, stat.st_ino) != self.identity(),
            Err(errno) => errno == Errno::NOENT,
        }
    }

    pub(crate) fn dir(&self) -> BorrowedFd<'_> {
        self.dir.as_fd()
    }

    pub(crate) fn held(&self) -> Arc<OwnedFd> {
        Arc::clone(&self.dir)
    }

    /// Whether a real path in this root belongs to Aptix's own state.
    pub(crate) fn is_own_state(&self, path: &str) -> bool {
        let Some(own) = &self.own_state else { return false };
        let folded = fold(path);
        folded.strip_prefix(own.as_str()).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

/// Refuses roots of one name and roots that lie in one another.
pub(crate) fn check_disjoint(roots: &[Root]) -> Result<(), RootError> {
    for (index, one) in roots.iter().enumerate() {
        for other in roots.iter().skip(index + 1) {
            let [a, b] = [one.path.clone(), other.path.clone()];
            if a.starts_with(&b) || b.starts_with(&a) {
                return Err(RootError::Overlap { one: a, other: b });
            }
            if one.name == other.name {
                return Err(RootError::SameName { name: one.name.clone(), one: a, other: b });
            }
        }
    }
    Ok(())
}

/// Identifies the directory at a path.
pub(crate) fn mark(dir: &OwnedFd, path: &Path) -> Result<RootMark, Errno> {
    let stat = rustix::fs::fstat(dir)?;
    Ok(RootMark { path: path.as_os_str().to_owned(), device: stat.st_dev, inode: stat.st_ino })
}

fn root_name(spec: &RootSpec, path: &Path) -> Result<String, RootError> {
    let own = path.file_name().unwrap_or(OsStr::new("root"));
    let name = spec.name.clone().unwrap_or_else(|| String::from_utf8_lossy(own.as_bytes()).into_owned());
    let name = name.to_lowercase();
    if name.contains('/') {
        return Err(RootError::Slash(name));
    }
    match WorkspacePath::new(&name) {
        Ok(_) => Ok(name),
        Err(source) => Err(RootError::Name { dir: spec.dir.clone(), name, source }),
    }
}
