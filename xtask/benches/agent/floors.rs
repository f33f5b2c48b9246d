//! The least that a durable replacement of files takes: no plan, no check, no undo; and no digest, but for one of them.

use std::fs::File;
use std::hint::black_box;
use std::io::Write;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Result, ensure};
use aptix_engine::digest::sha256;
use rustix::fs::{CWD, RenameFlags};

/// As many files as are flushed at once where many are.
const FLUSHERS: usize = 8;

/// Names with the bytes they get.
type Files<'a> = [(&'a str, &'a [u8])];

fn staged(directory: &Path, name: &str) -> PathBuf {
    directory.join(format!(".{name}.new"))
}

fn write(path: &Path, bytes: &[u8]) -> Result<File> {
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// File by file: write, flush, rename, flush the directory. A batch can end half-way.
pub(crate) fn naive(directory: &Path, files: &Files<'_>) -> Result<()> {
    for (name, bytes) in files {
        let new = staged(directory, name);
        write(&new, bytes)?.sync_all()?;
        std::fs::rename(&new, directory.join(name))?;
        File::open(directory)?.sync_all()?;
    }
    Ok(())
}

/// All files together: write all, flush all at once, flush a journal that names them, exchange all, flush the
/// directory, remove the old ones.
pub(crate) fn flushed(directory: &Path, files: &Files<'_>) -> Result<()> {
    let staged: Vec<_> = files.iter().map(|(name, _)| staged(directory, name)).collect();
    let open = staged.iter().zip(files).map(|(new, (_, bytes))| write(new, bytes)).collect::<Result<Vec<_>>>()?;
    flush(&open)?;
    let journal = directory.with_extension("journal");
    let names: String = files.iter().map(|(name, _)| format!("{name}\n")).collect();
    write(&journal, names.as_bytes())?.sync_all()?;
    for (new, (name, _)) in staged.iter().zip(files) {
        rustix::fs::renameat_with(CWD, new, CWD, directory.join(name), RenameFlags::EXCHANGE)?;
    }
    File::open(directory)?.sync_all()?;
    for old in &staged {
        std::fs::remove_file(old)?;
    }
    Ok(std::fs::remove_file(journal)?)
}

/// Whether the old and the new bytes are looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Look {
    /// Never.
    Away,
    /// Both are read and hashed before, and compared after they have changed places: who reports digests and overwrites
    /// nobody cannot do less.
    AtAll,
}

/// A journal with all new contents, flushed once; then write, exchange and remove, unflushed.
pub(crate) fn journal(directory: &Path, files: &Files<'_>, look: Look) -> Result<()> {
    let read = |(name, bytes): &(&str, &[u8])| -> Result<Vec<u8>> {
        let old = std::fs::read(directory.join(name))?;
        black_box((sha256(&old), sha256(bytes)));
        Ok(old)
    };
    let old = match look {
        Look::Away => Vec::new(),
        Look::AtAll => files.iter().map(read).collect::<Result<Vec<_>>>()?,
    };
    let all: Vec<u8> = files.iter().flat_map(|(_, bytes)| bytes.iter().copied()).collect();
    let path = directory.with_extension("journal");
    let journal = File::options().write(true).create(true).truncate(false).open(path)?;
    journal.write_all_at(&all, 0)?;
    journal.sync_data()?;
    for (index, (name, bytes)) in files.iter().enumerate() {
        let new = staged(directory, name);
        write(&new, bytes)?;
        rustix::fs::renameat_with(CWD, &new, CWD, directory.join(name), RenameFlags::EXCHANGE)?;
        if let Some(old) = old.get(index) {
            ensure!(std::fs::read(&new)? == *old, "somebody wrote {name}");
            ensure!(std::fs::read(directory.join(name))? == *bytes, "{name} came out wrong");
        }
        std::fs::remove_file(new)?;
    }
    Ok(())
}

/// Flushes several files at a time.
fn flush(files: &[File]) -> Result<()> {
    let next = AtomicUsize::new(0);
    let work = || {
        while let Some(file) = files.get(next.fetch_add(1, Ordering::Relaxed)) {
            file.sync_all()?;
        }
        Ok::<_, std::io::Error>(())
    };
    if files.len() < 3 {
        return Ok(work()?);
    }
    std::thread::scope(|scope| {
        let helpers: Vec<_> = (1..FLUSHERS.min(files.len())).map(|_| scope.spawn(work)).collect();
        let mine = work();
        let theirs = helpers.into_iter().map(|helper| helper.join().unwrap_or(Err(std::io::ErrorKind::Other.into())));
        theirs.chain([mine]).collect::<std::io::Result<()>>()
    })?;
    Ok(())
}
