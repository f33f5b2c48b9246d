//! The time by which the server decides what has expired and how old something is: the time of day, unless it jumps. What has expired
//! stays so, so that a clock which is wrong for a moment must not decide it.

use std::fmt;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use aptix_model::record::UnixMillis;

use crate::mint;

/// The most by which the time of day may run ahead of the time that passed, and be followed at once.
const FOLLOWED: Duration = Duration::from_secs(3600);
/// How long it must have been ahead by more than that before it is followed.
pub const HELD: Duration = Duration::from_secs(60);

/// Reads the time of day, and the time that passed since some moment by a clock that nobody sets.
type Source = Box<dyn Fn() -> (UnixMillis, Duration) + Send + Sync>;

/// A clock that never goes back, and goes forward by more than an hour only if the time of day stays there for a minute. It notices
/// what the time of day does when it is read: whoever decides by it reads it at least twice a minute.
pub struct SteadyClock {
    source: Source,
    believed: Mutex<Believed>,
}

impl Default for SteadyClock {
    fn default() -> Self {
        let began = Instant::now();
        Self::of(move || (mint::now(), began.elapsed()))
    }
}

impl fmt::Debug for SteadyClock {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("SteadyClock").field("believed", &self.believed).finish_non_exhaustive()
    }
}

impl SteadyClock {
    /// A clock that reads the time of day and the time that passed from `source`, and believes the first time of day.
    pub fn of(source: impl Fn() -> (UnixMillis, Duration) + Send + Sync + 'static) -> Self {
        let (time, at) = source();
        let believed = Mutex::new(Believed { time, at, ahead_since: None });
        Self { source: Box::new(source), believed }
    }

    /// The time now: never earlier than it was before.
    #[must_use]
    pub fn now(&self) -> UnixMillis {
        let mut believed = self.believed.lock().unwrap_or_else(PoisonError::into_inner);
        let (time_of_day, at) = (self.source)();
        believed.look(time_of_day, at)
    }

    /// The time now, or the time of day if that is earlier: what is not old by this is old by neither.
    #[must_use]
    pub fn earliest_now(&self) -> UnixMillis {
        self.now().min((self.source)().0)
    }

    /// Sets the clock forward to a time, if it is behind it.
    pub fn raise(&self, floor: UnixMillis) {
        let mut believed = self.believed.lock().unwrap_or_else(PoisonError::into_inner);
        let (time_of_day, at) = (self.source)();
        if floor > believed.look(time_of_day, at) {
            *believed = Believed { time: floor, at, ahead_since: None };
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Believed {
    /// A time that was believed, and when that was.
    time: UnixMillis,
    at: Duration,
    /// Since when the time of day has been too far ahead.
    ahead_since: Option<Duration>,
}

impl Believed {
    /// The time at a moment at which this is the time of day.
    fn look(&mut self, time_of_day: UnixMillis, at: Duration) -> UnixMillis {
        let passed = later(self.time, at.saturating_sub(self.at));
        if time_of_day <= later(passed, FOLLOWED) {
            self.ahead_since = None;
        } else if at.saturating_sub(*self.ahead_since.get_or_insert(at)) < HELD {
            return passed;
        }
        // Only what the time of day adds is kept, so that no millisecond is lost to rounding.
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
    use std::sync::Arc;

    use super::*;

    const START: u64 = 1_700_000_000_000;
    const YEAR: u64 = 31_536_000_000;

    /// A clock, and what it reads: the time of day and the time that passed, in milliseconds.
    fn clock() -> (SteadyClock, impl Fn(u64, u64)) {
        let read = Arc::new(Mutex::new((START, 0)));
        let source = Arc::clone(&read);
        let clock = SteadyClock::of(move || {
            let (time_of_day, passed) = *source.lock().unwrap();
            (UnixMillis(time_of_day), Duration::from_millis(passed))
        });
        (clock, move |time_of_day, passed| *read.lock().unwrap() = (time_of_day, passed))
    }

    /// What the clock shows, from its start, where the time of day is off by so many milliseconds after so many seconds.
    fn off(looks: &[(u64, i64)]) -> Vec<i64> {
        let (clock, set) = clock();
        let look = |(seconds, off): &(u64, i64)| {
            let truth = START + seconds * 1000;
            set(truth.saturating_add_signed(*off), seconds * 1000);
            i64::try_from(clock.now().0).unwrap() - i64::try_from(truth).unwrap()
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

    /// A floor is believed at once, time passes from there, and a time of day behind it is not followed.
    #[test]
    fn a_clock_that_was_raised_runs_on_from_there() {
        let (clock, set) = clock();
        clock.raise(UnixMillis(START + YEAR));
        clock.raise(UnixMillis(START + 1));
        set(START + 5000, 5000);
        assert_eq!(clock.now(), UnixMillis(START + YEAR + 5000));
        assert_eq!(clock.earliest_now(), UnixMillis(START + 5000));
        set(START + 2 * YEAR, 6000);
        assert_eq!(clock.earliest_now(), UnixMillis(START + YEAR + 6000), "a jump makes nothing old");
    }
}
