//! Reads the files of a batch: their bytes, and what a new file in their place has to have as well.

use std::io::Read;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, IFlags, Stat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::workspace::Workspace;
use crate::workspace::fs::{beneath, errno};
use crate::workspace::read::listing::Listings;
use crate::workspace::read::resolve::{Place, ResolveError};

/// Attributes that speak of the bytes themselves, and would be wrong or dangerous beside other bytes.
const OF_THE_BYTES: [&[u8]; 3] = [b"security.capability", b"security.ima", b"security.evm"];

/// Longer than any step in which a file system tells the time.
const CLOCK_STEP: Duration = Duration::from_secs(2);

/// A file as it was read.
#[derive(Clone, Debug)]
pub struct Original {
    /// All its bytes.
    pub bytes: Vec<u8>,
    /// How many names it has.
    pub links: usize,
    pub(in crate::workspace) attributes: Attributes,
    /// Whether the system would refuse to replace it.
    pub(in crate::workspace) immutable: bool,
    /// What would show that somebody touched it since.
    pub(in crate::workspace) stamp: Stamp,
}

impl Original {
    /// Whether its owner may run it.
    #[must_use]
    pub const fn is_executable(&self) -> bool {
        self.attributes.is_executable()
    }

    /// Whether its owner could run it if those who may read it should be able to, or if nobody should.
    pub(in crate::workspace) const fn would_run(&self, executable: bool) -> bool {
        self.attributes.would_run(executable)
    }

    /// Whether it runs with the rights of its owner or group, whoever starts it.
    #[must_use]
    pub const fn is_setuid(&self) -> bool {
        self.attributes.mode & 0o6000 != 0
    }
}

/// Which file it is, and when it was last touched: while this stays the same, so do the bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::workspace) struct Stamp {
    device: u64,
    inode: u64,
    mode: u32,
    size: i64,
    modified: (i64, u64),
    changed: (i64, u64),
}

impl Stamp {
    pub(in crate::workspace) fn of(stat: &Stat) -> Self {
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
    pub(in crate::workspace) const fn is_same_file(self, other: Self) -> bool {
        self.device == other.device && self.inode == other.inode
    }

    /// Whether nobody wrote to the file in between, as far as stamps show: another name leaves it as it is.
    pub(in crate::workspace) fn has_content_of(self, other: Self) -> bool {
        self.is_same_file(other) && (self.size, self.modified) == (other.size, other.modified)
    }

    /// Whether the bytes are older than the steps in which file systems tell the time: a later write then shows.
    pub(in crate::workspace) fn is_settled(self, now: SystemTime) -> bool {
        self.is_older(CLOCK_STEP, now)
    }

    /// Whether the last write was at least so long ago. A time to come shows nothing.
    pub(in crate::workspace) fn is_older(self, than: Duration, now: SystemTime) -> bool {
        let (Ok(seconds), Ok(nanos)) = (u64::try_from(self.modified.0), u32::try_from(self.modified.1)) else {
            return false;
        };
        now.duration_since(UNIX_EPOCH + Duration::new(seconds, nanos)).is_ok_and(|age| age >= than)
    }

    /// Whether its owner may run it.
    pub(in crate::workspace) const fn is_executable(self) -> bool {
        self.mode & Attributes::RUN_BY_OWNER != 0
    }
}

/// What a file has besides its bytes, and a new one in its place has to have as well.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attributes {
    /// The permission bits.
    pub(in crate::workspace) mode: u32,
    pub(in crate::workspace) user: u32,
    pub(in crate::workspace) group: u32,
    /// The extended attributes, access lists among them, in the order of their names.
    pub(in crate::workspace) xattrs: Vec<(Vec<u8>, Vec<u8>)>,
}

impl Attributes {
    /// The bit by which a file is told to be executable, as git tells it.
    const RUN_BY_OWNER: u32 = 0o100;

    /// The permission bits of a file that can be run, or cannot: whoever may read it may run it, or nobody may.
    pub(in crate::workspace) const fn mode_that_runs(&self, executable: bool) -> u32 {
        match (executable, self.is_executable()) {
            (true, false) => self.mode | ((self.mode & 0o444) >> 2),
            (false, true) => self.mode & !0o111,
            (true, true) | (false, false) => self.mode,
        }
    }

    /// Whether the owner could run it if those who may read it should be able to, or if nobody should.
    pub(in crate::workspace) const fn would_run(&self, executable: bool) -> bool {
        self.mode_that_runs(executable) & Self::RUN_BY_OWNER != 0
    }

    /// Whether the owner may run it.
    pub(in crate::workspace) const fn is_executable(&self) -> bool {
        self.mode & Self::RUN_BY_OWNER != 0
    }

    fn of(file: BorrowedFd<'_>, stat: &Stat) -> Self {
        Self { mode: stat.st_mode & 0o7777, user: stat.st_uid, group: stat.st_gid, xattrs: read_xattrs(file) }
    }
}

