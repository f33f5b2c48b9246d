//! The log of calls that are refused because of who calls: so many a second at most, and without what the caller sent as a token.

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aptix_model::failure::Failure;
use tokio::time::Instant;

use crate::caller::Peer;
use crate::identity::Principal;

/// Refusals that are logged in a period.
const MOST: usize = 20;

/// How long a period is.
const PERIOD: Duration = Duration::from_secs(1);

/// Logs refused calls.
#[derive(Debug, Default)]
pub(super) struct RefusedCalls(Mutex<Option<Period>>);

#[derive(Clone, Copy, Debug)]
struct Period {
    began: Instant,
    refused: usize,
}

impl RefusedCalls {
    /// Logs that a method is refused to a caller, whose token is named if it has one that is of use.
    pub(super) fn log(&self, peer: &Peer, caller: Option<&Principal>, method: &str, failure: &Failure) {
        let Some(unlogged) = self.count() else { return };
        let token = caller.and_then(Principal::name).map(tracing::field::display);
        // A method that there is not may have any name.
        let method: String = method.chars().take(128).collect();
        tracing::warn!(caller = ?peer.caller, token, ?method, reason = failure.reason.code(), unlogged, "a call was refused");
    }

    /// How many refusals were not logged before this one; `None` if it is not to be logged either.
    fn count(&self) -> Option<usize> {
        let mut period = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        match period.as_mut().filter(|period| now.duration_since(period.began) < PERIOD) {
            Some(period) => {
                period.refused += 1;
                (period.refused <= MOST).then_some(0)
            }
            None => {
                let before = period.replace(Period { began: now, refused: 1 });
                Some(before.map_or(0, |before| before.refused.saturating_sub(MOST)))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn refusals_are_logged_up_to_a_bound_and_the_rest_is_counted() {
        let calls = RefusedCalls::default();
        let logged = |calls: &RefusedCalls| (0..3 * MOST).filter_map(|_| calls.count()).collect::<Vec<_>>();
        assert_eq!(logged(&calls), [0; MOST]);
        tokio::time::advance(PERIOD).await;
        let mut second = vec![2 * MOST];
        second.resize(MOST, 0);
        assert_eq!(logged(&calls), second);
    }
}
