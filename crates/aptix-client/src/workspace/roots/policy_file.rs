//! Policy files on disk: the user's own, which no other user may have written, and that of a root.

use std::fs::{File, Metadata};
use std::io::ErrorKind;
use std::os::fd::AsFd;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;
use rustix::io::Errno;

use crate::workspace::fs::disk::Disk;
use crate::workspace::fs::shell_word::shell_word;
use crate::workspace::fs::{beneath, disk, errno, reads};
use crate::workspace::roots::own_file;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

/// Bytes of a policy file.
const LIMIT: u64 = 256 << 10;
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
    /// The system refuses to write it.
    #[error("it cannot be written: {0}")]
    Write(std::io::Error),
    /// It is a link to where Aptix does not write.
    #[error("it is a link to {}, and Aptix writes only in its own directories and in roots", .0.display())]
    Elsewhere(PathBuf),
    /// It belongs to another user, who could have written it.
    #[error("{} belongs to the user with the id {found}, expected {own}, who runs this", path.display())]
    Owner {
        /// The file, or its directory.
        path: PathBuf,
        /// Whose it is.
        found: u32,
        /// Whose it should be.
        own: u32,
    },
    /// Others could have written it, or read it.
    #[error("{} has the mode {found:04o}, expected {expected}", path.display())]
    Mode {
        /// The file, or its directory.
        path: PathBuf,
        /// The mode it has.
        found: u32,
        /// Modes that it may have.
        expected: &'static str,
        /// The command that gives it such a mode.
        mending: String,
    },
    /// Too many bytes.
    #[error("it has more than {LIMIT} bytes")]
    TooLarge,
}

impl From<Errno> for PolicyFileError {
    fn from(errno: Errno) -> Self {
        Self::System(errno.into())
    }
}

/// Who may read a file of the user's.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Readers {
    /// Whoever the umask lets.
    Any,
    /// Its owner alone: it holds a secret.
    Owner,
}

impl Readers {
    const fn refused(self) -> Refused {
        match self {
            Self::Any => {
                Refused { bits: 0o022, expected: "0644 or less, so that no other user writes it", chmod: "go-w" }
            }
            Self::Owner => Refused { bits: 0o077, expected: "0600, so that it is yours alone", chmod: "go=" },
        }
    }
}

/// Bits that a mode must not have.
struct Refused {
    bits: u32,
    /// The modes that are possible instead.
    expected: &'static str,
    /// The argument of `chmod` that clears the bits.
    chmod: &'static str,
}

/// Reads a file of the user's own, such as their policy; nothing where there is none.
///
/// # Errors
/// It is there and cannot be read, others can write it or its directory, or read it although they may not.
#[expect(clippy::disallowed_types, reason = "a file is opened for reading that may have become a FIFO")]
pub(crate) fn of_person(path: &Path, readers: Readers) -> Result<Option<Vec<u8>>, PolicyFileError> {
    let flags = i32::try_from((OFlags::NONBLOCK | OFlags::NOCTTY).bits()).unwrap_or_default();
    let file = match std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path) {
        // A link that leads nowhere is a file that is missing.
        Err(error) if error.kind() == ErrorKind::NotFound && path.symlink_metadata().is_err() => return Ok(None),
        opened => opened.map_err(PolicyFileError::System)?,
    };
    let metadata = file.metadata().map_err(PolicyFileError::System)?;
    let own = rustix::process::geteuid().as_raw();
    refuse_open(path, &metadata, own, readers.refused())?;
    if let Some(directory) = path.parent() {
        let metadata = directory.metadata().map_err(PolicyFileError::System)?;
        let expected = "0755 or less, so that no other user writes in it";
        refuse_open(directory, &metadata, own, Refused { bits: 0o022, expected, chmod: "go-w" })?;
    }
    read(file).map(Some)
}

/// Refuses what belongs to another user, or has any of the bits of a mode.
fn refuse_open(path: &Path, metadata: &Metadata, own: u32, refused: Refused) -> Result<(), PolicyFileError> {
    let (path, mode, found) = (path.to_owned(), metadata.mode() & 0o7777, metadata.uid());
    if found != own {
        return Err(PolicyFileError::Owner { path, found, own });
    }
    if mode & refused.bits != 0 {
        let mending = format!("chmod {} {}", refused.chmod, shell_word(&path));
        return Err(PolicyFileError::Mode { path, found: mode, expected: refused.expected, mending });
    }
    Ok(())
}

