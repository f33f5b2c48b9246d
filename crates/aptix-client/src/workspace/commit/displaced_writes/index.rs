//! The index of displaced files: one line for each, appended when it is moved. A line is a checksum and JSON; a later line
//! of the same name replaces an earlier one, and a damaged line is left out: the file's own name then shows what it held.

use std::os::fd::{AsFd, OwnedFd};

use rustix::fs::Stat;
use rustix::io::Errno;

use super::displaced_file::DisplacedFile;
use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::roots::own_file::{self, Temporary};
use crate::workspace::roots::own_lines;
use crate::workspace::roots::state::{Part, StateDir};

/// The name of the index, with the version of its form.
pub(super) const NAME: &str = "index-1";

/// Adds files; a power cut may revert that.
pub(super) fn append(disk: &dyn Disk, state: &StateDir, dir: &OwnedFd, files: &[&DisplacedFile]) -> Result<(), Errno> {
    let file = disk.open_own(dir.as_fd(), NAME)?;
    let end = u64::try_from(rustix::fs::fstat(&file)?.st_size).unwrap_or_default();
    // The line before may have been cut short.
    let lines: Vec<u8> =
        std::iter::once(b'\n').chain(files.iter().flat_map(|file| own_lines::encode(state, *file))).collect();
    disk::write_all_at(disk, file.as_fd(), &lines, end)
}

/// Makes the index and the names in its directory durable.
pub(super) fn sync(disk: &dyn Disk, dir: &OwnedFd) -> Result<(), Errno> {
    let file = disk.open_own(dir.as_fd(), NAME)?;
    disk.sync(file.as_fd())?;
    disk::sync_dir(disk, dir.as_fd())
}

/// Replaces the whole index; durable if it is needed to find a file again.
pub(super) fn write(disk: &dyn Disk, state: &StateDir, dir: &OwnedFd, files: &[DisplacedFile]) -> Result<(), Errno> {
    let bytes: Vec<u8> = files.iter().flat_map(|file| own_lines::encode(state, file)).collect();
    let tmp = state.open(Part::TMP).map_err(|error| error.errno())?;
    let mut new = Temporary::make(disk, tmp.as_fd())?;
    new.write(&bytes)?;
    match files.iter().any(|file| file.beside.is_some()) {
        true => new.put_durably(dir.as_fd(), NAME),
        false => new.put(dir.as_fd(), NAME).map(drop),
    }
}

/// Holds the index open, so that no other gets its inode. What is known of a file changes by a new index alone: lines that are
/// appended are of files that no process has written to yet.
pub(super) fn hold(dir: &OwnedFd) -> Result<Option<OwnedFd>, Errno> {
    errno::optional(beneath::open_file(dir.as_fd(), NAME))
}

/// Whether an index that is held is the one that there is.
pub(super) fn is_current(dir: &OwnedFd, held: Option<&OwnedFd>) -> Result<bool, Errno> {
    let identity = |stat: Stat| (stat.st_dev, stat.st_ino);
    let now = beneath::look_up(dir.as_fd(), NAME)?.map(identity);
    Ok(now == held.map(rustix::fs::fstat).transpose()?.map(identity))
}

/// The files of the index, oldest first.
pub(super) fn read(state: &StateDir, dir: &OwnedFd) -> Result<Vec<DisplacedFile>, Errno> {
    let bytes = own_file::read_whole(dir.as_fd(), NAME)?.unwrap_or_default();
    let mut files: Vec<DisplacedFile> = Vec::new();
    let mut places = std::collections::HashMap::new();
    for line in bytes.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
        let Some(file) = own_lines::decode::<DisplacedFile>(state, line) else {
            tracing::warn!("a line of the index of displaced files is damaged and left out");
            continue;
        };
        match places.get(&file.name).and_then(|at: &usize| files.get_mut(*at)) {
            Some(known) => *known = file,
            None => {
                places.insert(file.name.clone(), files.len());
                files.push(file);
            }
        }
    }
    Ok(files)
}
