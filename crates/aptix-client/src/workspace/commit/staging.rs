//! Puts new bytes beside the old ones: the directories that are missing, then each file with its owner and mode.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::commit::attributes::{Loss, dress};
use crate::workspace::commit::change::Step;
use crate::workspace::commit::check::gone;
use crate::workspace::commit::commit_error::FileFault;
use crate::workspace::commit::record::{FileStep, Hex, NewDir};
use crate::workspace::commit::work_tree::WorkTree;
use crate::workspace::fs::{beneath, disk};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::snapshot::Original;
use crate::workspace::read::{attributes, regular};

/// Whose a directory is that was missing when the batch was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Made {
    /// The commit made it, and removes it should it fail.
    Here,
    /// Somebody else made it meanwhile; it does as well, and stays.
    Elsewhere,
}

/// Makes a directory that was missing.
pub(crate) fn make_dir(tree: &WorkTree<'_>, made: &NewDir) -> Result<Made, Errno> {
    let parent = tree.dirs.open_dir(made.root, &made.parent)?;
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match tree.disk.make_dir(parent.as_fd(), &made.name, mode) {
        Err(Errno::EXIST) => beneath::open_dir(parent.as_fd(), &made.name).map(|_| Made::Elsewhere),
        outcome => outcome.map(|()| Made::Here),
    }
}

/// A staged file.
#[derive(Debug)]
pub(crate) struct StagedFile {
    /// Still open, and not durable yet.
    pub(crate) file: OwnedFd,
    /// What would show that somebody touched it.
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
