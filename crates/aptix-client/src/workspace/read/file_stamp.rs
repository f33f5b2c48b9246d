//! File stamps: which file it is, and when it was last touched.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::Stat;
use serde::{Deserialize, Serialize};

/// Longer than any step of a file system's clock.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// The bit by which a file counts as executable, as in git.
pub(crate) const RUN_BY_OWNER: u32 = 0o100;

/// Which file it is, and when it was last touched: while this stays the same, so do the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct FileStamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl FileStamp {
    pub(crate) fn of(stat: &Stat) -> Self {
        Self {
            device: stat.st_dev,
            inode: stat.st_ino,
            mode: stat.st_mode,
            size: stat.st_size,
            modified: (stat.st_mtime, stat.st_mtime_nsec),
            changed: (stat.st_ctime, stat.st_ctime_nsec),
        }
    }

    /// Whether both are of one file, whenever it was touched.
    pub(crate) const fn is_same_file(self, other: Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }

    /// Whether no process wrote to the file in between, as far as stamps show: renaming changes neither.
    pub(crate) fn has_content_of(self, other: Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    /// Whether the bytes are older than a step of the file system's clock: a later write then shows.
    pub(crate) fn is_settled(self, now: SystemTime) -> bool {
        self.is_older(CLOCK_STEP, now)
    }

    /// Whether the last write was at least so long ago. A time to come shows nothing.
    pub(crate) fn is_older(self, than: Duration, now: SystemTime) -> bool {
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(self.modified.0), u32::try_from(self.modified.1)) else {
            return false;
        };
        now.duration_since(UNIX_EPOCH + Duration::new(seconds, nanos)).is_ok_and(|age| age >= than)
    }

    /// Whether its owner may run it.
    pub(crate) const fn is_executable(self) -> bool {
        self.mode & RUN_BY_OWNER != 0
    }
}
