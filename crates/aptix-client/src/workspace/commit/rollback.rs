//! Rolls the files of a record back to their old bytes.

use std::os::fd::{AsFd, OwnedFd};

use rustix::io::Errno;

use crate::workspace::commit::clear;
use crate::workspace::commit::file_state::{FileState, Holds, file_state, holds, is_gone};
use crate::workspace::commit::record::{FileStep, Hex, Record};
use crate::workspace::commit::swap::{exchange, put_back, settle};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::{disk, errno};
use crate::workspace::read::regular;

/// How often a file that another process keeps saving is swapped until nothing of that process is displaced.
const SWAPS: usize = 256;

/// Rolls every file back, last one first, and clears everything away; `unpublished` are files that were never put in place.
/// Where one cannot be rolled back the others are, and nothing is cleared away.
pub(crate) fn roll_back<'f>(
    tree: &WorkTree<'_>,
    record: &Record,
    unpublished: impl IntoIterator<Item = &'f FileStep>,
) -> Result<(), Errno> {
    tree.dirs.let_go();
    let mut taken = Ok(());
    for file in record.files.iter().rev() {
        taken = taken.and(withdraw(tree, file));
    }
    clear::sync_dirs(tree, record)?;
    taken?;
    drop_unpublished(tree, unpublished)?;
    clear::clear_all(tree, record, None)?;
    clear::remove_dirs(tree, record)
}

/// Takes published bytes out again, swapping until what comes out is what was last put in: then the last save of
/// any other process is in place. A save that a later one has overtaken is kept beside it.
pub(crate) fn give_back(tree: &WorkTree<'_>, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let digest = || Ok::<_, Errno>(regular::digest(dir.as_fd(), &file.staged)?.map(|(digest, _)| digest));
    let after = file.after.map(|hex| hex.0);
    let mut put_in = after;
    for _ in 0..SWAPS {
        let restored = digest()?;
        match exchange(tree.disk, dir, file) {
            // Another process removed the file, which overtakes every save before.
            Err(Errno::NOENT) if is_gone(dir, &file.name) => {}
            outcome => {
                outcome?;
                let out = digest()?;
                if out != put_in {
                    put_in = restored;
                    continue;
                }
                if out == after {
                    return Ok(());
                }
            }
        }
        break;
    }
    // Where another process is faster than all our swaps, its saves are in place and beside it.
    clear::set_aside(tree, dir, file, None).map(drop)
}

/// Takes one file back to its old bytes, if it has the new ones. Where there is no directory any more, there is
/// nothing to take back.
fn withdraw(tree: &WorkTree<'_>, file: &FileStep) -> Result<(), Errno> {
    let Some(dir) = tree.dirs.find_marked(file.root, &file.dir)? else { return Ok(()) };
    settle(tree.disk, &dir, file)?;
    match (file_state(Some(&dir), file)?, file.before, file.after) {
        (FileState::Published, None, _) => take_out(tree, &dir, file),
        (FileState::Published | FileState::Displaced, Some(_), Some(_)) => give_back(tree, &dir, file),
        (FileState::Published | FileState::Displaced, Some(_), None) => put_back(tree.disk, &dir, file),
        // Its old bytes are gone: another process has changed the files since they were looked at.
        (FileState::Finished, ..) => Err(Errno::AGAIN),
        // What another process has written since stays; what it wrote and we moved is kept when all is cleared away.
        _ => Ok(()),
    }
}

/// Takes a new file out again, and looks at what came out: only the bytes that were put in are taken away.
fn take_out(tree: &WorkTree<'_>, dir: &OwnedFd, file: &FileStep) -> Result<(), Errno> {
    let (disk, held) = (tree.disk, dir.as_fd());
    // Where a new file is published by a second link, it may still have its first; no other process uses that name.
    disk::unlink_if_there(disk, held, &file.staged)?;
    // Where another process removed the file, there is nothing to take out.
    let Some(()) = errno::optional(disk.rename(held, &file.name, held, &file.staged))? else { return Ok(()) };
    match (holds(dir, &file.staged, file)?, file.after) {
        ((Holds::After, Some(stamp)), Some(Hex(after))) => tree.displacer.take(dir, file, after, stamp),
        _ => put_back(disk, dir, file),
    }
}

/// Removes staged files that were never published, so that no other process can have one open as a file of its own. What is
/// not as it was staged stays, to be kept.
fn drop_unpublished<'f>(tree: &WorkTree<'_>, files: impl IntoIterator<Item = &'f FileStep>) -> Result<(), Errno> {
    for file in files.into_iter().filter(|file| file.after.is_some()) {
        let Some(dir) = tree.dirs.find_marked(file.root, &file.dir)? else { continue };
        if holds(&dir, &file.staged, file)?.0 == Holds::After {
            disk::unlink_if_there(tree.disk, dir.as_fd(), &file.staged)?;
        }
    }
    Ok(())
}
