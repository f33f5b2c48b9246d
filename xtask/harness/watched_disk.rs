//! The real disk with a function that sees every operation, and may let it fail or leave it out.

use std::fmt;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

use aptix_client::workspace::fs::disk::{Disk, SystemDisk};
use rustix::fs::Mode;
use rustix::io::Errno;

/// An operation that is about to happen.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Operation<'a> {
    /// The bytes of a file, or a directory, become durable.
    Sync(BorrowedFd<'a>),
    /// A file is made in a directory.
    Create(BorrowedFd<'a>),
    /// Two names of a directory are exchanged.
    Exchange(BorrowedFd<'a>, &'a str, &'a str),
    /// A name of the first directory becomes one of the second.
    Rename(BorrowedFd<'a>, &'a str, BorrowedFd<'a>),
    /// Bytes are written to a file, from an offset on.
    WriteAt(u64),
    /// Anything else.
    Other,
}

/// What becomes of an operation.
#[derive(Debug)]
pub(crate) enum Verdict {
    /// It happens.
    Pass,
    /// It fails; of what was to be written a part is written all the same, as on a real disk.
    Fail(Errno),
    /// It does not happen, and reports success.
    Skip,
    /// The file is made in another directory.
    In(OwnedFd),
    /// The bytes are written from another offset on.
    At(u64),
}

/// The real disk, watched.
pub(crate) struct Watched<W> {
    watch: W,
    boot: String,
    later: Duration,
}

impl<W: Fn(Operation<'_>) -> Verdict + Send + Sync> Watched<W> {
    /// Lets every operation be judged.
    pub(crate) fn new(watch: W) -> Self {
        Self { watch, boot: SystemDisk.boot(), later: Duration::ZERO }
    }

    /// The disk of a system that was started at another time.
    pub(crate) fn booted(self, boot: impl fmt::Display) -> Self {
        Self { boot: boot.to_string(), ..self }
    }

    /// The disk after some time.
    pub(crate) fn later(self, later: Duration) -> Self {
        Self { later, ..self }
    }

    fn judge(&self, operation: Operation<'_>, real: impl FnOnce() -> Result<(), Errno>) -> Result<(), Errno> {
        match (self.watch)(operation) {
            Verdict::Pass | Verdict::In(_) | Verdict::At(_) => real(),
            Verdict::Fail(errno) => Err(errno),
            Verdict::Skip => Ok(()),
        }
    }
}

impl<W: Fn(Operation<'_>) -> Verdict + Send + Sync> Disk for Watched<W> {
    fn create(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<OwnedFd, Errno> {
        match (self.watch)(Operation::Create(dir)) {
            Verdict::Fail(errno) => Err(errno),
            Verdict::In(other) => SystemDisk.create(other.as_fd(), name, mode),
            Verdict::Pass | Verdict::Skip | Verdict::At(_) => SystemDisk.create(dir, name, mode),
        }
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        let half = bytes.get(..bytes.len().div_ceil(2)).unwrap_or_default();
        match (self.watch)(Operation::Other) {
            Verdict::Pass | Verdict::In(_) | Verdict::At(_) => SystemDisk.write(file, bytes),
            Verdict::Fail(errno) => SystemDisk.write(file, half).and(Err(errno)),
            Verdict::Skip => Ok(bytes.len()),
        }
    }

    fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.set_owner(file, user, group))
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.set_mode(file, mode))
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.set_xattr(file, name, value))
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.judge(Operation::Sync(file), || SystemDisk.sync(file))
    }

    fn exchange(&self, dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno> {
        self.judge(Operation::Exchange(dir, one, other), || SystemDisk.exchange(dir, one, other))
    }

    fn rename_new(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.rename_new(dir, from, to))
    }

    fn rename(&self, dir: BorrowedFd<'_>, from: &str, to_dir: BorrowedFd<'_>, to: &str) -> Result<(), Errno> {
        self.judge(Operation::Rename(dir, from, to_dir), || SystemDisk.rename(dir, from, to_dir, to))
    }

    fn link(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.link(dir, from, to))
    }

    fn unlink(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.unlink(dir, name))
    }

    fn make_dir(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.make_dir(dir, name, mode))
    }

    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.remove_dir(dir, name))
    }

    fn open_own(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
        self.judge(Operation::Other, || Ok(()))?;
        SystemDisk.open_own(dir, name)
    }

    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        let half = bytes.get(..bytes.len().div_ceil(2)).unwrap_or_default();
        match (self.watch)(Operation::WriteAt(at)) {
            Verdict::Pass | Verdict::In(_) => SystemDisk.write_at(file, bytes, at),
            Verdict::At(other) => SystemDisk.write_at(file, bytes, other),
            Verdict::Fail(errno) => SystemDisk.write_at(file, half, at).and(Err(errno)),
            Verdict::Skip => Ok(bytes.len()),
        }
    }

    fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<(), Errno> {
        self.judge(Operation::Other, || SystemDisk.truncate(file, length))
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        self.judge(Operation::Sync(file), || SystemDisk.sync_data(file))
    }

    fn uptime(&self) -> Duration {
        SystemDisk.uptime() + self.later
    }

    fn boot(&self) -> String {
        self.boot.clone()
    }
}
