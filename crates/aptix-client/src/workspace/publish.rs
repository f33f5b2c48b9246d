//! The steps of a commit on one file: put the new bytes in place, take them back, clear away.
//!
//! They need nothing but a record, so that a commit and the recovery from its death are the same steps.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::beneath;
use super::disk::{self, Disk};
use super::journal::{Hex, NewFile, Record};
use super::snapshot::{self, Stamp};

/// How often a file that somebody keeps saving is swapped until nothing of theirs is displaced.
const SWAPS: usize = 16;

/// A disk, and the roots of a record on it.
#[derive(Clone)]
pub(super) struct Ground<'a> {
    pub(super) disk: &'a dyn Disk,
    pub(super) roots: Vec<Arc<OwnedFd>>,
}

impl Ground<'_> {
    pub(super) fn open_dir(&self, root: usize, path: &str) -> Result<OwnedFd, Errno> {
        let root = self.roots.get(root).ok_or(Errno::NOENT)?;
        beneath::open_dir(root.as_fd(), path)
    }
}

/// Why a file was not published, or not taken back.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
pub enum PublishError {
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

/// Gives a file its new bytes. Afterwards the old ones have the staged name; the stamp shows whether they stay as they are.
pub(super) fn publish(ground: &Ground<'_>, file: &NewFile) -> Result<Option<Stamp>, PublishError> {
    let dir = ground.open_dir(file.root, &file.dir).map_err(|errno| match errno {
        Errno::NOENT => PublishError::ParentGone,
        errno => errno.into(),
    })?;
    let Some(before) = file.before else {
        return publish_new(ground.disk, &dir, file).map(|()| None);
    };
    exchange(ground.disk, &dir, file).map_err(|errno| match errno {
        Errno::NOENT if is_gone(&dir, &file.name) => PublishError::Changed,
        errno => errno.into(),
    })?;
    match snapshot::digest(dir.as_fd(), &file.staged)? {
        Some((digest, stamp)) if digest == before.0 => Ok(Some(stamp)),
        _ => {
            give_back(ground.disk, &dir, file)?;
            Err(PublishError::Changed)
        }
    }
}

fn publish_new(disk: &dyn Disk, dir: &OwnedFd, file: &NewFile) -> Result<(), PublishError> {
    let held = dir.as_fd();
    let published = match disk.rename_new(held, &file.staged, &file.name) {
        // File systems without the flag still refuse a second link of one name.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            disk.link(held, &file.staged, &file.name).and_then(|()| disk.unlink(held, &file.staged))
        }
        outcome => outcome,
    };
    published.map_err(|errno| match errno {
        Errno::EXIST => PublishError::Exists,
        errno => errno.into(),
    })
}

/// Swaps what the file's name and its staged name mean.
fn exchange(disk: &dyn Disk, dir: &OwnedFd, file: &NewFile) -> Result<(), Errno> {
    let held = dir.as_fd();
    match disk.exchange(held, &file.staged, &file.name) {
        // Without the call it takes three steps; `settle` finishes them if they are cut short.
        Err(Errno::INVAL | Errno::NOSYS | Errno::OPNOTSUPP) => {
            let aside = aside(file);
            disk.link(held, &file.name, &aside)?;
            if let Err(errno) = disk.rename(held, &file.staged, held, &file.name) {
                let _ = disk.unlink(held, &aside);
                return Err(errno);
            }
            disk.rename(held, &aside, held, &file.staged)
        }
        outcome => outcome,
    }
}

/// The name that keeps the old bytes while an exchange is made of three steps.
fn aside(file: &NewFile) -> String {
    format!("{}-old", file.staged)
}

/// Brings an exchange that was cut short to one of its ends.
fn settle(disk: &dyn Disk, dir: &OwnedFd, file: &NewFile) -> Result<(), Errno> {
    let aside = aside(file);
    if is_gone(dir, &aside) {
        return Ok(());
    }
    if is_gone(dir, &file.staged) {
        return disk.rename(dir.as_fd(), &aside, dir.as_fd(), &file.staged);
    }
    disk.unlink(dir.as_fd(), &aside)
}

