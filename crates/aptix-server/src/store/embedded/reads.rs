//! Counts what is read: a batch has to read as much for a file that was edited often as for any other.

use std::sync::atomic::{AtomicU64, Ordering};

/// How often records were read since the store was opened, by calls and by writes. The reads of sweeps, retention and
/// verification are left out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Reads {
    /// Reads of one record by its key.
    pub records: u64,
    /// Reads of the records in a range of keys, however many there were. Such a read passes every version that the
    /// database still has of each.
    pub ranges: u64,
}

#[derive(Debug, Default)]
pub(super) struct Counted {
    records: AtomicU64,
    ranges: AtomicU64,
}

impl Counted {
    pub(super) fn record(&self) {
        self.records.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn range(&self) {
        self.ranges.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn so_far(&self) -> Reads {
        Reads { records: self.records.load(Ordering::Relaxed), ranges: self.ranges.load(Ordering::Relaxed) }
    }
}
