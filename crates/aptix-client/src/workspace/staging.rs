//! Puts new bytes beside the old ones: the directories that are missing, then each file with its owner and mode.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::fs::{Access, AtFlags, Mode};
use rustix::io::Errno;

use super::disk::{self, Disk};
use super::journal::{Hex, NewDir, NewFile, Record};
use super::publish::Ground;
use super::snapshot::{self, Original, Stamp};
use super::transaction::{Change, FileFault};
use super::{Workspace, beneath};

/// What a commit of these changes will consist of. Decides every name; touches nothing.
pub(super) fn draft(workspace: &Workspace, changes: &[Change<'_>], batch: Option<String>) -> Record {
    let mut seen = BTreeSet::new();
    let mut dirs = Vec::new();
    for place in changes.iter().map(|change| change.place) {
        let names: Vec<&str> = place.dir.split('/').collect();
        for depth in names.len().saturating_sub(place.missing)..names.len() {
            let parent = names.get(..depth).unwrap_or_default().join("/");
            let name = names.get(depth).copied().unwrap_or_default().to_owned();
            if seen.insert((place.root, parent.clone(), name.clone())) {
                dirs.push(NewDir { root: place.root, parent, name });
            }
        }
    }
    let files = changes.iter().map(|change| NewFile {
        root: change.place.root,
        dir: change.place.dir.clone(),
        name: change.place.name.clone(),
        staged: disk::staged_name(),
        before: change.before.map(Hex),
        after: Hex(change.after),
    });
    Record {
        roots: workspace.roots().iter().map(|root| root.path().as_os_str().to_owned()).collect(),
        batch,
        dirs,
        files: files.collect(),
    }
}

/// Looks for what would make a commit fail half-way, while nothing has been touched yet.
pub(super) fn check(ground: &Ground<'_>, change: &Change<'_>) -> Result<(), FileFault> {
    let place = change.place;
    let names: Vec<&str> = place.dir.split('/').filter(|name| !name.is_empty()).collect();
    let existing = names.get(..names.len().saturating_sub(place.missing)).unwrap_or_default().join("/");
    let dir = ground.open_dir(place.root, &existing).map_err(gone)?;
    let denied = |errno| match place.missing {
        0 => FileFault::System { doing: "write in the directory", errno },
        _ => FileFault::MakeDir { errno },
    };
    rustix::fs::accessat(&dir, ".", Access::WRITE_OK | Access::EXEC_OK, AtFlags::EACCESS).map_err(denied)?;
    let dir_is_immutable = disk::open_readable(dir.as_fd()).is_ok_and(|dir| snapshot::is_immutable(dir.as_fd()));
    if dir_is_immutable || change.original.is_some_and(|original| original.immutable) {
        return Err(FileFault::Immutable);
    }
    Ok(())
}

/// Makes a directory that was missing. One that somebody else made meanwhile does as well.
pub(super) fn make_dir(ground: &Ground<'_>, made: &NewDir) -> Result<(), Errno> {
    let parent = ground.open_dir(made.root, &made.parent)?;
    let mode = Mode::RWXU | Mode::RWXG | Mode::RWXO;
    match ground.disk.make_dir(parent.as_fd(), &made.name, mode) {
        Err(Errno::EXIST) => beneath::open_dir(parent.as_fd(), &made.name).map(drop),
        outcome => outcome,
    }
}

/// Stages a file: complete, with the owner, mode and attributes of the one it replaces, and durable.
pub(super) fn stage(
    ground: &Ground<'_>,
    file: &NewFile,
    original: Option<&Original>,
    bytes: &[u8],
) -> Result<Stamp, FileFault> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |doing| move |errno| FileFault::System { doing, errno };
    let mode = match original {
        Some(_) => Mode::RUSR | Mode::WUSR,
        None => Mode::RUSR | Mode::WUSR | Mode::RGRP | Mode::WGRP | Mode::ROTH | Mode::WOTH,
    };
    let staged = ground.disk.create(dir.as_fd(), &file.staged, mode).map_err(system("create a file beside it"))?;
    disk::write_all(ground.disk, staged.as_fd(), bytes).map_err(system("write"))?;
    if let Some(original) = original {
        dress(ground.disk, staged.as_fd(), original).map_err(system("keep the mode"))?;
    }
    ground.disk.sync(staged.as_fd()).map_err(system("make it durable"))?;
    stamp(&staged).map_err(system("look at the new file"))
}

/// Gives a staged file what its original has, as far as the system lets us.
fn dress(disk: &dyn Disk, staged: BorrowedFd<'_>, original: &Original) -> Result<(), Errno> {
    let owned = rustix::fs::fstat(staged)
        .is_ok_and(|stat| (stat.st_uid, stat.st_gid) == (original.user, original.group))
        || disk.set_owner(staged, original.user, original.group).is_ok();
    for (name, value) in &original.xattrs {
        // Some attributes are the system's to give; others need a file system that has them.
        let _ = disk.set_xattr(staged, name, value);
    }
    // Under another owner the special bits would grant what nobody granted.
    let mode = if owned { original.mode } else { original.mode & 0o777 };
    disk.set_mode(staged, Mode::from_raw_mode(mode))
}

fn stamp(file: &OwnedFd) -> Result<Stamp, Errno> {
    Ok(Stamp::of(&rustix::fs::fstat(file)?))
}

/// Checks, just before the commit point, that what was planned on is still there and what was staged is untouched.
pub(super) fn recheck(
    ground: &Ground<'_>,
    file: &NewFile,
    original: Option<&Original>,
    staged: Stamp,
) -> Result<(), FileFault> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(gone)?;
    let system = |errno| FileFault::System { doing: "look at it again", errno };
    let look = |name| Ok(beneath::look_up(dir.as_fd(), name).map_err(system)?.map(|stat| Stamp::of(&stat)));
    if look(&file.staged)? != Some(staged) {
        return Err(FileFault::Tampered);
    }
    match (original, look(&file.name)?) {
        (None, None) => Ok(()),
        (None, Some(_)) => Err(FileFault::Exists),
        (Some(original), Some(now)) if now == original.stamp => Ok(()),
        (Some(_), _) => match snapshot::digest(dir.as_fd(), &file.name).map_err(system)? {
            Some((digest, _)) if Some(Hex(digest)) == file.before => Ok(()),
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
