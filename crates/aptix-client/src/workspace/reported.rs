//! Reports that a server has acknowledged, the newest of them: a server whose data directory is put back forgets that a
//! batch ended, and is told again.
//!
//! They are kept as well as can be and not flushed: what is lost or damaged is a report that says less.

use std::os::fd::{AsFd, OwnedFd};

use aptix_engine::digest::sha256;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use rustix::fs::Mode;
use rustix::io::Errno;

use super::history::find::Wanted;
use super::state::StateError;
use super::{Workspace, disk, history, journal, outbox};

/// Bytes of the largest report that is kept.
const LARGEST: usize = 64 << 10;
/// Bytes of the checksum before it.
const CHECKSUM: usize = 32;

/// Keeps the report of a batch, unless it is large.
pub(crate) fn keep(workspace: &Workspace, batch: BatchId, receipt: &[u8]) {
    if receipt.len() > LARGEST {
        return;
    }
    let kept = dir(workspace).map_err(|error| error.to_string()).and_then(|dir| {
        let bytes = [sha256(receipt).as_bytes().as_slice(), receipt].concat();
        match workspace.disk().create(dir.as_fd(), &batch.to_string(), Mode::RUSR | Mode::WUSR) {
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
    let Ok(Some(bytes)) = journal::read_whole(&dir, &batch.to_string()) else { return Ok(None) };
    let receipt = bytes.split_at_checked(CHECKSUM).filter(|(sum, body)| *sum == sha256(body).as_bytes().as_slice());
    Ok(receipt.map(|(_, receipt)| receipt.to_vec()))
}

/// The new content of a file that a batch changed whose report was acknowledged, and so its content uploaded: from what is
/// kept for undoing it.
pub(crate) fn content(workspace: &Workspace, batch: BatchId, digest: Sha256Digest) -> Option<Vec<u8>> {
    find(workspace, batch).ok().flatten()?;
    let entry = history::find::find(workspace, Wanted::Named(&batch.to_string())).ok()?.entry;
    let images = history::images(&entry).ok()?;
    images.into_iter().filter_map(|images| images.after).find(|content| sha256(content) == digest)
}

/// Forgets the oldest reports, all but so many.
pub(crate) fn forget(workspace: &Workspace, keep: usize) {
    let forgotten = dir(workspace).ok().and_then(|dir| {
        let batches = outbox::batches(&dir).ok()?;
        for batch in batches.iter().take(batches.len().saturating_sub(keep)) {
            disk::unlink_if_there(workspace.disk(), dir.as_fd(), &batch.to_string()).ok()?;
        }
        Some(())
    });
    if forgotten.is_none() {
        tracing::warn!("old reports are not forgotten");
    }
}

fn dir(workspace: &Workspace) -> Result<OwnedFd, StateError> {
    workspace.primary().state().open_reported()
}
