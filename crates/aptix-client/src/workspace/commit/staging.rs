//! Puts new bytes beside the old ones: the directories that are missing, then each file with its owner and mode.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Mode};
use rustix::io::Errno;

use crate::workspace::Workspace;
use crate::workspace::commit::change::Step;
use crate::workspace::commit::journal::{FileStep, Hex, NewDir, Record};
use crate::workspace::commit::orphans;
use crate::workspace::commit::publish::Ground;
use crate::workspace::commit::transaction::FileFault;
use crate::workspace::fs::beneath;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::read::resolve::Place;
use crate::workspace::read::snapshot::{self, Attributes, Original, Stamp};

/// What a commit of these changes will consist of. Decides every name; touches nothing.
pub(in crate::workspace) fn draft(workspace: &Workspace, steps: &[Step<'_>], batch: Option<String>) -> Record {
    let dirs = missing_dirs(steps.iter().map(|step| step.place));
    let path = |root| workspace.root(root).map_or(OsStr::new(""), |root| root.path().as_os_str());
    let files = steps.iter().map(|step| FileStep {
        root: step.place.root,
        dir: step.place.dir.clone(),
        name: step.place.name.clone(),
        staged: orphans::staged_name(path(step.place.root)),
        before: step.before.map(Hex),
        after: step.content.map(|content| Hex(content.digest)),
        executable: step.executable(),
    });
    Record {
        boot: workspace.disk().boot(),
        history: None,
        ahead: None,
        roots: workspace.roots().iter().map(|root| root.mark().clone()).collect(),
        clipboards: None,
        batch,
        dirs,
        emptied: Vec::new(),
        files: files.collect(),
    }
}

/// The directories that have to be made for files in these places, parents first.
pub(in crate::workspace) fn missing_dirs<'p>(places: impl Iterator<Item = &'p Place>) -> Vec<NewDir> {
    let mut seen = BTreeSet::new();
    let mut dirs = Vec::new();
    for place in places {
        let names: Vec<&str> = place.dir.split('/').collect();
        for depth in names.len().saturating_sub(place.missing)..names.len() {
            let parent = names.get(..depth).unwrap_or_default().join("/");
            let name = names.get(depth).copied().unwrap_or_default().to_owned();
            if seen.insert((place.root, parent.clone(), name.clone())) {
                dirs.push(NewDir { root: place.root, parent, name });
            }
        }
    }
    dirs
}

/// Directories that were looked at: their root, their path, and how many of its last components do not exist.
pub(in crate::workspace) type Checked<'a> = BTreeSet<(usize, &'a str, usize)>;

/// Looks for what would make a commit fail half-way, while nothing has been touched yet.
pub(in crate::workspace) fn check<'a>(
    ground: &Ground<'_>,
    step: &Step<'a>,
    checked: &mut Checked<'a>,
) -> Result<(), FileFault> {
    let place = step.place;
    if step.original.is_some_and(|original| original.immutable) {
        return Err(FileFault::Immutable);
    }
    if checked.insert((place.root, place.dir.as_str(), place.missing)) { check_dir(ground, place) } else { Ok(()) }
}

fn check_dir(ground: &Ground<'_>, place: &Place) -> Result<(), FileFault> {
    let names: Vec<&str> = place.dir.split('/').filter(|name| !name.is_empty()).collect();
    let existing = names.get(..names.len().saturating_sub(place.missing)).unwrap_or_default().join("/");
    let dir = ground.open_dir(place.root, &existing).map_err(gone)?;
    let denied = |errno| match place.missing {
        0 => FileFault::System { doing: "write in the directory", errno },
        _ => FileFault::MakeDir { errno },
    };
    // What cannot be read cannot be flushed either.
    let unreadable =
        |errno| FileFault::System { doing: "read the directory, which is needed to make names in it durable", errno };
    let readable = disk::open_readable(dir.as_fd()).map_err(unreadable)?;
    if snapshot::is_immutable(readable.as_fd()) {
        return Err(FileFault::Immutable);
    }
    rustix::fs::accessat(&dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(denied)
}

/// Whose a directory is that was missing when the batch was planned.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(in crate::workspace) enum Made {
    /// The commit made it, and removes it should it fail.
    Here,
    /// Somebody else made it meanwhile; it does as well, and stays.
    Elsewhere,
}

/// Makes a directory that was missing.
pub(in crate::workspace) fn make_dir(ground: &Ground<'_>, made: &NewDir) -> Result<Made, Errno> {
    let parent = ground.open_dir(made.root, &made.parent)?;
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match ground.disk.make_dir(parent.as_fd(), &made.name, mode) {
        Err(Errno::EXIST) => beneath::open_dir(parent.as_fd(), &made.name).map(|_| Made::Elsewhere),
        outcome => outcome.map(|()| Made::Here),
    }
}

/// A staged file.
#[derive(Debug)]
pub(in crate::workspace) struct Staged {
    /// Still open, and not durable yet.
    pub(in crate::workspace) file: OwnedFd,
    /// What would show that somebody touched it.
    pub(in crate::workspace) stamp: Stamp,
    /// What its original has and it could not get.
    pub(in crate::workspace) losses: Vec<Loss>,
}

/// What a file that is replaced has, and the system does not give to the new one.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Loss {
    /// The owner or the group.
    Owner,
    /// The extended attribute of this name.
    Attribute(String),
}

