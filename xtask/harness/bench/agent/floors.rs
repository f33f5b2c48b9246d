//! The least that a durable replacement of files takes: no plan, no check, no undo, no digest.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::Result;
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
