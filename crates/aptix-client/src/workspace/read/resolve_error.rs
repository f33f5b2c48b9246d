//! Why a path leads to nothing that may be edited.

use aptix_model::failure::Failure;
use aptix_model::path::PathError;
use aptix_model::protection::Protection;
use aptix_model::reason::{Detail, Reason};
use rustix::io::Errno;

use crate::workspace::fs::errno;

/// How many links may be on the way to one file.
pub(crate) const MAX_LINKS: usize = 40;

/// Why a path leads nowhere.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Its first component names no root.
    #[error("no root of this workspace is named {found:?}, the roots are {known}")]
    UnknownRoot {
        /// The first component.
        found: String,
        /// The names there are.
        known: String,
    },
    /// It has no component but a root's name.
    #[error("the path names a root and no file in it")]
    RootAlone,
    /// The name on disk cannot be reported.
    #[error("{0}")]
    Path(#[from] PathError),
    /// A link that cannot be followed.
    #[error("the link {at:?} {fault}")]
    Link {
        /// The link's path.
        at: String,
        /// The real path that was reached.
        real: String,
        /// What is wrong with it.
        fault: LinkFault,
    },
    /// A component on the way, at this real path, is something else than a directory.
    #[error("{0:?} is not a directory")]
    NotDirectory(String),
    /// The last component is no regular file.
    #[error("the target is {kind}, expected a regular file")]
    NotRegular {
        /// Its real path.
        real: String,
        /// What it is.
        kind: &'static str,
    },
    /// A mount on the way, at this real path.
    #[error("{0:?} lies on another file system than the root")]
    CrossDevice(String),
    /// Names that differ only in case or in Unicode normal form.
    #[error("{wanted:?} could be any of {}", twins.join(", "))]
    Twins {
        /// The real path of the directory that they are in.
        dir: String,
        /// The component.
        wanted: String,
        /// What is on disk.
        twins: Vec<String>,
    },
    /// Closed to every batch.
    #[error("{protection} ({real:?})")]
    Closed {
        /// The real path.
        real: String,
        /// Why.
        protection: Protection,
    },
    /// The system refuses to look.
    #[error("cannot look up {at:?}: {errno}")]
    System {
        /// The real path.
        at: String,
        /// The system's error.
        errno: Errno,
    },
}

/// What is wrong with a link.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum LinkFault {
    /// Its target begins at the root of the file system.
    #[error("has an absolute target")]
    Absolute,
    /// Its target lies outside.
    #[error("leads out of the root")]
    Outside,
    /// It leads nowhere.
    #[error("leads to something that does not exist")]
    Dangling,
    /// Too many links.
    #[error("is one of more than {MAX_LINKS} on the way to one file")]
    Loop,
    /// A target that no path can name.
    #[error("has a target that is not UTF-8")]
    NotUtf8,
}

impl ResolveError {
    /// The failure that the author of the edit gets.
    #[must_use]
    pub fn failure(&self) -> Failure {
        let invalid =
            |detail, hint: &str| Failure::new(Reason::InvalidPath, self.to_string()).detail(detail).hint(hint);
        match self {
            Self::UnknownRoot { .. } => {
                invalid(Detail::UnknownRoot, "begin the path with the name of one of the roots")
            }
            Self::RootAlone => invalid(Detail::Empty, "name a file in the root"),
            Self::Path(error) => invalid(error.detail(), "rename the file on disk first"),
            Self::Link { .. } => invalid(
                Detail::Symlink,
                "name the file itself, relative to the root; only links that stay in it are followed",
            ),
            Self::NotDirectory(_) => invalid(Detail::NotDirectory, "choose a path whose parents are directories"),
            Self::NotRegular { .. } => invalid(Detail::NotRegular, "choose the path of a regular file"),
            Self::CrossDevice(_) => invalid(Detail::CrossDevice, "open what is mounted there as a root of its own"),
            Self::Twins { wanted, twins, .. } => Failure::new(Reason::AmbiguousPath, self.to_string())
                .detail(twin_detail(wanted, twins))
                .hint("use the spelling that is on disk, or have one of the files renamed"),
            Self::Closed { protection, .. } => Failure::new(Reason::PolicyDenied, self.to_string())
                .detail(protection.detail())
                .hint("leave this file out of the batch; no answer opens it"),
            Self::System { errno, .. } => errno::read_failure(*errno, self.to_string()),
        }
    }
}

fn twin_detail(wanted: &str, twins: &[String]) -> Detail {
    let lower = wanted.to_lowercase();
    if twins.iter().all(|twin| twin.to_lowercase() == lower) { Detail::CaseCollision } else { Detail::NormCollision }
}
