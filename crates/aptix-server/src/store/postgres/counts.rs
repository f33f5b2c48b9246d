//! Counts what the store asks of PostgreSQL, for tests and benches that hold it to bounds.

use std::sync::atomic::{AtomicU64, Ordering};

/// What was asked since the store was opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Asked {
    /// Transactions that the committer committed.
    pub commits: u64,
    /// Times that the committer waited for PostgreSQL: what is sent together is one.
    pub round_trips: u64,
    /// Transactions that were committed beside the committer.
    pub other_commits: u64,
}

/// The counters.
#[derive(Debug, Default)]
pub(super) struct Counts {
    commits: AtomicU64,
    round_trips: AtomicU64,
    other_commits: AtomicU64,
}

impl Counts {
    pub(super) fn commit(&self) {
        self.commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn round_trip(&self) {
        self.round_trips.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn other_commit(&self) {
        self.other_commits.fetch_add(1, Ordering::Relaxed);
    }

    pub(super) fn so_far(&self) -> Asked {
        let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        Asked {
            commits: count(&self.commits),
            round_trips: count(&self.round_trips),
            other_commits: count(&self.other_commits),
        }
    }
}
