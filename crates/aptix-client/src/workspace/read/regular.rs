//! Reads regular files by their names in a held directory: whole, compared with bytes, or digested.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use aptix_model::digest::Sha256Digest;
use rustix::buffer::spare_capacity;
use rustix::fs::{FileType, Stat};
use rustix::io::{Errno, retry_on_intr};
use sha2::{Digest, Sha256};

use crate::workspace::fs::{beneath, reads};
use crate::workspace::read::file_stamp::FileStamp;

/// Opens what has a name in a directory, if that is a regular file.
pub(crate) fn open(dir: BorrowedFd<'_>, name: &str) -> Result<Option<(OwnedFd, Stat)>, Errno> {
    let file = match beneath::open_file(dir, name) {
        Ok(file) => file,
        Err(Errno::NOENT | Errno::LOOP | Errno::NXIO) => return Ok(None),
        Err(errno) => return Err(errno),
    };
    let stat = rustix::fs::fstat(&file)?;
    Ok((FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile).then_some((file, stat)))
}

/// The stated size of a file. It need not be true: some grow, and some are made up by the system as they are read.
pub(crate) fn stated_size(stat: &Stat) -> u64 {
    u64::try_from(stat.st_size).unwrap_or_default()
}

/// Whether a file ends with the bytes that were just read: there was room for more, and with these it has its stated size.
/// Any other one ends where nothing more can be read.
pub(crate) const fn is_all(count: usize, room: usize, so_far: u64, size: u64) -> bool {
    count == 0 || (count < room && so_far == size)
}

/// The digest of what a name of a directory holds now, and its stamp; `None` when there is no regular file.
pub(crate) fn digest(dir: BorrowedFd<'_>, name: &str) -> Result<Option<(Sha256Digest, FileStamp)>, Errno> {
    let Some((file, stat)) = open(dir, name)? else { return Ok(None) };
    Ok(Some((digest_of(file.as_fd())?, FileStamp::of(&stat))))
}

/// The digest of what an open file holds now.
pub(crate) fn digest_of(file: BorrowedFd<'_>) -> Result<Sha256Digest, Errno> {
    let mut hasher = Sha256::new();
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        let count = reads::read_at(file, &mut buffer, at)?;
        hasher.update(buffer.get(..count).ok_or(Errno::IO)?);
        if count < buffer.len() {
            return Ok(Sha256Digest::from_bytes(hasher.finalize().into()));
        }
        at += count as u64;
    }
}

/// The stamp of the file of a name of a directory, if that is a regular file of just these bytes.
pub(crate) fn compare(dir: BorrowedFd<'_>, name: &str, bytes: &[u8]) -> Result<Option<FileStamp>, Errno> {
    let Some((file, stat)) = open(dir, name)? else { return Ok(None) };
    let size = stated_size(&stat);
    let mut buffer = Vec::with_capacity(usize::try_from(size).unwrap_or_default().saturating_add(1).min(1 << 16));
    let room = buffer.capacity();
    let mut rest = bytes;
    loop {
        buffer.clear();
        let count = retry_on_intr(|| rustix::io::read(&file, spare_capacity(&mut buffer)))?;
        let Some(left) = rest.strip_prefix(buffer.as_slice()) else { return Ok(None) };
        rest = left;
        if is_all(count, room, (bytes.len() - rest.len()) as u64, size) {
            return Ok(rest.is_empty().then(|| FileStamp::of(&stat)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::File;

    #[test]
    #[expect(clippy::disallowed_methods, reason = "a test lays out its own directory")]
    fn only_the_very_bytes_compare_equal() {
        let place = tempfile::tempdir().unwrap();
        let dir = File::open(place.path()).unwrap();
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
        // The system makes this file up, and states no size.
        let proc = File::open("/proc").unwrap();
        let version = std::fs::read("/proc/version").unwrap();
        assert!(compare(proc.as_fd(), "version", &version).unwrap().is_some());
        assert!(compare(proc.as_fd(), "version", b"").unwrap().is_none());
        assert!(compare(proc.as_fd(), "version", &version[1..]).unwrap().is_none());
    }
}
