//! The time by which tokens expire: the time of day, unless it jumps. A token that has ended stays ended, so a clock that is set wrong for
//! a moment must not end one.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aptix_model::record::UnixMillis;

use crate::mint;

/// The most by which the time of day may run ahead of the time that passed, and be followed at once.
const FOLLOWED: Duration = Duration::from_secs(3600);
/// How long it must have been ahead by more than that before it is followed.
pub(super) const HELD: Duration = Duration::from_secs(60);

/// A clock that never goes back, and goes forward by more than an hour only if the time of day stays there for a minute.
#[derive(Debug)]
pub(super) struct TokenClock {
    began: Instant,
    believed: Mutex<Believed>,
}

impl TokenClock {
    pub(super) fn begin() -> Self {
        let believed = Believed { time: mint::now(), at: Duration::ZERO, ahead_since: None };
        Self { began: Instant::now(), believed: Mutex::new(believed) }
    }

    /// The time now.
    pub(super) fn now(&self) -> UnixMillis {
        let mut believed = self.believed.lock().unwrap_or_else(PoisonError::into_inner);
        believed.look(mint::now(), self.began.elapsed())
    }
}

#[derive(Clone, Copy, Debug)]
struct Believed {
    /// A time that was believed, and when that was, since the clock began.
    time: UnixMillis,
    at: Duration,
    /// Since when the time of day has been too far ahead.
    ahead_since: Option<Duration>,
}

impl Believed {
    /// The time at a moment since the clock began, at which this is the time of day.
    fn look(&mut self, time_of_day: UnixMillis, at: Duration) -> UnixMillis {
        let passed = later(self.time, at.saturating_sub(self.at));
        if time_of_day <= later(passed, FOLLOWED) {
            self.ahead_since = None;
        } else if at.saturating_sub(*self.ahead_since.get_or_insert(at)) < HELD {
            return passed;
        }
        if time_of_day > passed {
            *self = Self { time: time_of_day, at, ahead_since: None };
        }
        time_of_day.max(passed)
    }
}

fn later(time: UnixMillis, by: Duration) -> UnixMillis {
    UnixMillis(time.0.saturating_add(u64::try_from(by.as_millis()).unwrap_or(u64::MAX)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: u64 = 1_700_000_000_000;
    const YEAR: u64 = 31_536_000_000;

    /// What the clock says, from its start, where the time of day is off by so many milliseconds after so many seconds.
    fn off(looks: &[(u64, i64)]) -> Vec<i64> {
        let mut believed = Believed { time: UnixMillis(START), at: Duration::ZERO, ahead_since: None };
        let look = |(seconds, off): &(u64, i64)| {
            let truth = START + seconds * 1000;
            let said = believed.look(UnixMillis(truth.saturating_add_signed(*off)), Duration::from_secs(*seconds));
            i64::try_from(said.0).unwrap() - i64::try_from(truth).unwrap()
        };
        looks.iter().map(look).collect()
    }

    #[test]
    fn a_small_step_forward_is_followed_and_none_back() {
        assert_eq!(off(&[(1, 0), (2, 3_600_000), (3, 0), (4, -9_000_000)]), [0, 3_600_000, 3_600_000, 3_600_000]);
    }

    #[test]
    fn a_jump_is_followed_once_it_held_for_a_minute() {
        let ahead = i64::try_from(YEAR).unwrap();
        assert_eq!(off(&[(1, ahead), (30, ahead), (60, ahead), (61, ahead), (62, 0)]), [0, 0, 0, ahead, ahead]);
        assert_eq!(off(&[(1, ahead), (59, ahead), (60, 0), (62, ahead), (121, ahead)]), [0; 5], "it did not hold");
    }
}
