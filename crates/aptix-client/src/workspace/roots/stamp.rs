//! Which file or directory it is, and when it was last changed: while this stays the same for a directory, so do its names.

use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use rustix::io::Errno;
use serde::{Deserialize, Serialize};

/// Inode and change time, in seconds and nanoseconds. No process can set the change time: a copy has another stamp.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(crate) struct Stamp(u64, i64, u64);

impl Stamp {
    /// Of an open file or directory as it is now.
    pub(crate) fn of(file: &OwnedFd) -> Result<Self, Errno> {
        let stat = rustix::fs::fstat(file)?;
        Ok(Self(stat.st_ino, stat.st_ctime, stat.st_ctime_nsec))
    }

    /// Of what has a path.
    pub(crate) fn at(path: &Path) -> Result<Self, std::io::Error> {
        let metadata = path.metadata()?;
        Ok(Self(metadata.ino(), metadata.ctime(), u64::try_from(metadata.ctime_nsec()).unwrap_or_default()))
    }
}
