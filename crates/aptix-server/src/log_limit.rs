//! Bounds how many lines of one kind are logged in a second, and counts the others.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

/// Lines that are logged in a period.
const MOST: usize = 20;

/// How long a period is.
const PERIOD: Duration = Duration::from_secs(1);

/// The bound on lines of one kind.
#[derive(Debug, Default)]
pub(crate) struct LogLimit(Mutex<Option<Period>>);

#[derive(Clone, Copy, Debug)]
struct Period {
    began: Instant,
    lines: usize,
}

impl LogLimit {
    /// How many lines were not logged before this one; `None` if this one is not to be logged either.
    pub(crate) fn count(&self) -> Option<usize> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match period.as_mut().filter(|period| now.duration_since(period.began) < PERIOD) {
            Some(period) => {
                period.lines += 1;
                (period.lines <= MOST).then_some(0)
            }
            None => {
                let before = period.replace(Period { began: now, lines: 1 });
                Some(before.map_or(0, |before| before.lines.saturating_sub(MOST)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn lines_are_logged_up_to_a_bound_and_the_rest_is_counted() {
        let limit = LogLimit::default();
        let logged = |limit: &LogLimit| (0..3 * MOST).filter_map(|_| limit.count()).collect::<Vec<_>>();
        assert_eq!(logged(&limit), [0; MOST]);
        tokio::time::advance(PERIOD).await;
        let mut second = vec![2 * MOST];
        second.resize(MOST, 0);
        assert_eq!(logged(&limit), second);
    }
}
