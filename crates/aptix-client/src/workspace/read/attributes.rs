//! What a file has besides its bytes: mode, owner, extended attributes and flags.

use std::os::fd::{AsFd, BorrowedFd};

use rustix::fs::{IFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use crate::workspace::read::file_stamp::RUN_BY_OWNER;
use crate::workspace::read::regular;

/// Attributes that depend on the bytes, and would be wrong or dangerous beside other bytes.
const OF_THE_BYTES: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// What a file has besides its bytes, and a new one in its place has to have as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    /// The permission bits.
    pub(crate) mode: u32,
    pub(crate) user: u32,
    pub(crate) group: u32,
    /// The extended attributes, access lists among them, in the order of their names.
    pub(crate) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Attributes {
    /// The permission bits of a file that is made executable, by all who may read it, or not executable, by nobody.
    pub(crate) const fn mode_that_runs(&self, executable: bool) -> u32 {
        match (executable, self.is_executable()) {
            (true, false) => self.mode | ((self.mode & 0o444) >> 2),
            (false, true) => self.mode & !0o111,
            (true, true) | (false, false) => self.mode,
        }
    }

    /// Whether the owner could run it once it is made executable, or not executable.
    pub(crate) const fn would_run(&self, executable: bool) -> bool {
        self.mode_that_runs(executable) & RUN_BY_OWNER != 0
    }

    /// Whether the owner may run it.
    pub(crate) const fn is_executable(&self) -> bool {
        self.mode & RUN_BY_OWNER != 0
    }

    pub(crate) fn of(file: BorrowedFd<'_>, stat: &Stat) -> Self {
        Self { mode: stat.st_mode & 0o7777, user: stat.st_uid, group: stat.st_gid, xattrs: read_xattrs(file) }
    }
}

/// What a name of a directory has besides its bytes; `None` when there is no regular file.
pub(crate) fn attributes(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Attributes>, Errno> {
    Ok(regular::open(dir, name)?.map(|(file, stat)| Attributes::of(file.as_fd(), &stat)))
}

/// Whether a file or directory is closed to renaming, as far as its file system reports.
pub(crate) fn is_immutable(file: BorrowedFd<'_>) -> bool {
    rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND))
}

/// The attributes that can be read; file systems without any have none.
fn read_xattrs(file: BorrowedFd<'_>) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut names = vec![0; 256];
    let mut listed = rustix::fs::flistxattr(file, names.as_mut_slice());
    if listed == Err(Errno::RANGE) {
        names.resize(rustix::fs::flistxattr_query(file).unwrap_or(0), 0);
        listed = rustix::fs::flistxattr(file, names.as_mut_slice());
    }
    let Ok(length) = listed else { return Vec::new() };
    names.truncate(length);
    let mut found = Vec::new();
    for name in names.split(|byte| *byte == 0).filter(|name| !name.is_empty() && !OF_THE_BYTES.contains(name)) {
        let mut value = vec![0; rustix::fs::fgetxattr_query(file, name).unwrap_or(0)];
        if let Ok(length) = rustix::fs::fgetxattr(file, name, value.as_mut_slice()) {
            value.truncate(length);
            found.push((name.to_owned(), value));
        }
    }
    found.sort();
    found
}
