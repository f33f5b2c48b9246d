//! Limits how many batches are refused in a minute: a server that probes learns little in a day, whatever refusals reveal.

use std::collections::VecDeque;
use std::num::NonZeroU32;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::Notify;
use tokio::time::Instant;

/// How long a refusal counts.
const MINUTE: Duration = Duration::from_secs(60);

/// The refusals of the last minute, and the batches that may become one.
#[derive(Debug, Default)]
pub(super) struct Quota {
    state: Mutex<State>,
    changed: Notify,
}

#[derive(Debug, Default)]
struct State {
    /// When batches were refused, oldest first; never more than the largest limit that held.
    refused: VecDeque<Instant>,
    /// Batches that were begun and have not ended.
    begun: usize,
}

/// A batch that was begun. It counts as refused if [`Self::refused`] is called before this is dropped.
#[derive(Debug)]
pub(super) struct Begun {
    quota: Arc<Quota>,
    is_refused: bool,
}

impl Quota {
    /// Waits until one more batch may be refused; cancel by dropping. Time is that of a monotonic clock.
    pub(super) async fn begin(self: &Arc<Self>, most: NonZeroU32) -> Begun {
        let mut is_logged = false;
        loop {
            let changed = self.changed.notified();
            let free_at = {
                let mut state = self.state();
                let now = Instant::now();
                while state.refused.front().is_some_and(|refused| now.duration_since(*refused) >= MINUTE) {
                    state.refused.pop_front();
                }
                if state.refused.len() + state.begun < most.get() as usize {
                    state.begun += 1;
                    return Begun { quota: Arc::clone(self), is_refused: false };
                }
                state.refused.front().map(|refused| *refused + MINUTE)
            };
            if !is_logged {
                tracing::warn!(
                    most,
                    "so many batches were refused in a minute that the next one waits until it is over"
                );
                is_logged = true;
            }
            match free_at {
                Some(free_at) => drop(tokio::time::timeout_at(free_at, changed).await),
                None => changed.await,
            }
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Begun {
    /// Counts the batch as refused.
    pub(super) fn refused(mut self) {
        self.is_refused = true;
    }
}

impl Drop for Begun {
    fn drop(&mut self) {
        let mut state = self.quota.state();
        state.begun = state.begun.saturating_sub(1);
        if self.is_refused {
            state.refused.push_back(Instant::now());
        }
        drop(state);
        // All look again: each may have another limit by now.
        self.quota.changed.notify_waiters();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::REFUSED_PER_MINUTE;

    async fn has_to_wait(quota: &Arc<Quota>) -> bool {
        tokio::time::timeout(Duration::from_millis(1), quota.begin(REFUSED_PER_MINUTE)).await.is_err()
    }

    #[tokio::test(start_paused = true)]
    async fn sixty_batches_are_refused_in_a_minute_and_the_next_one_when_it_is_over() {
        let quota = Arc::new(Quota::default());
        for _ in 0..1000 {
            drop(quota.begin(REFUSED_PER_MINUTE).await);
        }
        let began = Instant::now();
        for number in 0..60 {
            quota.begin(REFUSED_PER_MINUTE).await.refused();
            if number < 30 {
                tokio::time::advance(Duration::from_secs(1)).await;
            }
        }
        assert!(has_to_wait(&quota).await);
        for number in 60..90 {
            quota.begin(REFUSED_PER_MINUTE).await.refused();
            let (passed, least) = (began.elapsed(), Duration::from_secs(number));
            assert!(passed >= least && passed < least + Duration::from_secs(1), "{number}: {passed:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn batches_under_way_count_until_they_end() {
        let quota = Arc::new(Quota::default());
        let mut begun = Vec::new();
        for _ in 0..60 {
            begun.push(quota.begin(REFUSED_PER_MINUTE).await);
        }
        assert!(has_to_wait(&quota).await);
        // One that was not refused makes room at once; one that was, after a minute.
        drop(begun.pop());
        let one_more = quota.begin(REFUSED_PER_MINUTE).await;
        one_more.refused();
        assert!(has_to_wait(&quota).await);
        tokio::time::advance(MINUTE).await;
        assert!(!has_to_wait(&quota).await);
    }
}
