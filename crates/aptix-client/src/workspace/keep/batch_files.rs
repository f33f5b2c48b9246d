//! Files that are named by their batches.

use std::os::fd::{AsFd, OwnedFd};

use aptix_model::id::BatchId;
use rustix::fs::Dir;
use rustix::io::Errno;

use crate::workspace::fs::disk;

/// The batches that a directory has a file for, by the names that the server gave them.
pub(in crate::workspace) fn batches(dir: &OwnedFd) -> Result<Vec<BatchId>, Errno> {
    let mut batches = Vec::new();
    for entry in Dir::new(disk::open_readable(dir.as_fd())?)? {
        batches.extend(entry?.file_name().to_str().ok().and_then(|name| name.parse::<BatchId>().ok()));
    }
    batches.sort();
    Ok(batches)
}
