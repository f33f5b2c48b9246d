//! A store on disk that heals. After a failed write it takes no more of them; when the disk takes writes again, the store is
//! closed, what its files hold is read anew from the disk, and the store is opened again. What was acknowledged is there;
//! what failed is there or not, and nothing is ever acknowledged on the word of a flush that had failed.

use std::path::PathBuf;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::id::HistoryId;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use super::wrapper::Wrapper;
use super::{Answer, Space, Store, StoreError, UploadId, disk};

/// How long after a failure the disk is tried, and how long at most after another one.
const TRY_AFTER: Duration = Duration::from_secs(1);
const TRY_EVERY: Duration = Duration::from_secs(15);

/// How long a call waits while the store is opened again.
const PATIENCE: Duration = Duration::from_secs(10);

/// Opens the store in its directory.
type Open = Arc<dyn Fn() -> Result<Arc<dyn Store>, StoreError> + Send + Sync>;

/// A store that is opened again after a failed write.
pub struct HealingStore {
    shared: Arc<Shared>,
    history: HistoryId,
    closing: CancellationToken,
    tasks: TaskTracker,
}

struct Shared {
    dir: PathBuf,
    open: Open,
    /// Absent while it is opened again.
    inner: Mutex<Option<Arc<dyn Store>>>,
    health: watch::Sender<Health>,
    reopenings: watch::Sender<u64>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Health {
    Well,
    ReadOnly,
    Closed,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Option<Arc<dyn Store>>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The store, as soon as it is open.
    async fn current(&self) -> Result<Arc<dyn Store>, StoreError> {
        let mut health = self.health.subscribe();
        let open = async {
            loop {
                if let Some(store) = self.lock().clone() {
                    return Ok(store);
                }
                if *health.borrow_and_update() == Health::Closed || health.changed().await.is_err() {
                    return Err(StoreError::Closed);
                }
            }
        };
        let closed = || StoreError::ReadOnly { cause: "the store is being opened again".to_owned() };
        timeout(PATIENCE, open).await.unwrap_or_else(|_| Err(closed()))
    }

    /// Opens the store again each time that a write failed.
    async fn tend(&self) {
        loop {
            let Ok(store) = self.current().await else { return };
            store.failed().await;
            drop(store);
            self.health.send_replace(Health::ReadOnly);
            let (mut logged, mut wait) = (String::new(), TRY_AFTER);
            loop {
                sleep(wait).await;
                wait = (wait * 2).min(TRY_EVERY);
                match self.heal().await {
                    Ok(()) => break,
                    Err(error) => {
                        let error = error.to_string();
                        if logged != error {
                            tracing::warn!(error, "the store takes no writes yet");
                            logged = error;
                        }
                    }
                }
            }
            tracing::info!("the store takes writes again");
        }
    }

    async fn heal(&self) -> Result<(), StoreError> {
        let dir = self.dir.clone();
        blocking(move || disk::takes_writes(&dir)).await?;
        // Reads go on until now. Those in flight keep the former store open, and the next try finds it closed.
        let former = self.lock().take();
        if let Some(former) = former {
            // It failed before, and answers the same error again.
            let _ = former.close().await;
            blocking(move || {
                drop(former);
                Ok(())
            })
            .await?;
        }
        let dir = self.dir.clone();
        blocking(move || disk::read_anew(&dir)).await?;
        let open = Arc::clone(&self.open);
        let store = blocking(move || open()).await?;
        *self.lock() = Some(store);
        self.health.send_replace(Health::Well);
        self.reopenings.send_modify(|count| *count += 1);
        Ok(())
    }

    async fn until(&self, wanted: Health) {
        let mut health = self.health.subscribe();
        if health.wait_for(|health| *health == wanted).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, StoreError> + Send + 'static,
) -> Result<T, StoreError> {
    let done = tokio::task::spawn_blocking(work).await;
    done.unwrap_or_else(|error| Err(StoreError::Failed { action: "be opened again", cause: error.to_string() }))
}

impl HealingStore {
    /// Opens a store in a directory, now and after each failed write.
    ///
    /// # Errors
    /// When it cannot be opened now.
    pub fn open(
        dir: PathBuf,
        open: impl Fn() -> Result<Arc<dyn Store>, StoreError> + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        let store = open()?;
        let history = store.history();
        let (health, _) = watch::channel(Health::Well);
        let (inner, (reopenings, _)) = (Mutex::new(Some(store)), watch::channel(0));
        let shared = Arc::new(Shared { dir, open: Arc::new(open), inner, health, reopenings });
        let (closing, tasks) = (CancellationToken::new(), TaskTracker::new());
        let (tended, ending) = (Arc::clone(&shared), closing.clone());
        tasks.spawn(async move { ending.run_until_cancelled(tended.tend()).await });
        Ok(Self { shared, history, closing, tasks })
    }
}

impl Wrapper for HealingStore {
    /// Waits while the store is opened again.
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        Box::pin(async move {
            let store = self.shared.current().await?;
            question(&*store).await
        })
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn discard_upload(&self, upload: UploadId) {
        // What is unfinished when the store is opened again is removed then.
        if let Some(store) = self.shared.lock().as_ref() {
            store.discard_upload(upload);
        }
    }

    fn space(&self) -> Answer<'_, Option<Space>> {
        let dir = self.shared.dir.clone();
        Box::pin(blocking(move || match disk::space(&dir) {
            Ok(space) => Ok(Some(space)),
            Err(error) => Err(StoreError::Failed { action: "learn its space", cause: error.to_string() }),
        }))
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.shared.until(Health::ReadOnly))
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.shared.until(Health::Well))
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        self.shared.reopenings.subscribe()
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            self.closing.cancel();
            self.tasks.close();
            self.tasks.wait().await;
            let store = self.shared.lock().take();
            self.shared.health.send_replace(Health::Closed);
            match store {
                Some(store) => store.close().await,
                None => Err(StoreError::Closed),
            }
        })
    }
}