fn is_gone(dir: &OwnedFd, name: &str) -> bool {
    matches!(beneath::look_up(dir.as_fd(), name), Ok(None))
}

/// Takes published bytes out again, swapping until what comes out is what was last put in: then the last save of
/// anybody is in place. A save that a later one has overtaken goes the way it would have gone without us.
fn give_back(disk: &dyn Disk, dir: &OwnedFd, file: &NewFile) -> Result<(), PublishError> {
    let digest = || Ok::<_, Errno>(snapshot::digest(dir.as_fd(), &file.staged)?.map(|(digest, _)| digest));
    let after = Some(file.after.0);
    let mut put_in = after;
    for _ in 0..SWAPS {
        let restored = digest()?;
        match exchange(disk, dir, file) {
            // Somebody removed the file, which overtakes every save before.
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
        return Ok(disk::unlink_if_there(disk, dir.as_fd(), &file.staged)?);
    }
    Err(PublishError::System(Errno::BUSY))
}

/// Takes one file back to its old bytes, if it has the new ones.
pub(super) fn withdraw(ground: &Ground<'_>, file: &NewFile) -> Result<(), PublishError> {
    let dir = match ground.open_dir(file.root, &file.dir) {
        Err(Errno::NOENT) if file.before.is_none() => return Ok(()),
        outcome => outcome?,
    };
    settle(ground.disk, &dir, file)?;
    match standing(Some(&dir), file)? {
        Standing::Published if file.before.is_none() => Ok(ground.disk.unlink(dir.as_fd(), &file.name)?),
        Standing::Published | Standing::Displaced => give_back(ground.disk, &dir, file),
        // What somebody has written since is theirs.
        Standing::Staged | Standing::Outrun | Standing::Cleared | Standing::Overwritten | Standing::Foreign => Ok(()),
        Standing::Finished | Standing::Unknown => Err(PublishError::Changed),
    }
}

/// Where one file of a record stands.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Standing {
    /// The new bytes are staged, whole, and the file is as it was.
    Staged,
    /// The new bytes are staged, whole, but the file is no longer as it was.
    Outrun,
    /// The new bytes are in place and can be taken back.
    Published,
    /// The new bytes are in place, and something that nobody planned was displaced by them.
    Displaced,
    /// The new bytes are in place and the old ones were cleared away.
    Finished,
    /// The new bytes were published, and somebody has written the file since.
    Overwritten,
    /// The old state, with nothing staged.
    Cleared,
    /// Nothing of the batch is there any more, and the old file is not either.
    Foreign,
    /// Anything else.
    Unknown,
}

/// The two ends of a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Direction {
    /// Every file has its new bytes.
    Forward,
    /// Every file has its old bytes.
    Back,
}

/// What a name means, as far as a record can tell.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Holds {
    Nothing,
    Before,
    After,
    Other,
}

fn holds(dir: &OwnedFd, name: &str, file: &NewFile) -> Result<Holds, Errno> {
    let digest = snapshot::digest(dir.as_fd(), name)?.map(|(digest, _)| digest);
    Ok(match digest {
        Some(digest) if digest == file.after.0 => Holds::After,
        Some(digest) if file.before == Some(Hex(digest)) => Holds::Before,
        None if is_gone(dir, name) => Holds::Nothing,
        _ => Holds::Other,
    })
}

/// Finds out where a file stands, from what its two names mean. Without its directory it has neither name.
pub(super) fn standing(dir: Option<&OwnedFd>, file: &NewFile) -> Result<Standing, Errno> {
    let (now, staged) = match dir {
        Some(dir) => (holds(dir, &file.name, file)?, holds(dir, &file.staged, file)?),
        None => (Holds::Nothing, Holds::Nothing),
    };
    Ok(match (file.before.is_some(), now, staged) {
        (true, Holds::Before, Holds::After) | (false, Holds::Nothing, Holds::After) => Standing::Staged,
        // Without a flag for it, a new file is published by a second link.
        (false, Holds::After, Holds::After | Holds::Nothing) => Standing::Published,
        (true, Holds::After, Holds::Before) => Standing::Published,
        (true, Holds::After, Holds::Nothing) => Standing::Finished,
        (true, Holds::Other | Holds::Nothing, Holds::Nothing) => Standing::Foreign,
        (true, Holds::Before, Holds::Nothing) | (false, Holds::Nothing, Holds::Nothing) => Standing::Cleared,
        (true, _, Holds::Before) | (false, Holds::Other | Holds::Before, Holds::Nothing) => Standing::Overwritten,
        (true, Holds::After, Holds::Other) => Standing::Displaced,
        (_, _, Holds::After) => Standing::Outrun,
        _ => Standing::Unknown,
    })
}

