//! The only place that writes: user files and Aptix's own state alike, relative to directories held open.
//!
//! Tests implement [`Disk`] as well: they stop after any operation, or make any one fail.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::{Advice, AtFlags, Dir, Gid, Mode, OFlags, RenameFlags, Uid, XattrFlags};
use rustix::io::{Errno, retry_on_intr};

use crate::workspace::fs::errno;

/// Every operation that changes something on disk. Names are single components of the directory.
///
/// Each method fails with the system's own error number and is retried when a signal interrupts it.
pub trait Disk: Send + Sync {
    /// Makes a new file that is open for writing; fails when the name is taken.
    fn create(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<OwnedFd, Errno>;
    /// Writes some of the bytes at the end of what was written before; returns how many.
    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno>;
    /// Gives an open file a group, and an owner where one is named.
    fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> Result<(), Errno>;
    /// Gives an open file its permission bits.
    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno>;
    /// Gives an open file an extended attribute.
    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno>;
    /// Makes an open file or directory durable.
    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno>;
    /// Exchanges what two names mean, in one step.
    fn exchange(&self, dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno>;
    /// Renames in one step, unless the new name is taken.
    fn rename_new(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno>;
    /// Renames, from one directory to another, in the place of whatever has the new name.
    fn rename(&self, dir: BorrowedFd<'_>, from: &str, to_dir: BorrowedFd<'_>, to: &str) -> Result<(), Errno>;
    /// Gives a file a second name; fails when that is taken.
    fn link(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno>;
    /// Takes away a file's name.
    fn unlink(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno>;
    /// Makes a directory.
    fn make_dir(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<(), Errno>;
    /// Takes away an empty directory.
    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno>;
    /// The time, which anybody may set. Nothing expires by it alone; across a restart of the system it counts for a little.
    #[expect(clippy::disallowed_methods, reason = "the one clock, which tests replace")]
    fn now(&self) -> SystemTime {
        SystemTime::now()
    }
    /// The time since the system was started, sleep included. No one can set it.
    fn uptime(&self) -> Duration {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::Boottime);
        Duration::new(u64::try_from(time.tv_sec).unwrap_or_default(), u32::try_from(time.tv_nsec).unwrap_or_default())
    }
    /// Opens a file of Aptix's own for reading and writing, and makes it if there is none.
    fn open_own(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno>;
    /// Writes some of the bytes at a place of an open file; returns how many.
    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno>;
    /// Cuts an open file to a length.
    fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<(), Errno>;
    /// Makes an open file's bytes durable.
    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<(), Errno>;
    /// Names the time since the system was started; empty where it is not known. What was not flushed outlives
    /// everything within it, and nothing beyond.
    fn boot(&self) -> String {
        static BOOT: OnceLock<String> = OnceLock::new();
        // Where it cannot be read, every record counts as made since the last start, and files are examined.
        let read = || std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default().trim().to_owned();
        BOOT.get_or_init(read).clone()
    }
}

/// The real disk.
#[derive(Clone, Copy, Debug)]
pub struct SystemDisk;

impl Disk for SystemDisk {
    fn create(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<OwnedFd, Errno> {
        let flags = OFlags::WRONLY | OFlags::CREATE | OFlags::EXCL | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(dir, name, flags, mode))
    }

    fn write(&self, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::write(file, bytes))
    }

    fn set_owner(&self, file: BorrowedFd<'_>, user: Option<u32>, group: u32) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fchown(file, user.map(Uid::from_raw), Some(Gid::from_raw(group))))
    }

    fn set_mode(&self, file: BorrowedFd<'_>, mode: Mode) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fchmod(file, mode))
    }

    fn set_xattr(&self, file: BorrowedFd<'_>, name: &[u8], value: &[u8]) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fsetxattr(file, name, value, XattrFlags::empty()))
    }

    fn sync(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fsync(file))
    }

    fn exchange(&self, dir: BorrowedFd<'_>, one: &str, other: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::renameat_with(dir, one, dir, other, RenameFlags::EXCHANGE))
    }

    fn rename_new(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::renameat_with(dir, from, dir, to, RenameFlags::NOREPLACE))
    }

    fn rename(&self, dir: BorrowedFd<'_>, from: &str, to_dir: BorrowedFd<'_>, to: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::renameat(dir, from, to_dir, to))
    }

    fn link(&self, dir: BorrowedFd<'_>, from: &str, to: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::linkat(dir, from, dir, to, AtFlags::empty()))
    }

    fn unlink(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::unlinkat(dir, name, AtFlags::empty()))
    }

    fn make_dir(&self, dir: BorrowedFd<'_>, name: &str, mode: Mode) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::mkdirat(dir, name, mode))
    }

    fn remove_dir(&self, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::unlinkat(dir, name, AtFlags::REMOVEDIR))
    }

    fn open_own(&self, dir: BorrowedFd<'_>, name: &str) -> Result<OwnedFd, Errno> {
        let flags = OFlags::RDWR | OFlags::CREATE | OFlags::NOFOLLOW | OFlags::CLOEXEC;
        retry_on_intr(|| rustix::fs::openat(dir, name, flags, Mode::RUSR | Mode::WUSR))
    }

