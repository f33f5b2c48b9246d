//! What is known of the disk that the store is on.

use tokio::sync::watch;

use crate::store::Space;

/// The part of a small disk that is reserved at most.
const LARGEST_SHARE: u64 = 20;

/// What is known of the disk.
#[derive(Debug)]
pub(super) struct Disk {
    /// Bytes that stay free.
    reserve: u64,
    /// The space when it was looked at last, while less than the reserve is free.
    pub(super) low: watch::Sender<Option<Space>>,
}

impl Disk {
    pub(super) fn new(reserve: u64) -> Self {
        Self { reserve, low: watch::channel(None).0 }
    }

    /// Bytes that stay free of a disk.
    pub(super) fn reserve_of(&self, space: Space) -> u64 {
        self.reserve.min(space.size / LARGEST_SHARE)
    }
}
