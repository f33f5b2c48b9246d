//! The store of a simulated server: it dies with the server, holds simulated time while it works, and can have a defect.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aptix_model::id::{HistoryId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{
    Answer, Appended, BatchSelector, Listed, Store, StoreError, Transition, Transitioned, UploadId,
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
}

impl Mortal {
    pub(crate) fn new(inner: Arc<dyn Store>, defect: Option<Defect>) -> Self {
        let history = inner.history();
        Self { inner: Mutex::new(Some(inner)), history, defect, calls: AtomicUsize::new(0) }
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
        let inner = self.inner();
        Box::pin(async move {
            let (store, runtime) = (inner.ok_or(StoreError::Closed)?, Handle::current());
            let worked = spawn_blocking(move || runtime.block_on(work(store))).await;
            let answer = worked.map_err(|error| StoreError::Failed { action: "work", cause: error.to_string() })?;
            self.inner().ok_or(StoreError::Closed)?;
            answer
        })
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
