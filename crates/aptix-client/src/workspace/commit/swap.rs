//! Exchanges what two names of a directory mean, also where the file system has no call for it.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::record::FileStep;
use crate::workspace::fs::disk::Disk;

/// Renames unless the new name is taken.
pub(crate) fn rename_new(disk: &dyn Disk, dir: &OwnedFd, from: &str, to: &str) -> Result<(), Errno> {
    let held = dir.as_fd();
    match disk.rename_new(held, from, to) {
        // File systems without the flag still refuse a second link of one name.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            disk.link(held, from, to).and_then(|()| disk.unlink(held, from))
        }
        outcome => outcome,
    }
}

/// Swaps what the file's name and its staged name mean.
pub(crate) fn exchange(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let held = dir.as_fd();
    match disk.exchange(held, &file.staged, &file.name) {
        // Without the call it takes three steps; `settle` finishes them if they are cut short.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let aside = aside(file);
            disk.link(held, &file.name, &aside)?;
            if let Err(errno) = disk.rename(held, &file.staged, held, &file.name) {
                // The second name of the old file is cleared away with the batch, if not now.
                let _ = disk.unlink(held, &aside);
                return Err(errno);
            }
            disk.rename(held, &aside, held, &file.staged)
        }
        outcome => outcome,
    }
}

/// The name that keeps the old bytes while an exchange is made of three steps.
fn aside(file: &FileStep) -> String {
    format!("{}-old", file.staged)
}

/// Completes or reverts an exchange that was cut short.
pub(crate) fn settle(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let aside = aside(file);
    if is_gone(dir, &aside) {
        return Ok(());
    }
    if is_gone(dir, &file.staged) {
        return disk.rename(dir.as_fd(), &aside, dir.as_fd(), &file.staged);
    }
    disk.unlink(dir.as_fd(), &aside)
}

/// Gives what was moved to the staged name its own name again. A newer file of that name stays; what was
/// moved is then kept beside it when all is cleared away, unless it is what was planned to be removed.
pub(crate) fn put_back(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    match rename_new(disk, dir, &file.staged, &file.name) {
        Err(Errno::EXIST) => Ok(()),
        outcome => outcome,
    }
}
