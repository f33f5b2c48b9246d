//! Exchanges what two names of a directory mean, also where the file system has no call for it.

use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use rustix::io::Errno;

use crate::workspace::commit::file_state::is_gone;
use crate::workspace::commit::record::FileStep;
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::disk::Disk;

/// Why a file was not published, or not taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub(crate) enum PublishError {
    /// Somebody else wrote it; their bytes are in place.
    #[error("somebody else wrote the file meanwhile; their version was kept")]
    Changed,
    /// A file that must not exist has appeared.
    #[error("a file appeared at this path meanwhile")]
    Exists,
    /// The directory has vanished.
    #[error("the directory was removed meanwhile")]
    ParentGone,
    /// The system refuses.
    #[error("{0}")]
    System(#[from] Errno),
}

impl PublishError {
    /// What recovery makes of it: a file that changes meanwhile is looked at again the next time.
    pub(crate) const fn errno(self) -> Errno {
        match self {
            Self::System(errno) => errno,
            Self::Changed | Self::Exists | Self::ParentGone => Errno::AGAIN,
        }
    }
}

pub(crate) fn publish_new(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    rename_new(disk, dir, &file.staged, &file.name).map_err(|errno| match errno {
        Errno::EXIST => PublishError::Exists,
        errno => errno.into(),
    })
}

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

/// Brings an exchange that was cut short to one of its ends.
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

/// Gives what was taken away its name again. Something newer that has the name by now stays; what was taken away is
/// then kept beside it when all is cleared away, unless it is what was planned to go.
pub(crate) fn put_back(disk: &dyn Disk, dir: &OwnedFd, file: &FileStep) -> Result<(), PublishError> {
    match publish_new(disk, dir, file) {
        Err(PublishError::Exists) => Ok(()),
        outcome => outcome,
    }
}

/// Brings a file that was cut short in the middle of a step to one of the step's ends.
pub(crate) fn settle_in(tree: &WorkTree<'_>, file: &FileStep) -> Result<Option<Rc<OwnedFd>>, Errno> {
    let dir = tree.dirs.find_dir(file.root, &file.dir)?;
    dir.map(|dir| settle(tree.disk, &dir, file).map(|()| dir)).transpose()
}
