//! How long to wait before trying again: longer each time, never the same for two agents.

use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

use super::CallError;

/// The longest that is waited because the server asks for it.
const LONGEST_ASKED: Duration = Duration::from_secs(300);

/// The waits of one thing that keeps failing.
#[derive(Clone, Debug)]
pub(crate) struct Backoff {
    next: Duration,
    most: Duration,
}

impl Backoff {
    /// Begins with this wait and doubles it up to that one.
    pub(crate) const fn new(first: Duration, most: Duration) -> Self {
        Self { next: first, most }
    }

    /// The next wait: between a half and the whole of the present one, at random, so that the agents of a server that
    /// comes back do not all come at once.
    pub(crate) fn wait(&mut self) -> Duration {
        let whole = self.next;
        self.next = (whole * 2).min(self.most);
        let draw = u32::try_from(RandomState::new().hash_one(()) % 1001).unwrap_or_default();
        whole / 2 + whole / 2000 * draw
    }

    /// The next wait after this error: as long as the server asks for, if that is longer, and up to five minutes of it.
    pub(crate) fn wait_after(&mut self, error: &CallError) -> Duration {
        self.wait().max(error.retry_after().unwrap_or_default().min(LONGEST_ASKED))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_their_bound_and_differ() {
        let mut backoff = Backoff::new(Duration::from_millis(100), Duration::from_secs(5));
        let waits: Vec<_> = (0..20).map(|_| backoff.wait()).collect();
        assert!((Duration::from_millis(50)..=Duration::from_millis(100)).contains(&waits[0]), "{waits:?}");
        let last = &waits[10..];
        assert!(last.iter().all(|wait| (Duration::from_millis(2500)..=Duration::from_secs(5)).contains(wait)));
        assert!(last.iter().any(|wait| *wait != last[0]), "{last:?}");
    }
}