/// Stages a file: complete, with the owner, mode and attributes of the one it replaces.
pub(in crate::workspace) fn stage(
    ground: &Ground<'_>,
    file: &FileStep,
    step: &Step<'_>,
    bytes: &[u8],
) -> Result<Staged, FileFault> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |doing| move |errno| FileFault::System { doing, errno };
    if !ground.mark(file.root, &file.dir, &dir).map_err(system("look at the directory"))? {
        return Err(FileFault::ParentGone);
    }
    let executable = step.content.and_then(|content| content.executable);
    let read_write = Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH;
    let mode = match (step.model, executable) {
        (Some(_), _) => Mode::RUSR | Mode::WUSR,
        (None, Some(true)) => read_write | Mode::XUSR | Mode::XGRP | Mode::XOTH,
        (None, Some(false) | None) => read_write,
    };
    let staged = ground.disk.create(dir.as_fd(), &file.staged, mode).map_err(system("create a file beside it"))?;
    disk::write_all(ground.disk, staged.as_fd(), bytes).map_err(system("write"))?;
    let losses = match step.model {
        Some(model) => {
            let mode = executable.map_or(model.mode, |executable| model.mode_that_runs(executable));
            dress(ground.disk, staged.as_fd(), model, mode).map_err(system("keep the mode and attributes"))?
        }
        None => Vec::new(),
    };
    let stat = rustix::fs::fstat(&staged).map_err(system("look at the new file"))?;
    Ok(Staged { file: staged, stamp: Stamp::of(&stat), losses })
}

/// Gives a staged file what its original has, and a mode, as far as the system lets us; tells what it does not.
pub(in crate::workspace) fn dress(
    disk: &dyn Disk,
    staged: BorrowedFd<'_>,
    original: &Attributes,
    mode: u32,
) -> Result<Vec<Loss>, Errno> {
    let (owner, group) = own(disk, staged, original)?;
    let mut losses = Vec::new();
    if owner == Kept::No || group == Kept::No {
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
    // New bytes get nobody's rights but those of whoever runs them.
    let mode = mode & 0o1777;
    let mode = match group {
        Kept::Yes => mode,
        // Another group may do no more than everybody.
        Kept::No => mode & (0o1707 | ((mode & 0o007) << 3)),
    };
    disk.set_mode(staged, Mode::from_raw_mode(mode))?;
    Ok(losses)
}

/// Whether a new file has what the old one has.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kept {
    Yes,
    No,
}

/// Gives a staged file its original's owner and group, or the group alone.
fn own(disk: &dyn Disk, staged: BorrowedFd<'_>, original: &Attributes) -> Result<(Kept, Kept), Errno> {
    let stat = rustix::fs::fstat(staged)?;
    if (stat.st_uid, stat.st_gid) == (original.user, original.group) {
        return Ok((Kept::Yes, Kept::Yes));
    }
    if is_given(disk.set_owner(staged, Some(original.user), original.group))? == Kept::Yes {
        return Ok((Kept::Yes, Kept::Yes));
    }
    let owner = if stat.st_uid == original.user { Kept::Yes } else { Kept::No };
    if stat.st_gid == original.group {
        return Ok((owner, Kept::Yes));
    }
    Ok((owner, is_given(disk.set_owner(staged, None, original.group))?))
}

/// Tells a system that may not give something from one that fails.
fn is_given(outcome: Result<(), Errno>) -> Result<Kept, Errno> {
    match outcome {
        Ok(()) => Ok(Kept::Yes),
        Err(Errno::PERM | Errno::ACCESS | Errno::OPNOTSUPP | Errno::NOSYS | Errno::INVAL) => Ok(Kept::No),
        Err(errno) => Err(errno),
    }
}

/// Checks, just before the commit point, that what was planned on is still there and what was staged is untouched.
pub(in crate::workspace) fn recheck(
    ground: &Ground<'_>,
    file: &FileStep,
    original: Option<&Original>,
    staged: Option<Stamp>,
) -> Result<(), FileFault> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |errno| FileFault::System { doing: "look at it again", errno };
    let look = |name| beneath::look_up(dir.as_fd(), name).map_err(system);
    let (new, old) = (look(&file.staged)?, look(&file.name)?);
    if new.as_ref().map(Stamp::of) != staged {
        return Err(FileFault::Tampered);
    }
    match (original, old.as_ref().map(Stamp::of)) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(FileFault::Exists),
        (Some(original), Some(now)) if now == original.stamp => Ok(()),
        (Some(_), None) => Err(FileFault::Removed),
        (Some(original), _) => match snapshot::digest(dir.as_fd(), &file.name).map_err(system)? {
            Some((digest, _)) if Some(Hex(digest)) == file.before => {
                let now = snapshot::attributes(dir.as_fd(), &file.name).map_err(system)?;
                if now.as_ref() != Some(&original.attributes) {
                    return Err(FileFault::Attributes);
                }
                let file = beneath::open_file(dir.as_fd(), &file.name).map_err(system)?;
                if snapshot::is_immutable(file.as_fd()) { Err(FileFault::Immutable) } else { Ok(()) }
            }
            now => Err(FileFault::Changed { current: now.map(|(digest, _)| digest) }),
        },
    }
}

const fn gone(errno: Errno) -> FileFault {
    match errno {
        Errno::NOENT => FileFault::ParentGone,
        errno => FileFault::System { doing: "open the directory", errno },
    }
}
