//! Removes blobs that no batch and no file names, and uploads that nobody goes on with: at intervals, and when the owner asks.

use std::convert::Infallible;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aptix_model::record::UnixMillis;
use tokio::sync::Mutex;
use tokio::time::{Instant, sleep, timeout};

use crate::dispatcher::Dispatcher;
use crate::metrics::{self, Metric};
use crate::mint;
use crate::store::Store;

/// The longest time between two sweeps.
const AT_LEAST_EVERY: Duration = Duration::from_secs(3600);
/// The longest time from a start to the first sweep: a server that runs for less than that each time removes nothing.
const FIRST_WITHIN: Duration = Duration::from_secs(120);
/// How soon after a sweep another one may begin that nothing was removed for.
const NOT_AGAIN_WITHIN: Duration = Duration::from_secs(60);
/// How long a call waits for a sweep.
const WAITED_FOR: Duration = Duration::from_secs(20);
/// The shortest time between two sweeps.
const SHORTEST: Duration = Duration::from_millis(20);

/// Sweeps the blobs of a store.
pub struct BlobSweep {
    store: Arc<dyn Store>,
    dispatcher: Arc<Dispatcher>,
    retention: Duration,
    /// When the last sweep ended.
    last: Mutex<Option<Instant>>,
    /// Whether something was removed since the last sweep began that may have named blobs.
    is_due: AtomicBool,
}

impl fmt::Debug for BlobSweep {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("BlobSweep").field("retention", &self.retention).finish_non_exhaustive()
    }
}

impl BlobSweep {
    /// Sweeps from this store what is older than `retention` by the clock of the dispatcher.
    #[must_use]
    pub fn new(store: Arc<dyn Store>, dispatcher: Arc<Dispatcher>, retention: Duration) -> Arc<Self> {
        Arc::new(Self { store, dispatcher, retention, last: Mutex::new(None), is_due: AtomicBool::new(false) })
    }

    /// Sweeps soon after the start, and then once in every hour or `retention`, if that is shorter, for as long as it is polled and no
    /// other server on the store has to.
    pub async fn run(&self) -> Infallible {
        let longest = self.retention.min(AT_LEAST_EVERY);
        // Servers that start together sweep at different times: in the second half of each interval.
        let mut within = FIRST_WITHIN.min(longest / 2);
        loop {
            sleep(mint::spread(within / 2).max(SHORTEST)).await;
            if self.dispatcher.is_first() {
                self.sweep(&mut *self.last.lock().await).await;
            }
            within = longest;
        }
    }

    /// Notes that content or records were removed that may have named blobs.
    pub fn expect_more(&self) {
        self.is_due.store(true, Ordering::SeqCst);
    }

    /// Sweeps now, unless that was done within the last minute and nothing was removed since; for as long as the owner waits for an
    /// answer at most: the next sweep does the rest.
    pub async fn sweep_again(&self) {
        if timeout(WAITED_FOR, self.sweep_if_due()).await.is_err() {
            tracing::info!("unnamed blobs are left for the next sweep");
        }
    }

    async fn sweep_if_due(&self) {
        let mut last = self.last.lock().await;
        if self.is_due.load(Ordering::SeqCst) || last.is_none_or(|last| last.elapsed() >= NOT_AGAIN_WITHIN) {
            self.sweep(&mut last).await;
        }
    }

    async fn sweep(&self, last: &mut Option<Instant>) {
        let was_due = Due(&self.is_due, self.is_due.swap(false, Ordering::SeqCst));
        let millis = u64::try_from(self.retention.as_millis()).unwrap_or(u64::MAX);
        let before = UnixMillis(self.dispatcher.earliest_now().0.saturating_sub(millis));
        let began = Instant::now();
        let swept = self.store.sweep_blobs(before).await;
        Metric::SweepSeconds.took(&[], began.elapsed());
        match swept {
            Ok(0) => {}
            Ok(swept) => {
                Metric::SweptBlobs.add(&[], metrics::count(swept));
                tracing::info!(swept, "unnamed blobs were removed");
            }
            Err(error) => tracing::warn!(%error, "unnamed blobs could not be removed"),
        }
        *last = Some(Instant::now());
        was_due.done();
    }
}

/// Whether a sweep was due when it began: one that is given up leaves it due.
struct Due<'a>(&'a AtomicBool, bool);

impl Due<'_> {
    fn done(mut self) {
        self.1 = false;
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        if self.1 {
            self.0.store(true, Ordering::SeqCst);
        }
    }
}
