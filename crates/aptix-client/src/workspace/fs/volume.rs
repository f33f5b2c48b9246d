//! What a file system has left, and which access this process has to a directory. Reads only.

use std::io;
use std::path::Path;

use rustix::fs::{Access, AtFlags, CWD};

/// What a file system has left for this user.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Room {
    /// Free bytes.
    pub(crate) bytes: u64,
    /// Whether it can hold another file. True where the file system does not count its files.
    pub(crate) has_files_left: bool,
}

/// The room on the file system that holds a path.
///
/// # Errors
/// The path does not exist, or the system refuses.
pub(crate) fn room(path: &Path) -> io::Result<Room> {
    let volume = rustix::fs::statvfs(path)?;
    Ok(Room {
        bytes: volume.f_bavail.saturating_mul(volume.f_frsize),
        has_files_left: volume.f_files == 0 || volume.f_favail > 0,
    })
}

/// Checks that this process may list a directory and open what is in it.
///
/// # Errors
/// The system's reason why not.
pub(crate) fn check_readable(dir: &Path) -> io::Result<()> {
    check(dir, Access::READ_OK | Access::EXEC_OK)
}

/// Checks that this process may create, rename and remove entries of a directory.
///
/// # Errors
/// The system's reason why not, also where the file system is mounted read-only.
pub(crate) fn check_writable(dir: &Path) -> io::Result<()> {
    check(dir, Access::WRITE_OK | Access::EXEC_OK)
}

fn check(dir: &Path, access: Access) -> io::Result<()> {
    Ok(rustix::fs::accessat(CWD, dir, access, AtFlags::EACCESS)?)
}
