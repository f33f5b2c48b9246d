//! Puts new bytes beside the old ones: the directories that are missing, then each file with the owner, mode and extended
//! attributes of the one that it replaces.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::commit::change::Step;
use crate::workspace::commit::check::gone;
use crate::workspace::commit::commit_error::FileFault;
use crate::workspace::commit::notice::Loss;
use crate::workspace::commit::record::{FileStep, Hex, NewDir};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::read::attributes::{self, Attributes};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;
use crate::workspace::read::snapshot::Original;

/// Makes a directory that was missing when the batch was planned. Returns false if another process has made it meanwhile:
/// that one is used, and stays should the commit fail.
pub(crate) fn make_dir(tree: &WorkTree<'_>, made: &NewDir) -> Result<bool, Errno> {
    let parent = tree.dirs.open_dir(made.root, &made.parent)?;
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match tree.disk.make_dir(parent.as_fd(), &made.name, mode) {
        Err(Errno::EXIST) => beneath::open_dir(parent.as_fd(), &made.name).map(|_| false),
        outcome => outcome.map(|()| true),
    }
}

/// A staged file.
#[derive(Debug)]
pub(crate) struct StagedFile {
    /// Still open, and not durable yet.
    pub(crate) file: OwnedFd,
    /// Shows whether another process has touched it.
    pub(crate) stamp: FileStamp,
    /// What its original has and it could not get.
    pub(crate) losses: Vec<Loss>,
}

/// Stages a file: complete, with the owner, mode and attributes of the one it replaces.
pub(crate) fn stage(
    tree: &WorkTree<'_>,
    file: &FileStep,
    step: &Step<'_>,
    bytes: &[u8],
) -> Result<StagedFile, FileFault> {
    let dir = tree.dirs.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |doing| move |errno| FileFault::System { doing, errno };
    if !tree.dirs.mark(file.root, &file.dir, &dir).map_err(system("look at the directory"))? {
        return Err(FileFault::ParentGone);
    }
    let executable = step.content.and_then(|content| content.executable);
    let read_write = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let mode = match (step.model, executable) {
        (Some(_), _) => Mode::RUSR | Mode::WUSR,
        (None, Some(true)) => read_write | Mode::XUSR | Mode::XGRP | Mode::XOTH,
        (None, Some(false) | None) => read_write,
    };
    let staged = tree.disk.create(dir.as_fd(), &file.staged, mode).map_err(system("create a file beside it"))?;
    disk::write_all(tree.disk, staged.as_fd(), bytes).map_err(system("write"))?;
    let losses = match step.model {
        Some(model) => {
            let mode = executable.map_or(model.mode, |executable| model.mode_that_runs(executable));
            dress(tree.disk, staged.as_fd(), model, mode).map_err(system("keep the mode and attributes"))?
        }
        None => Vec::new(),
    };
    let stat = rustix::fs::fstat(&staged).map_err(system("look at the new file"))?;
    Ok(StagedFile { file: staged, stamp: FileStamp::of(&stat), losses })
}

/// Gives a staged file what its original has, and a mode, as far as the system permits; returns what it does not.
fn dress(disk: &dyn Disk, staged: BorrowedFd<'_>, original: &Attributes, mode: u32) -> Result<Vec<Loss>, Errno> {
    let (has_owner, has_group) = set_owner(disk, staged, original)?;
    let mut losses = Vec::new();
    if !has_owner || !has_group {
        losses.push(Loss::Owner);
    }
    for (name, value) in &original.xattrs {
        match disk.set_xattr(staged, name, value) {
            // Some attributes are the system's to give; others need a file system that has them.
            Err(Errno::OPNOTSUPP | Errno::PERM | Errno::ACCESS) => {
                losses.push(Loss::Attribute(String::from_utf8_lossy(name).into_owned()));
            }
            outcome => outcome?,
        }
    }
    // New bytes run with the rights of the user who runs them: no set-user-id, no set-group-id.
    let mode = mode & 0o1777;
    // Another group may do no more than everybody.
    let mode = if has_group { mode } else { mode & (0o1707 | ((mode & 0o007) << 3)) };
    disk.set_mode(staged, Mode::from_raw_mode(mode))?;
    Ok(losses)
}

/// Gives a staged file its original's owner and group, or the group alone; returns whether it has the owner, and the group.
fn set_owner(disk: &dyn Disk, staged: BorrowedFd<'_>, original: &Attributes) -> Result<(bool, bool), Errno> {
    let is_given = |outcome: Result<(), Errno>| match outcome {
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(false),
        outcome => outcome.map(|()| true),
    };
    let stat = rustix::fs::fstat(staged)?;
    if (stat.st_uid, stat.st_gid) == (original.user, original.group)
        || is_given(disk.set_owner(staged, Some(original.user), original.group))?
    {
        return Ok((true, true));
    }
    let has_group = stat.st_gid == original.group || is_given(disk.set_owner(staged, None, original.group))?;
    Ok((stat.st_uid == original.user, has_group))
}

/// Checks, just before the commit point, that what was planned on is still there and what was staged is untouched.
pub(crate) fn recheck(
    tree: &WorkTree<'_>,
    file: &FileStep,
    original: Option<&Original>,
    staged: Option<FileStamp>,
) -> Result<(), FileFault> {
    let dir = tree.dirs.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |errno| FileFault::System { doing: "look at it again", errno };
    let look = |name| beneath::look_up(dir.as_fd(), name).map_err(system);
    let (new, old) = (look(&file.staged)?, look(&file.name)?);
    if new.as_ref().map(FileStamp::of) != staged {
        return Err(FileFault::Tampered);
    }
    match (original, old.as_ref().map(FileStamp::of)) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(FileFault::Exists),
        (Some(original), Some(now)) if now == original.stamp => Ok(()),
        (Some(_), None) => Err(FileFault::Removed),
        (Some(original), _) => match regular::digest(dir.as_fd(), &file.name).map_err(system)? {
            Some((digest, _)) if Some(Hex(digest)) == file.before => {
                let now = attributes::attributes(dir.as_fd(), &file.name).map_err(system)?;
                if now.as_ref() != Some(&original.attributes) {
                    return Err(FileFault::Attributes);
                }
                let file = beneath::open_file(dir.as_fd(), &file.name).map_err(system)?;
                if attributes::is_immutable(file.as_fd()) { Err(FileFault::Immutable) } else { Ok(()) }
            }
            now => Err(FileFault::Changed { current: now.map(|(digest, _)| digest) }),
        },
    }
}
