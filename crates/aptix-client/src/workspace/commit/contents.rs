//! The new contents of batches that the server is owed, each named by its digest: in one directory for each batch.

use std::os::fd::{AsFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::fs::disk::{self, Disk};
use crate::workspace::fs::{beneath, errno};
use crate::workspace::roots::own_file;
use crate::workspace::roots::state::{OwnError, Part, StateDir};

/// One content, by its digest; `None` where there is none, or none that has this digest.
pub(crate) fn read(outbox: &OwnedFd, batch: BatchId, digest: Sha256Digest) -> Result<Option<Vec<u8>>, Errno> {
    let dir = beneath::open_dir(outbox.as_fd(), &contents_name(&batch.to_string()));
    let Some(dir) = errno::optional(dir)? else { return Ok(None) };
    let bytes = own_file::read_whole(dir.as_fd(), &digest.to_string())?;
    Ok(bytes.filter(|bytes| {
        let is_whole = sha256(bytes) == digest;
        if !is_whole {
            tracing::error!(BatchId = %batch, %digest, "a content that is kept for the server is damaged and is not sent");
        }
        is_whole
    }))
}

fn contents_name(batch: &str) -> String {
    format!("{batch}.d")
}

/// Makes the place for a batch's new contents, empty.
pub(crate) fn open(disk: &dyn Disk, state: &StateDir, batch: &str) -> Result<OwnedFd, OwnError> {
    let outbox = state.open(Part::OUTBOX)?;
    remove(disk, &outbox, batch)?;
    let name = contents_name(batch);
    disk.make_dir(outbox.as_fd(), &name, Mode::RWXU)?;
    Ok(beneath::open_dir(outbox.as_fd(), &name)?)
}

/// Keeps one new content. It is durable once the file that is returned, if any, is, and [`sync`] was called.
pub(crate) fn put(
    disk: &dyn Disk,
    dir: &OwnedFd,
    digest: Sha256Digest,
    bytes: &[u8],
) -> Result<Option<OwnedFd>, Errno> {
    if beneath::look_up(dir.as_fd(), &digest.to_string())?.is_some() {
        return Ok(None);
    }
    let file = disk.create(dir.as_fd(), &digest.to_string(), Mode::RUSR | Mode::WUSR)?;
    disk::write_all(disk, file.as_fd(), bytes)?;
    Ok(Some(file))
}

/// Makes the names of new contents durable.
pub(crate) fn sync(disk: &dyn Disk, state: &StateDir, dir: &OwnedFd) -> Result<(), OwnError> {
    let outbox = state.open(Part::OUTBOX)?;
    disk::sync_dir(disk, dir.as_fd())?;
    Ok(disk::sync_dir(disk, outbox.as_fd())?)
}

/// The batches that have contents here.
pub(crate) fn batches(outbox: &OwnedFd) -> Result<Vec<String>, Errno> {
    let names = disk::names(outbox.as_fd())?;
    Ok(names.iter().filter_map(|name| name.strip_suffix(".d")).map(str::to_owned).collect())
}

pub(crate) fn remove(disk: &dyn Disk, outbox: &OwnedFd, batch: &str) -> Result<(), Errno> {
    let name = contents_name(batch);
    let Some(dir) = errno::optional(beneath::open_dir(outbox.as_fd(), &name))? else { return Ok(()) };
    for file in disk::names(dir.as_fd())? {
        disk::unlink_if_there(disk, dir.as_fd(), &file)?;
    }
    disk.remove_dir(outbox.as_fd(), &name)
}