impl Standing {
    /// Whether an end can be reached from here, or is reached already.
    pub(super) const fn can_go(self, direction: Direction) -> bool {
        match self {
            Self::Staged | Self::Published | Self::Overwritten | Self::Foreign => true,
            Self::Finished => matches!(direction, Direction::Forward),
            Self::Outrun | Self::Displaced | Self::Cleared => matches!(direction, Direction::Back),
            Self::Unknown => false,
        }
    }
}

/// Brings a file that was cut short in the middle of a step to one of the step's ends.
pub(super) fn settle_in(ground: &Ground<'_>, file: &NewFile) -> Result<Option<OwnedFd>, Errno> {
    match ground.open_dir(file.root, &file.dir) {
        Ok(dir) => settle(ground.disk, &dir, file).map(|()| Some(dir)),
        Err(Errno::NOENT) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Removes what has the staged name, unless it is something that nobody planned: then it is kept, and its name told.
pub(super) fn clear(ground: &Ground<'_>, file: &NewFile, seen: Option<Stamp>) -> Result<Option<String>, Errno> {
    let dir = match ground.open_dir(file.root, &file.dir) {
        Err(Errno::NOENT) => return Ok(None),
        outcome => outcome?,
    };
    let Some(stat) = beneath::look_up(dir.as_fd(), &file.staged)? else { return Ok(None) };
    let planned = seen == Some(Stamp::of(&stat)) || {
        let digest = snapshot::digest(dir.as_fd(), &file.staged)?.map(|(digest, _)| digest);
        digest == Some(file.after.0) || digest == file.before.map(|hex| hex.0)
    };
    if planned {
        disk::unlink_if_there(ground.disk, dir.as_fd(), &file.staged)?;
        return Ok(None);
    }
    let kept = format!("{}.kept-{}", file.name, file.staged.trim_matches('.').split('.').next().unwrap_or("copy"));
    ground.disk.rename_new(dir.as_fd(), &file.staged, &kept)?;
    Ok(Some(kept))
}

/// Clears away what every file has staged or kept.
pub(super) fn clear_all(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    record.files.iter().try_for_each(|file| clear(ground, file, None).map(drop))
}

/// Removes staged files of a commit that never reached its commit point, whatever is in them.
pub(super) fn unstage(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    for file in &record.files {
        match ground.open_dir(file.root, &file.dir) {
            Ok(dir) => disk::unlink_if_there(ground.disk, dir.as_fd(), &file.staged)?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    remove_dirs(ground, record)
}

/// Removes the directories that a commit made, as far as they are empty.
pub(super) fn remove_dirs(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    for made in record.dirs.iter().rev() {
        let removed = ground
            .open_dir(made.root, &made.parent)
            .and_then(|parent| ground.disk.remove_dir(parent.as_fd(), &made.name));
        match removed {
            Ok(()) | Err(Errno::NOENT | Errno::NOTEMPTY | Errno::EXIST) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}

/// Makes every directory durable in which the commit changed a name.
pub(super) fn sync_dirs(ground: &Ground<'_>, record: &Record) -> Result<(), Errno> {
    let of_files = record.files.iter().map(|file| (file.root, file.dir.as_str()));
    let of_dirs = record.dirs.iter().map(|dir| (dir.root, dir.parent.as_str()));
    let distinct: std::collections::BTreeSet<_> = of_files.chain(of_dirs).collect();
    for (root, path) in distinct {
        match ground.open_dir(root, path) {
            Ok(dir) => disk::sync_dir(ground.disk, dir.as_fd())?,
            Err(Errno::NOENT) => {}
            Err(errno) => return Err(errno),
        }
    }
    Ok(())
}
