//! The disk under a store that failed: whether it takes writes again, and reading its files from it and not from memory.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use rustix::fs::{Advice, fadvise};

use super::StoreError;
use super::space::Space;

/// Written to learn whether the disk takes writes.
const PROBE: &str = "write-probe";

/// Bytes that must fit beside what is there.
const ROOM: u64 = 8 << 20;

/// Files that must be free to be opened.
const FILES: usize = 12;

const BLOCK: u64 = 512;

/// Writes, flushes and removes as many bytes as opening the store may take.
///
/// # Errors
/// When the disk does not take them, or no more files can be opened.
#[expect(clippy::disallowed_methods, reason = "the server's own file, in its own directory")]
pub(super) fn takes_writes(dir: &Path) -> Result<(), StoreError> {
    let tried = (|| {
        let _open = (0..FILES).map(|_| File::open(dir)).collect::<io::Result<Vec<_>>>()?;
        let written = write_probe(&dir.join(PROBE), journal_bytes(dir)?.min(ROOM * 8) + ROOM);
        let removed = std::fs::remove_file(dir.join(PROBE));
        written.and(removed)
    })();
    tried.map_err(|error| StoreError::Failed { action: "write to its disk", cause: error.to_string() })
}

#[expect(clippy::disallowed_methods, reason = "the server's own file, in its own directory")]
fn write_probe(path: &Path, bytes: u64) -> io::Result<()> {
    let mut file = File::create(path)?;
    // Not zeros, which a file system may leave out.
    let block = [0x5a; 64 << 10];
    for _ in 0..bytes.div_ceil(block.len() as u64) {
        file.write_all(&block)?;
    }
    file.sync_all()
}

/// Bytes that are free for this process on the disk of a directory.
pub(super) fn free_bytes(dir: &Path) -> io::Result<u64> {
    let disk = rustix::fs::statvfs(dir)?;
    Ok(disk.f_bavail.saturating_mul(disk.f_frsize))
}

/// Bytes of journals that go into tables when they are read.
fn journal_bytes(dir: &Path) -> io::Result<u64> {
    use std::os::unix::fs::MetadataExt as _;
    let mut bytes = 0;
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        if entry.file_name().to_string_lossy().ends_with(".jnl") {
            bytes += entry.metadata()?.blocks() * BLOCK;
        }
    }
    Ok(bytes)
}

/// Flushes every file of the store and lets go of what memory holds of it. After a failed flush memory may hold what the
/// disk does not have; what is read from now on is what the disk has.
///
/// # Errors
/// When a file cannot be flushed: then the store must not be opened.
pub(super) fn read_anew(dir: &Path) -> Result<(), StoreError> {
    forget(dir).map_err(|error| StoreError::Failed { action: "flush its files", cause: error.to_string() })
}

fn forget(dir: &Path) -> io::Result<()> {
    for entry in std::fs::read_dir(dir)? {
        let entry = entry?;
        let kind = entry.file_type()?;
        if kind.is_dir() {
            forget(&entry.path())?;
        } else if kind.is_file() {
            let file = File::open(entry.path())?;
            file.sync_all()?;
            fadvise(&file, 0, None, Advice::DontNeed)?;
        }
    }
    File::open(dir)?.sync_all()
}

/// The space of the file system that a directory is on.
///
/// # Errors
/// When the system does not answer.
pub(super) fn space(dir: &Path) -> io::Result<Space> {
    let found = rustix::fs::statvfs(dir)?;
    let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
    Ok(Space { free: bytes(found.f_bavail), size: bytes(found.f_blocks) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_disk_that_takes_writes_is_left_as_it_was() {
        let dir = tempfile::tempdir().unwrap();
        takes_writes(dir.path()).unwrap();
        read_anew(dir.path()).unwrap();
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
        assert!(takes_writes(&dir.path().join("absent")).is_err());
    }
}