    fn write_at(&self, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<usize, Errno> {
        retry_on_intr(|| rustix::io::pwrite(file, bytes, at))
    }

    fn truncate(&self, file: BorrowedFd<'_>, length: u64) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::ftruncate(file, length))
    }

    fn sync_data(&self, file: BorrowedFd<'_>) -> Result<(), Errno> {
        retry_on_intr(|| rustix::fs::fdatasync(file))
    }
}

/// Writes all the bytes, however few the system takes at a time.
pub(crate) fn write_all(disk: &dyn Disk, file: BorrowedFd<'_>, bytes: &[u8]) -> Result<(), Errno> {
    write_whole(bytes, |rest, _| disk.write(file, rest))
}

/// Writes all the bytes at a place, however few the system takes at a time.
pub(crate) fn write_all_at(disk: &dyn Disk, file: BorrowedFd<'_>, bytes: &[u8], at: u64) -> Result<(), Errno> {
    write_whole(bytes, |rest, written| disk.write_at(file, rest, at + written as u64))
}

fn write_whole(bytes: &[u8], mut write: impl FnMut(&[u8], usize) -> Result<usize, Errno>) -> Result<(), Errno> {
    let mut written = 0;
    while let Some(rest) = bytes.get(written..).filter(|rest| !rest.is_empty()) {
        match write(rest, written)? {
            0 => return Err(Errno::IO),
            count => written += count,
        }
    }
    Ok(())
}

/// How many files are made durable at the same time; more of them do not make a disk faster.
const FLUSHERS: usize = 8;

/// Makes open files durable, several at a time.
///
/// # Errors
/// The position of the first file that failed, and the system's error.
pub(crate) fn sync_all(disk: &dyn Disk, files: &[OwnedFd]) -> Result<(), (usize, Errno)> {
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(file) = files.get(index) else { return Ok(()) };
            disk.sync(file.as_fd()).map_err(|errno| (index, errno))?;
        }
    };
    if files.len() < 3 {
        // The first flush then takes along what the file system has to note for the others.
        files.iter().skip(1).for_each(|file| start_writing(file.as_fd()));
        return work();
    }
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..FLUSHERS.min(files.len())).map(|_| scope.spawn(work)).collect();
        let mine = work();
        // A thread that panics has flushed nothing that can be relied on.
        let theirs = helpers.into_iter().map(|helper| helper.join().unwrap_or(Err((0, Errno::IO))));
        theirs.chain([mine]).filter_map(Result::err).min_by_key(|(index, _)| *index).map_or(Ok(()), Err)
    })
}

/// Starts to write the bytes of an open file to disk, and waits for nothing. It is a hint: it makes nothing durable, and
/// [`Disk::sync`] reports every write that fails.
fn start_writing(file: BorrowedFd<'_>) {
    let _ = rustix::fs::fadvise(file, 0, None, Advice::DontNeed);
}

/// Makes an open directory's entries durable; the descriptor may be one that only names the directory.
pub(crate) fn sync_dir(disk: &dyn Disk, dir: BorrowedFd<'_>) -> Result<(), Errno> {
    let readable = open_readable(dir)?;
    disk.sync(readable.as_fd())
}

/// Opens a directory that is held by name only, so that it can be listed and made durable.
pub(crate) fn open_readable(dir: BorrowedFd<'_>) -> Result<OwnedFd, Errno> {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::CLOEXEC;
    retry_on_intr(|| rustix::fs::openat(dir, ".", flags, Mode::empty()))
}

/// The names in a directory, in order, without `.`, `..` and names that are not UTF-8, which no path can have.
pub(crate) fn names(dir: BorrowedFd<'_>) -> Result<Vec<String>, Errno> {
    let mut names = Vec::new();
    for entry in Dir::new(open_readable(dir)?)? {
        let entry = entry?;
        names.extend(entry.file_name().to_str().ok().filter(|name| !matches!(*name, "." | "..")).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

/// Takes away a name that may already be gone.
pub(crate) fn unlink_if_there(disk: &dyn Disk, dir: BorrowedFd<'_>, name: &str) -> Result<(), Errno> {
    errno::optional(disk.unlink(dir, name)).map(drop)
}

/// Makes a directory of Aptix's own and those above it, open to their owner alone.
pub(crate) fn private_dir(path: &Path) -> Result<(), std::io::Error> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Opens a lock file, making it if need be.
#[expect(clippy::disallowed_types, reason = "this is the one place that writes")]
pub(crate) fn lock_file(path: &Path) -> Result<std::fs::File, std::io::Error> {
    use std::os::unix::fs::OpenOptionsExt;
    std::fs::OpenOptions::new().write(true).create(true).truncate(false).mode(0o600).open(path)
}

/// Puts a text into a lock file, in the place of the one before.
pub(crate) fn set_lock_text(file: &std::fs::File, text: &[u8]) -> Result<(), std::io::Error> {
    file.set_len(0)?;
    std::os::unix::fs::FileExt::write_all_at(file, text, 0)
}

/// A name for something that happens at a time; greater for a later time.
pub(crate) fn entry_name(time: SystemTime) -> uuid::Uuid {
    let since = time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    let stamp = uuid::Timestamp::from_unix(uuid::NoContext, since.as_secs(), since.subsec_nanos());
    uuid::Uuid::new_v7(stamp)
}

/// Thirty-two random hexadecimal digits.
#[expect(clippy::disallowed_methods, reason = "the name of a staged file must not be predictable")]
pub(crate) fn random_digits() -> String {
    uuid::Uuid::new_v4().simple().to_string()
}
