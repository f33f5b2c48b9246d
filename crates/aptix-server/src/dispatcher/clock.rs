//! The time by which batches expire.

use std::sync::{Mutex, PoisonError};
use std::time::Instant;

use aptix_model::record::UnixMillis;

use crate::mint;

/// The time of day, as long as that goes on: a clock that is set back is not followed, and time still passes.
#[derive(Debug)]
pub(super) struct Clock {
    latest: Mutex<(UnixMillis, Instant)>,
    time_of_day: fn() -> UnixMillis,
}

impl Default for Clock {
    fn default() -> Self {
        Self::by(mint::now)
    }
}

impl Clock {
    /// A clock that follows this time of day.
    pub(super) fn by(time_of_day: fn() -> UnixMillis) -> Self {
        Self { latest: Mutex::new((time_of_day(), Instant::now())), time_of_day }
    }

    /// Sets the clock forward to a time, if it is behind it.
    pub(super) fn raise(&self, floor: UnixMillis) {
        let now = self.now();
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        if floor > now {
            *latest = (floor, Instant::now());
        }
    }

    /// The time now: never earlier than it was before.
    pub(super) fn now(&self) -> UnixMillis {
        let mut latest = self.latest.lock().unwrap_or_else(PoisonError::into_inner);
        let (then, since) = *latest;
        let passed = u64::try_from(since.elapsed().as_millis()).unwrap_or(u64::MAX);
        let now = (self.time_of_day)().max(UnixMillis(then.0.saturating_add(passed)));
        // Only what the time of day adds is kept, so that no millisecond is lost to rounding.
        if now.0 > then.0.saturating_add(passed) {
            *latest = (now, Instant::now());
        }
        now
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;

    static TIME_OF_DAY: AtomicU64 = AtomicU64::new(1_000_000);

    /// A clock that is set forward is followed; one that is set back is not.
    #[test]
    fn time_never_goes_back() {
        let clock = Clock::by(|| UnixMillis(TIME_OF_DAY.load(Ordering::SeqCst)));
        let first = clock.now();
        assert!(first >= UnixMillis(1_000_000));
        TIME_OF_DAY.store(5_000_000, Ordering::SeqCst);
        let later = clock.now();
        assert!(later >= UnixMillis(5_000_000));
        TIME_OF_DAY.store(10, Ordering::SeqCst);
        assert!(clock.now() >= later);
        clock.raise(UnixMillis(4_000_000));
        assert!(clock.now() < UnixMillis(6_000_000));
        clock.raise(UnixMillis(9_000_000));
        assert!(clock.now() >= UnixMillis(9_000_000));
    }
}
