//! Policy files as they are on disk: the person's own, which nobody else may have written, and that of a root.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;

use rustix::fs::OFlags;
use rustix::io::Errno;

use super::root::{self, Root};
use super::{Workspace, beneath, disk, journal};

/// Bytes of a policy file.
const LIMIT: u64 = 1 << 20;
/// Where a root has its policy, in its own directory.
const IN_ROOT: (&str, &str) = (".aptix", "policy.toml");

/// Why a policy file cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    /// The system refuses to read it.
    #[error("it cannot be read: {0}")]
    System(std::io::Error),
    /// It is something else than a file.
    #[error("it is not a regular file")]
    NotRegular,
    /// Somebody else could have written it, or reads it.
    #[error("it, or its directory, is open to others or belongs to somebody else")]
    Open,
    /// Too many bytes.
    #[error("it has more than {LIMIT} bytes")]
    TooLarge,
}

impl From<Errno> for PolicyFileError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// Reads a person's own policy file; nothing where there is none.
///
/// # Errors
/// It is there and cannot be read, or others can write it, its directory, or read it.
#[expect(clippy::disallowed_types, reason = "a file is opened for reading that may have become a FIFO")]
pub(crate) fn of_person(path: &Path) -> Result<Option<Vec<u8>>, PolicyFileError> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // A link that leads nowhere is a file that is missing.
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
        opened => opened.map_err(PolicyFileError::System)?,
    };
    let metadata = file.metadata().map_err(PolicyFileError::System)?;
    let own = rustix::process::geteuid().as_raw();
    let directory = path.parent().map(std::fs::metadata).transpose().map_err(PolicyFileError::System)?;
    let is_directory_own = directory.is_none_or(|dir| dir.uid() == own && dir.mode() & 0o022 == 0);
    if metadata.uid() != own || metadata.mode() & 0o077 != 0 || !is_directory_own {
        return Err(PolicyFileError::Open);
    }
    read(file).map(Some)
}

/// Writes a person's own policy file anew, in its real place if it is a link.
///
/// # Errors
/// The system refuses.
pub(crate) fn put_of_person(workspace: &Workspace, path: &Path, bytes: &[u8]) -> Result<(), PolicyFileError> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (Some(directory), Some(name)) = (place.parent(), place.file_name().and_then(|name| name.to_str())) else {
        return Err(PolicyFileError::NotRegular);
    };
    disk::private_dir(directory).map_err(PolicyFileError::System)?;
    let held = root::open_held(directory).map_err(PolicyFileError::System)?;
    Ok(journal::put_durably(workspace.disk(), &held, name, bytes)?)
}

/// Reads the policy file of a root, beneath it and through no link; nothing where there is none.
///
/// # Errors
/// It is there and cannot be read.
pub(crate) fn of_root(root: &Root) -> Result<Option<Vec<u8>>, PolicyFileError> {
    let opened = beneath::open_dir(root.dir(), IN_ROOT.0).and_then(|dir| beneath::open_file(dir.as_fd(), IN_ROOT.1));
    match opened {
        Err(Errno::NOENT) => Ok(None),
        opened => read(opened?.into()).map(Some),
    }
}

/// Where the policy file of a root is, to be told.
pub(crate) fn place_in(root: &Root) -> std::path::PathBuf {
    root.path().join(IN_ROOT.0).join(IN_ROOT.1)
}

fn read(file: File) -> Result<Vec<u8>, PolicyFileError> {
    if !file.metadata().map_err(PolicyFileError::System)?.is_file() {
        return Err(PolicyFileError::NotRegular);
    }
    let mut bytes = Vec::new();
    file.take(LIMIT + 1).read_to_end(&mut bytes).map_err(PolicyFileError::System)?;
    if bytes.len() as u64 > LIMIT { Err(PolicyFileError::TooLarge) } else { Ok(bytes) }
}
