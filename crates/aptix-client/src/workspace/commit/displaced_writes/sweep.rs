//! Looks at the displaced files of a root: a changed one is a displaced write, an unchanged one is removed when its time is
//! over. Before a file is removed its bytes are read; a stamp alone only saves reading it until then.

use std::collections::BTreeSet;
use std::os::fd::{AsFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::fs::{Mode, Stat};
use rustix::io::Errno;

use super::displaced_file::{DisplacedFile, Standing, beside, parse_name};
use super::index;
use super::{HELD_AT_LEAST, HELD_BYTES, HELD_FOR};
use crate::workspace::commit::record::Hex;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::since::Since;
use crate::workspace::fs::{beneath, reads};
use crate::workspace::read::file_stamp::FileStamp;
use crate::workspace::read::regular;
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::Part;
use crate::workspace::roots::workspace::Workspace;

/// How much longer than the last sweep took it is waited until the next one of a process that runs on.
const EASE: u32 = 20;
/// A sweep as short as this is never waited for.
const SHORT: Duration = Duration::from_millis(100);
/// How long another process has to leave a file alone before it is copied.
const QUIET: Duration = Duration::from_mins(1);

/// When a process that runs on looks again, and what there was.
#[derive(Clone, Copy, Default, Debug)]
pub(crate) struct Sweeping {
    next: Option<Instant>,
    /// How many displaced writes were found.
    pub(crate) found: usize,
    /// Bytes of the displaced files that were left, and of those that came since.
    pub(crate) bytes: u64,
}

impl Sweeping {
    pub(crate) fn is_due(self) -> bool {
        self.next.is_none_or(|next| next <= Instant::now())
    }
}

/// Sweeps every root of a workspace. What fails is logged, and fails no command. The caller holds the lock.
pub(crate) fn sweep(workspace: &Workspace) {
    let begin = Instant::now();
    let (mut bytes, mut found) = (0, 0);
    for root in workspace.roots() {
        match sweep_root(workspace.disk(), root) {
            Ok(swept) => (bytes, found) = (bytes + swept.bytes, found + swept.found),
            Err(errno) => {
                tracing::warn!(%errno, root = %root.path().display(), "displaced files cannot be looked at");
            }
        }
    }
    let took = begin.elapsed();
    let next = (took > SHORT).then(|| begin + took * EASE);
    workspace.with_cache(|sweeping| *sweeping = Sweeping { next, found, bytes });
}

/// Removes the oldest displaced files, once they are too much with so many bytes more. The caller holds the lock.
pub(crate) fn bound(workspace: &Workspace, added: u64) {
    let is_over = workspace.with_cache(|sweeping: &mut Sweeping| {
        sweeping.bytes += added;
        sweeping.bytes > HELD_BYTES && sweeping.is_due()
    });
    if is_over {
        sweep(workspace);
    }
}

fn sweep_root(disk: &dyn Disk, root: &Root) -> Result<Sweeping, Errno> {
    let Some(dir) = root.state().find(Part::DISPLACED).map_err(|error| error.errno())? else {
        return Ok(Sweeping::default());
    };
    let known = index::read(root.state(), &dir)?;
    let mut files = known.clone();
    add_unknown(disk, &dir, &mut files)?;
    let mut left: u64 = files.iter().filter(|file| file.standing == Standing::Held).map(DisplacedFile::counted).sum();
    let (mut kept, mut found) = (Vec::with_capacity(files.len()), 0);
    for mut file in files {
        let (age, counted, was_held) = (file.since.age(disk), file.counted(), file.standing == Standing::Held);
        let is_over = age >= HELD_FOR || (left > HELD_BYTES && age >= HELD_AT_LEAST);
        let stays = match look(disk, root, &dir, &mut file, is_over) {
            Ok(stays) => stays,
            Err(errno) => {
                tracing::warn!(%errno, file = file.path, "a displaced file cannot be looked at");
                true
            }
        };
        if was_held && (!stays || file.standing != Standing::Held) {
            left -= counted;
            found += usize::from(stays);
        }
        if stays {
            kept.push(file);
        }
    }
    if kept != known
        && let Err(errno) = index::write(disk, root.state(), &dir, &kept)
    {
        tracing::warn!(%errno, "the index of displaced files is not written");
    }
    Ok(Sweeping { next: None, found, bytes: left })
}

/// Adds the files of the directory that the index does not know: a power cut has taken their lines.
fn add_unknown(disk: &dyn Disk, dir: &OwnedFd, files: &mut Vec<DisplacedFile>) -> Result<(), Errno> {
    let known: BTreeSet<String> = files.iter().map(|file| file.name.clone()).collect();
    for name in disk::names(dir.as_fd())?.into_iter().filter(|name| !known.contains(name)) {
        let Some((digest, path)) = parse_name(&name) else { continue };
        let Some(stat) = beneath::look_up(dir.as_fd(), &name)? else { continue };
        let path = path.to_owned();
        files.push(DisplacedFile::found(name, path, digest, &stat, Since::now(disk)));
    }
    Ok(())
}

/// Looks at one file; returns whether it stays in the index.
fn look(
    disk: &dyn Disk,
    root: &Root,
    displaced: &OwnedFd,
    file: &mut DisplacedFile,
    is_over: bool,
) -> Result<bool, Errno> {
    if let Some(copy) = &file.copy {
        // It is the user's, who may move it or remove it.
        let (dir, name) = copy.rsplit_once('/').unwrap_or(("", copy));
        let Some(dir) = find_dir(root, dir)? else { return Ok(false) };
        return Ok(beneath::look_up(dir.as_fd(), name)?.is_some());
    }
    if file.beside.is_some() {
        move_at_last(disk, root, displaced, file)?;
    }
    let away = match &file.beside {
        None => None,
        Some(path) => match find_dir(root, path)? {
            Some(dir) => Some(dir),
            // With its directory it has left the root: it is where the user moved it.
            None => return Ok(false),
        },
    };
    let (dir, name) = match &away {
        None => (displaced, file.name.clone()),
        Some(dir) => (dir, beside(&file.name)),
    };
    let Some(stat) = beneath::look_up(dir.as_fd(), &name)? else { return Ok(false) };
    if file.standing == Standing::Held {
        examine(disk, dir, &name, file, &stat, is_over)?;
        if file.standing == Standing::Held && is_over {
            return disk::unlink_if_there(disk, dir.as_fd(), &name).map(|()| false);
        }
    }
    if away.is_some() && file.standing != Standing::Held && is_over && FileStamp::of(&stat).is_older(QUIET, disk.now())
    {
        copy(disk, dir, &name, displaced, file)?;
    }
    Ok(true)
}

/// A directory of a root; `None` where there is none, or something else in its place.
fn find_dir(root: &Root, path: &str) -> Result<Option<OwnedFd>, Errno> {
    match beneath::open_dir(root.dir(), path) {
        Ok(dir) => Ok(Some(dir)),
        Err(Errno::NOENT | Errno::NOTDIR | Errno::LOOP) => Ok(None),
        Err(errno) => Err(errno),
    }
}

/// Finds out whether a file that was unchanged is so still. One that has another name is on disk there.
fn examine(
    disk: &dyn Disk,
    dir: &OwnedFd,
    name: &str,
    file: &mut DisplacedFile,
    stat: &Stat,
    is_over: bool,
) -> Result<(), Errno> {
    if !is_over && file.stamp == Some(FileStamp::of(stat)) {
        return Ok(());
    }
    let found = regular::digest(dir.as_fd(), name)?;
    match found {
        Some((digest, stamp)) if Hex(digest) == file.digest => {
            file.stamp = Some(stamp).filter(|stamp| stamp.is_settled(disk.now()));
        }
        _ if stat.st_nlink > 1 => {}
        _ => (file.standing, file.stamp) = (Standing::Changed, None),
    }
    Ok(())
}

/// Moves a file that stayed in the directory of its file, where that has become possible.
fn move_at_last(disk: &dyn Disk, root: &Root, displaced: &OwnedFd, file: &mut DisplacedFile) -> Result<(), Errno> {
    let Some(path) = &file.beside else { return Ok(()) };
    let Ok(dir) = beneath::open_dir(root.dir(), path) else { return Ok(()) };
    let name = beside(&file.name);
    // A copy of it was made, and the process died before it removed the file.
    if let Some((copied, _)) = regular::digest(displaced.as_fd(), &file.name)? {
        if regular::digest(dir.as_fd(), &name)?.is_some_and(|(digest, _)| digest != copied) {
            return Ok(());
        }
        disk::unlink_if_there(disk, dir.as_fd(), &name)?;
        (file.beside, file.stamp) = (None, None);
    } else if disk.rename(dir.as_fd(), &name, displaced.as_fd(), &file.name).is_ok() {
        (file.beside, file.stamp) = (None, None);
    }
    Ok(())
}

/// Copies a displaced write that cannot be moved, and removes it from the workspace.
fn copy(disk: &dyn Disk, dir: &OwnedFd, name: &str, to: &OwnedFd, file: &mut DisplacedFile) -> Result<(), Errno> {
    // An attempt that was cut short is made anew; until the copy is whole it does not have the name of a moved file.
    let part = format!("{}.part", file.name.split('.').next().unwrap_or_default());
    disk::unlink_if_there(disk, to.as_fd(), &part)?;
    let copy = disk.create(to.as_fd(), &part, Mode::RUSR | Mode::WUSR)?;
    let from = beneath::open_file(dir.as_fd(), name)?;
    let mut buffer = vec![0; 1 << 16];
    let mut at = 0;
    loop {
        let count = reads::read_at(from.as_fd(), &mut buffer, at)?;
        if count == 0 {
            break;
        }
        disk::write_all(disk, copy.as_fd(), buffer.get(..count).ok_or(Errno::IO)?)?;
        at += count as u64;
    }
    disk.sync(copy.as_fd())?;
    disk.rename(to.as_fd(), &part, to.as_fd(), &file.name)?;
    disk::sync_dir(disk, to.as_fd())?;
    // It has another name now.
    (file.beside, file.standing) = (None, Standing::Changed);
    disk::unlink_if_there(disk, dir.as_fd(), name)
}