/// Reads the user's own policy file and writes it anew, while no other process does: what each of them adds is kept.
///
/// # Errors
/// The system refuses, or what `change` refuses.
pub(crate) fn change_of_person<E: From<PolicyFileError>>(
    workspace: &Workspace,
    path: &Path,
    change: impl FnOnce(Vec<u8>) -> Result<Vec<u8>, E>,
) -> Result<(), E> {
    let lock = workspace.primary().state().lock_shared();
    let _lock = lock.map_err(|error| PolicyFileError::Write(error.errno().into()))?;
    let text = change(of_person(path, Readers::Any)?.unwrap_or_default())?;
    Ok(put_of_person(workspace, path, &text)?)
}

/// Makes the user's own policy file; answers whether there was none.
///
/// # Errors
/// The system refuses.
pub(crate) fn make_of_person(disk: &dyn Disk, path: &Path, bytes: &[u8]) -> Result<bool, PolicyFileError> {
    let (Some(directory), Some(name)) = (path.parent(), path.file_name().and_then(|name| name.to_str())) else {
        return Err(PolicyFileError::NotRegular);
    };
    // A link that leads nowhere is there, too: it is not for us to decide where it should lead.
    if path.symlink_metadata().is_ok() {
        return Ok(false);
    }
    disk::private_dir(directory).map_err(PolicyFileError::Write)?;
    let held = beneath::open_held(directory).map_err(PolicyFileError::Write)?;
    match own_file::make(disk, held.as_fd(), name, bytes) {
        Ok(()) => Ok(true),
        Err(Errno::EXIST) => Ok(false),
        Err(errno) => Err(PolicyFileError::Write(errno.into())),
    }
}

/// Writes the user's own policy file anew, in its real place if it is a link.
fn put_of_person(workspace: &Workspace, path: &Path, bytes: &[u8]) -> Result<(), PolicyFileError> {
    let place = path.canonicalize().unwrap_or_else(|_| path.to_owned());
    let (Some(directory), Some(name)) = (place.parent(), place.file_name().and_then(|name| name.to_str())) else {
        return Err(PolicyFileError::NotRegular);
    };
    disk::private_dir(directory).map_err(PolicyFileError::Write)?;
    let held = beneath::open_held(directory).map_err(PolicyFileError::Write)?;
    // What a process that died has left; where it cannot be removed, it stays, and nothing reads it.
    let _ = own_file::sweep(workspace.disk(), held.as_fd());
    own_file::replace(workspace.disk(), held.as_fd(), held.as_fd(), name, bytes).map_err(|errno| {
        let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
        match errno {
            Errno::ACCESS | Errno::PERM if is_link => PolicyFileError::Elsewhere(place.clone()),
            errno => PolicyFileError::Write(errno.into()),
        }
    })
}

/// Reads the policy file of a root, beneath it and through no link; nothing where there is none.
///
/// # Errors
/// It is there and cannot be read.
pub(crate) fn of_root(root: &Root) -> Result<Option<Vec<u8>>, PolicyFileError> {
    let opened = beneath::open_dir(root.dir(), IN_ROOT.0).and_then(|dir| beneath::open_file(dir.as_fd(), IN_ROOT.1));
    errno::optional(opened)?.map(|file| read(file.into())).transpose()
}

/// The path of the policy file of a root.
pub(crate) fn place_in(root: &Root) -> PathBuf {
    root.path().join(IN_ROOT.0).join(IN_ROOT.1)
}

fn read(file: File) -> Result<Vec<u8>, PolicyFileError> {
    if !file.metadata().map_err(PolicyFileError::System)?.is_file() {
        return Err(PolicyFileError::NotRegular);
    }
    let bytes = reads::read_rest(file.into(), LIMIT + 1)?;
    if bytes.len() as u64 > LIMIT { Err(PolicyFileError::TooLarge) } else { Ok(bytes) }
}
