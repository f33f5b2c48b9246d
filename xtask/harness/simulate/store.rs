//! The store of a simulated server: it dies with the server, holds simulated time while it works, and can have a defect.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock};
use std::time::Duration;

use aptix_model::id::{BatchId, HistoryId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_server::store::retention::{Limits, Retention};
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{
    Answer, Appended, BatchSelector, Event, Listed, Store, StoreError, Transition, Transitioned, UploadId,
};
use tokio::runtime::Handle;
use tokio::sync::watch;
use tokio::task::spawn_blocking;

use crate::defect::Defect;
use crate::workers::with;

/// What a store will answer, for as long as it takes.
type Work<T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send>>;

/// A store that dies with its server.
pub(crate) struct Mortal {
    inner: Mutex<Option<Arc<dyn Store>>>,
    history: HistoryId,
    defect: Option<Defect>,
    /// Calls that the defect could be in.
    calls: AtomicUsize,
    /// Held by each call, and by retention alone: nothing happens between its looks. `None` where the store beneath answers at once:
    /// then nothing happens between anyway.
    alone: Option<Arc<RwLock<()>>>,
}

impl Mortal {
    /// Over a store that works for a while on each answer.
    pub(crate) fn new(inner: Arc<dyn Store>, defect: Option<Defect>) -> Self {
        Self { alone: Some(Arc::default()), ..Self::at_once(inner, defect) }
    }

    /// Over a store that has each answer at once.
    pub(crate) fn at_once(inner: Arc<dyn Store>, defect: Option<Defect>) -> Self {
        let history = inner.history();
        Self { inner: Mutex::new(Some(inner)), history, defect, calls: AtomicUsize::new(0), alone: None }
    }

    /// Answers nothing more; what was being written may be durable.
    pub(crate) fn die(&self) {
        with(&self.inner, Option::take);
    }

    fn inner(&self) -> Option<Arc<dyn Store>> {
        with(&self.inner, |inner| inner.clone())
    }

    /// Whether the store has this defect, and this call is one in so many.
    fn has(&self, defect: Defect, one_in: usize) -> bool {
        self.defect == Some(defect) && self.calls.fetch_add(1, Ordering::Relaxed) % one_in == one_in - 1
    }

    /// Works on the blocking pool, so that simulated time stands still meanwhile.
    fn work<T: Send + 'static>(&self, work: impl FnOnce(Arc<dyn Store>) -> Work<T> + Send + 'static) -> Answer<'_, T> {
        let (inner, alone) = (self.inner(), self.alone.clone());
        Box::pin(async move {
            let (store, runtime) = (inner.ok_or(StoreError::Closed)?, Handle::current());
            let Some(alone) = alone else { return work(store).await };
            let worked = spawn_blocking(move || {
                let _among_others = alone.read().unwrap_or_else(PoisonError::into_inner);
                runtime.block_on(work(store))
            })
            .await;
            let answer = worked.map_err(|error| StoreError::Failed { action: "work", cause: error.to_string() })?;
            self.inner().ok_or(StoreError::Closed)?;
            answer
        })
    }
}

/// What retention left of a workspace.
pub(crate) struct Removed {
    /// The events after those that were known before.
    pub(crate) events: Vec<Event>,
    /// The oldest event that is kept.
    pub(crate) oldest: u64,
    /// Those of the batches that were asked for which are there no more.
    pub(crate) gone: Vec<BatchId>,
}

impl Mortal {
    /// Counts the time that passed, and removes what the workspace keeps no longer; nothing else happens meanwhile. `known` is the newest
    /// event that is known, `batches` are those that are looked for afterwards.
    pub(crate) async fn remove(
        &self,
        (workspace, limits): (WorkspaceId, Limits),
        passed: Option<Duration>,
        (known, batches): (u64, Vec<BatchId>),
    ) -> Result<Removed, StoreError> {
        let inner = self.inner().ok_or(StoreError::Closed)?;
        let work = async move {
            let events = inner.events(workspace.clone(), Revision(known), usize::MAX).await?;
            let events = events.into_iter().filter_map(Result::ok).collect();
            let now = inner.grow_older(passed).await?;
            let order = Retention { workspace: workspace.clone(), limits, now, is_rehearsal: false };
            let oldest = inner.retain(order).await?.oldest.0;
            let mut gone = Vec::new();
            for batch in batches {
                if inner.batch(workspace.clone(), BatchSelector::Id(batch)).await?.is_none() {
                    gone.push(batch);
                }
            }
            Ok(Removed { events, oldest, gone })
        };
        let (alone, runtime) = (self.alone.clone(), Handle::current());
        let Some(alone) = alone else { return work.await };
        let removed = spawn_blocking(move || {
            let _alone = alone.write().unwrap_or_else(PoisonError::into_inner);
            runtime.block_on(work)
        });
        removed.await.map_err(|error| StoreError::Failed { action: "work", cause: error.to_string() })?
    }
}

impl Wrapper for Mortal {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        self.work(move |store| Box::pin(async move { question(&*store).await }))
    }

    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        if self.has(Defect::AcknowledgedBeforeStored, 4) {
            return Box::pin(std::future::ready(Ok(Appended::New(Box::new(batch)))));
        }
        self.ask("append", move |store| store.append(batch))
    }

    fn transition(&self, mut step: Transition) -> Answer<'_, Transitioned> {
        let reports = step.report.is_some();
        if step.lease.is_some() && self.defect == Some(Defect::LeaseUnchecked) {
            step.lease = None;
        }
        let is_forgotten = reports && self.has(Defect::ReportForgotten, 3);
        let is_repeated = reports && self.defect == Some(Defect::EndedTwice);
        self.work(move |store| {
            Box::pin(async move {
                if is_forgotten {
                    let found = store.batch(step.workspace, BatchSelector::Id(step.batch)).await?;
                    return Ok(found.map_or(Transitioned::Unknown, |batch| {
                        Transitioned::Done(BatchRecord { state: step.to, ..batch })
                    }));
                }
                let again = is_repeated.then(|| Transition { from: step.to, ..step.clone() });
                let done = store.transition(step).await?;
                match again {
                    Some(again) if matches!(done, Transitioned::Done(_)) => store.transition(again).await,
                    _ => Ok(done),
                }
            })
        })
    }

    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>> {
        if after.0 > 0 && self.has(Defect::CompactedTooFar, 9) {
            return Box::pin(std::future::ready(Err(StoreError::Compacted { oldest: Revision(after.0 + 2) })));
        }
        let skips = self.defect == Some(Defect::RevisionSkipped);
        let after = if after.0 > 0 && self.has(Defect::EventRepeated, 9) { Revision(after.0 - 1) } else { after };
        self.work(move |store| {
            Box::pin(async move {
                let mut events = store.events(workspace, after, limit).await?;
                events.retain(|event| !skips || event.as_ref().map_or(true, |event| event.revision.0 % 7 != 6));
                Ok(events)
            })
        })
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn discard_upload(&self, upload: UploadId) {
        if let Some(store) = self.inner() {
            store.discard_upload(upload);
        }
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }
}
