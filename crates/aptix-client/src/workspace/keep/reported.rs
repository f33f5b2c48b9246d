//! The newest reports that a server has acknowledged: a server whose data directory is put back forgets that a batch
//! ended, and gets the report again.
//!
//! They are not flushed: in the place of a lost or damaged one a report is sent that holds less.

use std::os::fd::{AsFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use rustix::fs::Mode;
use rustix::io::Errno;

use crate::workspace::fs::disk;
use crate::workspace::keep::history::find::{self, Wanted};
use crate::workspace::keep::history::on_disk;
use crate::workspace::roots::own_file::{self, Found, Owner};
use crate::workspace::roots::state::{Part, StateDir, StateError};
use crate::workspace::roots::workspace::Workspace;

/// Bytes of the largest report that is kept.
const LARGEST: usize = 64 << 10;

/// Keeps the report of a batch, unless it is large.
pub(crate) fn keep(workspace: &Workspace, batch: BatchId, receipt: &[u8]) {
    if receipt.len() > LARGEST {
        return;
    }
    let kept = dir(workspace).map_err(|error| error.to_string()).and_then(|dir| {
        let name = batch.to_string();
        let bytes = own_file::seal(owner(workspace.primary().state(), &name), receipt);
        match workspace.disk().create(dir.as_fd(), &name, Mode::RUSR | Mode::WUSR) {
            Ok(file) => disk::write_all(workspace.disk(), file.as_fd(), &bytes).map_err(|errno| errno.to_string()),
            Err(Errno::EXIST) => Ok(()),
            Err(errno) => Err(errno.to_string()),
        }
    });
    if let Err(error) = kept {
        tracing::warn!(BatchId = %batch, error, "a report is not kept for a server that is set back");
    }
}

/// The report of a batch, if it is kept and whole.
///
/// # Errors
/// When the state directory cannot be used.
pub(crate) fn find(workspace: &Workspace, batch: BatchId) -> Result<Option<Vec<u8>>, StateError> {
    let dir = dir(workspace)?;
    let name = batch.to_string();
    Ok(match own_file::read(dir.as_fd(), owner(workspace.primary().state(), &name)) {
        Ok(Some(Found::Sealed(receipt))) => Some(receipt),
        Ok(Some(Found::Old(_) | Found::Damaged(_)) | None) | Err(_) => None,
    })
}

/// The new content of a file that a batch changed, from what is kept for undoing it or, where that is passages alone, the file
/// on disk. `digest` is one that the report of the batch states. As long as the report is owed the outbox has the contents.
pub(crate) fn content(workspace: &Workspace, batch: BatchId, digest: Sha256Digest) -> Option<Vec<u8>> {
    let entry = find::find(workspace, Wanted::Named(&batch.to_string())).ok()?.entry;
    let images = on_disk::images(workspace, &entry).ok()?;
    images.into_iter().filter_map(|images| images.after).find(|content| sha256(content) == digest)
}

/// Forgets the oldest reports, all but so many.
pub(crate) fn forget(workspace: &Workspace, keep: usize) {
    let forgotten = dir(workspace).ok().and_then(|dir| {
        let mut names = disk::names(dir.as_fd()).ok()?;
        names.retain(|name| name.parse::<BatchId>().is_ok());
        for name in names.iter().take(names.len().saturating_sub(keep)) {
            disk::unlink_if_there(workspace.disk(), dir.as_fd(), name).ok()?;
        }
        Some(())
    });
    if forgotten.is_none() {
        tracing::warn!("old reports are not forgotten");
    }
}

const fn owner<'a>(state: &'a StateDir, name: &'a str) -> Owner<'a> {
    Owner { part: Part::REPORTED, name, state }
}

fn dir(workspace: &Workspace) -> Result<OwnedFd, StateError> {
    workspace.primary().state().open(Part::REPORTED)
}
