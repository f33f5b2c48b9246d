//! Publishes one file of a record: its new bytes get its name, its old ones the staged name.
//!
//! It needs nothing but the record, so that recovery publishes in the same way.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::workspace::commit::commit_error::FileFault;
use crate::workspace::commit::file_state::{Holds, holds, is_gone};
use crate::workspace::commit::record::{FileStep, Hex};
use crate::workspace::commit::rollback::give_back;
use crate::workspace::commit::swap::{exchange, put_back, rename_new};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;

/// Makes a file what it is to be. Afterwards its old bytes have the staged name; gives the stamp of the file that holds them.
///
/// The old bytes, where they are at hand, need not be hashed to be known again.
pub(crate) fn publish(
    tree: &WorkTree<'_>,
    file: &FileStep,
    original: Option<&[u8]>,
) -> Result<Option<FileStamp>, FileFault> {
    let dir = tree.dirs.open_dir(file.root, &file.dir).map_err(|errno| match errno {
        Errno::NOENT => FileFault::ParentGone,
        errno => system(errno),
    })?;
    // Another process has put another directory in its place since something was staged in it.
    if file.after.is_none() && !tree.dirs.mark(file.root, &file.dir, &dir).map_err(system)? {
        return Err(FileFault::ParentGone);
    }
    if file.before.is_none() {
        return match rename_new(tree.disk, &dir, &file.staged, &file.name) {
            Ok(()) => Ok(None),
            Err(Errno::EXIST) => Err(FileFault::Exists),
            Err(Errno::NOENT) => Err(missing(tree, file)),
            Err(errno) => Err(system(errno)),
        };
    }
    let swapped = match file.after {
        Some(_) => exchange(tree.disk, &dir, file),
        None => tree.disk.rename(dir.as_fd(), &file.name, dir.as_fd(), &file.staged),
    };
    swapped.map_err(|errno| match errno {
        Errno::NOENT if is_gone(&dir, &file.name) => missing(tree, file),
        errno => system(errno),
    })?;
    if let Some(displaced) = displaced(&dir, file, original).map_err(system)? {
        return Ok(Some(displaced));
    }
    match file.after {
        Some(_) => give_back(tree, &dir, file),
        None => put_back(tree.disk, &dir, file),
    }
    .map_err(system)?;
    Err(FileFault::Changed { current: None })
}

const fn system(errno: Errno) -> FileFault {
    FileFault::System { doing: "put the new file in place", errno }
}

/// The stamp of the old file under the staged name; `None` when something else was displaced.
fn displaced(dir: &OwnedFd, file: &FileStep, original: Option<&[u8]>) -> Result<Option<FileStamp>, Errno> {
    if let (Some(bytes), None) = (original, file.executable)
        && let Some(stamp) = regular::compare(dir.as_fd(), &file.staged, bytes)?
    {
        return Ok(Some(stamp));
    }
    Ok(match holds(dir, &file.staged, file)? {
        (Holds::Before, stamp) => stamp,
        _ => None,
    })
}

/// Reads a published file back; returns whether it is no longer as planned.
pub(crate) fn is_overwritten(tree: &WorkTree<'_>, file: &FileStep, planned: Option<&[u8]>) -> Result<bool, Errno> {
    let dir = tree.dirs.open_dir(file.root, &file.dir)?;
    if let Some(planned) = planned
        && regular::compare(dir.as_fd(), &file.name, planned)?.is_some()
    {
        return Ok(false);
    }
    let now = regular::digest(dir.as_fd(), &file.name)?;
    Ok(now.map(|(digest, _)| Hex(digest)) != file.after)
}

/// What it means that a name was not found: the file is gone, or its whole directory is.
fn missing(tree: &WorkTree<'_>, file: &FileStep) -> FileFault {
    tree.dirs.let_go();
    match tree.dirs.find_dir(file.root, &file.dir) {
        Ok(None) => FileFault::ParentGone,
        Ok(Some(_)) => FileFault::Changed { current: None },
        Err(errno) => system(errno),
    }
}