/// Why a file cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// It, or its directory, became something else since it was resolved.
    #[error(transparent)]
    Resolve(#[from] ResolveError),
    /// Too many bytes.
    #[error("the file has more than {limit} bytes, which is the most that are edited")]
    TooLarge {
        /// How many it may have.
        limit: u64,
    },
    /// Too many bytes, with those of the files before it.
    #[error("the files of the batch have more than {limit} bytes together, counting up to this one")]
    BatchTooLarge {
        /// How many they may have.
        limit: u64,
    },
    /// The system refuses.
    #[error("cannot read the file: {0}")]
    System(Errno),
}

impl ReadError {
    /// Tells it to the author of the edit.
    #[must_use]
    pub fn failure(&self) -> Failure {
        match self {
            Self::Resolve(error) => error.failure(),
            Self::TooLarge { .. } => Failure::new(Reason::TooLarge, self.to_string())
                .detail(Detail::File)
                .hint("leave the file out; a person can raise `file_bytes` of `[limits]` in the policy file"),
            Self::BatchTooLarge { .. } => Failure::new(Reason::TooLarge, self.to_string())
                .detail(Detail::Files)
                .hint("split the batch: send the changes of these files in several batches"),
            Self::System(errno) => errno::read_failure(*errno, self.to_string()),
        }
    }
}

/// Reads the file at a place; `None` when there is none.
///
/// # Errors
/// When it is too large, no longer a regular file, or the system refuses.
pub fn read(
    workspace: &Workspace,
    listings: &mut Listings,
    place: &Place,
    limit: u64,
) -> Result<Option<Original>, ReadError> {
    let Some(root) = workspace.root(place.root).filter(|_| place.found.is_some()) else { return Ok(None) };
    let at = || place.real();
    let dir = listings.open((place.root, root), &place.dir);
    let opened = dir.and_then(|dir| beneath::open_file(dir.as_fd(), &place.name));
    let file = match opened {
        Ok(file) => file,
        Err(Errno::NOENT) => return Ok(None),
        Err(Errno::XDEV) => return Err(ResolveError::CrossDevice { at: at() }.into()),
        Err(Errno::LOOP) => return Err(ResolveError::NotRegular { kind: "a link" }.into()),
        Err(Errno::NXIO) => return Err(ResolveError::NotRegular { kind: "a socket or a device" }.into()),
        Err(errno) => return Err(ReadError::System(errno)),
    };
    let stat = rustix::fs::fstat(&file).map_err(ReadError::System)?;
    if FileType::from_raw_mode(stat.st_mode) != FileType::RegularFile {
        return Err(ResolveError::NotRegular { kind: "no regular file any more" }.into());
    }
    let size = told_size(&stat);
    if size > limit {
        return Err(ReadError::TooLarge { limit });
    }
    let attributes = Attributes::of(file.as_fd(), &stat);
    let immutable = is_immutable(file.as_fd());
    let bytes = read_all(file, size, limit).map_err(ReadError::System)?;
    if bytes.len() as u64 > limit {
        return Err(ReadError::TooLarge { limit });
    }
    Ok(Some(Original {
        bytes,
        links: usize::try_from(stat.st_nlink).unwrap_or(usize::MAX),
        attributes,
        immutable,
        stamp: Stamp::of(&stat),
    }))
}

/// How large a file says it is. That need not be so: some grow, and some are made up by the system as they are read.
fn told_size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Whether a file ends with the bytes that were just read: there was room for more, and with these it has as many as it
/// says. Any other one ends where nothing more can be read.
const fn is_all(count: usize, room: usize, so_far: u64, size: u64) -> bool {
    count == 0 || (count < room && so_far == size)
}

/// The bytes of a file of which nothing was read yet, as far as one more than `limit`, in one call if it has as many as
/// it says.
fn read_all(file: OwnedFd, size: u64, limit: u64) -> Result<Vec<u8>, Errno> {
    let mut bytes = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1));
    let room = bytes.capacity();
    let count = match rustix::io::read(&file, spare_capacity(&mut bytes)) {
        Ok(count) if is_all(count, room, count as u64, size) => return Ok(bytes),
        Ok(count) => count,
        Err(Errno::INTR) => 0,
        Err(errno) => return Err(errno),
    };
    let rest =
        std::fs::File::from(file).take(limit.saturating_add(1).saturating_sub(count as u64)).read_to_end(&mut bytes);
    rest.map(|_| bytes).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

/// Whether a file or directory is closed to renaming, as far as its file system tells.
pub(in crate::workspace) fn is_immutable(file: BorrowedFd<'_>) -> bool {
    rustix::fs::ioctl_getflags(file).is_ok_and(|flags| flags.intersects(IFlags::IMMUTABLE | IFlags::APPEND))
}

