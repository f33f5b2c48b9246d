//! The clock of one connection: reads the time of day once, then counts on a monotonic clock. Whoever sets the time of day
//! makes no prepared edit expire, revives none, and moves none before another.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

use aptix_model::record::UnixMillis;

/// A clock that never goes back and never jumps.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    time_of_day: UnixMillis,
    since: Instant,
}

impl Clock {
    #[expect(clippy::disallowed_methods, reason = "the edge of the program reads the clock")]
    pub(super) fn start() -> Self {
        let time_of_day = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { time_of_day: UnixMillis(millis(time_of_day)), since: Instant::now() }
    }

    pub(super) fn now(&self) -> UnixMillis {
        UnixMillis(self.time_of_day.0.saturating_add(millis(self.since.elapsed())))
    }
}

fn millis(time: std::time::Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}