/// Opens what has a name in a directory, if that is a regular file.
fn open_regular(dir: BorrowedFd<'_>, name: &str) -> Result<Option<(OwnedFd, Stat)>, Errno> {
    let file = match beneath::open_file(dir, name) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let stat = rustix::fs::fstat(&file)?;
    Ok((FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((file, stat)))
}

/// The digest of what a name of a directory holds now, and its stamp; `None` when there is no regular file.
///
/// # Errors
/// When the system refuses to read.
pub(in crate::workspace) fn digest(dir: BorrowedFd<'_>, name: &str) -> Result<Option<(Sha256Digest, Stamp)>, Errno> {
    let Some((file, stat)) = open_regular(dir, name)? else { return Ok(None) };
    Ok(Some((digest_of(file.as_fd())?, Stamp::of(&stat))))
}

/// The digest of what an open file holds now.
///
/// # Errors
/// When the system refuses to read.
pub(in crate::workspace) fn digest_of(file: BorrowedFd<'_>) -> Result<Sha256Digest, Errno> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        let count = match rustix::io::pread(file, buffer.as_mut_slice(), at) {
            Ok(0) => return Ok(Sha256Digest::from_bytes(hasher.finalize().into())),
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        hasher.update(buffer.get(..count).unwrap_or_default());
        at += count as u64;
    }
}

/// The stamp of the file of a name of a directory, if that is a regular file of just these bytes.
///
/// # Errors
/// When the system refuses to read.
pub(in crate::workspace) fn compare(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<Option<Stamp>, Errno> {
    let Some((file, stat)) = open_regular(dir, name)? else { return Ok(None) };
    let size = told_size(&stat);
    let mut buffer = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1).min(1 << 16));
    let room = buffer.capacity();
    let mut rest = bytes;
    loop {
        buffer.clear();
        let count = match rustix::io::read(&file, spare_capacity(&mut buffer)) {
            Ok(count) => count,
            Err(Errno::INTR) => continue,
            Err(errno) => return Err(errno),
        };
        let Some(left) = rest.strip_prefix(buffer.as_slice()) else { return Ok(None) };
        rest = left;
        if is_all(count, room, (bytes.len() - rest.len()) as u64, size) {
            return Ok(rest.is_empty().then(|| Stamp::of(&stat)));
        }
    }
}

/// What a name of a directory has besides its bytes; `None` when there is no regular file.
///
/// # Errors
/// When the system refuses to look.
pub(in crate::workspace) fn attributes(dir: BorrowedFd<'_>, name: &str) -> Result<Option<Attributes>, Errno> {
    Ok(open_regular(dir, name)?.map(|(file, stat)| Attributes::of(file.as_fd(), &stat)))
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

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::fs::{Mode, OFlags};
    use std::path::Path;

    fn open(path: &Path, flags: OFlags) -> OwnedFd {
        rustix::fs::open(path, flags, Mode::empty()).unwrap()
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn a_file_is_read_to_its_end_whatever_size_it_tells() {
        let place = tempfile::tempdir().unwrap();
        for length in [0, 1, 100, 70_000] {
            let file = place.path().join("file");
            let bytes = vec![b'x'; length];
            std::fs::write(&file, &bytes).unwrap();
            for told in [0, length / 2, length.saturating_sub(1), length, length + 1, 2 * length] {
                let read = |limit| read_all(open(&file, OFlags::RDONLY), told as u64, limit).unwrap();
                assert!(read(1 << 20) == bytes, "{told} of {length}");
                assert_eq!(read(told as u64).len(), length.min(told + 1), "{told} of {length}, and no more");
            }
        }
        let made_up = std::fs::read("/proc/version").unwrap();
        assert_eq!(read_all(open(Path::new("/proc/version"), OFlags::RDONLY), 0, 1 << 20), Ok(made_up));
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn only_the_very_bytes_compare_equal() {
        let place = tempfile::tempdir().unwrap();
        let dir = open(place.path(), OFlags::PATH);
        for length in [0_usize, 1, 100, (1 << 16) - 1, 1 << 16, (1 << 16) + 1, 200_000] {
            let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
            std::fs::write(place.path().join("file"), &bytes).unwrap();
            let is_equal = |bytes: &[u8]| compare(dir.as_fd(), "file", bytes).unwrap().is_some();
            assert!(is_equal(&bytes), "{length}");
            assert!(!is_equal(&[bytes.as_slice(), b"x"].concat()), "{length}, and more");
            if let Some((last, rest)) = bytes.split_last() {
                assert!(!is_equal(rest), "{length}, less the last");
                assert!(!is_equal(&[rest, &[!last]].concat()), "{length}, the last one another");
            }
        }
        assert!(compare(dir.as_fd(), "nothing", b"").unwrap().is_none());
        // The system makes this file up, and tells no size.
        let proc = open(Path::new("/proc"), OFlags::PATH);
        let version = std::fs::read("/proc/version").unwrap();
        assert!(compare(proc.as_fd(), "version", &version).unwrap().is_some());
        assert!(compare(proc.as_fd(), "version", b"").unwrap().is_none());
        assert!(compare(proc.as_fd(), "version", &version[1..]).unwrap().is_none());
    }
}
