//! The store of a simulated server: it dies with the server, holds simulated time while it works, and can have a defect.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::BatchId;
use aptix_model::id::{HistoryId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use aptix_server::store::access::{KeptToken, TokenAdded, Tokens};
use aptix_server::store::session::{ModeChange, ModeChanged, SessionState};
use aptix_server::store::{
    Answer, Appended, BatchSelector, CloudFile, Due, DueKey, Event, Lease, Listed, ListedFile, ListedWorkspace,
    LocalAppended, LocalBatch, Store, StoreError, Transition, Transitioned, Unfinished, UploadId, WorkspaceCounts,
};
use tokio::runtime::Handle;
use tokio::task::spawn_blocking;
use tokio_util::bytes::Bytes;

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
    fn ask<T: Send + 'static>(&self, work: impl FnOnce(Arc<dyn Store>) -> Work<T> + Send + 'static) -> Answer<'_, T> {
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

/// Has the inner store answer.
macro_rules! inner {
    ($($name:ident($($argument:ident: $type:ty),*) -> $answer:ty;)*) => {
        $(fn $name(&self, $($argument: $type),*) -> Answer<'_, $answer> {
            self.ask(move |store| Box::pin(async move { store.$name($($argument),*).await }))
        })*
    };
}

impl Store for Mortal {
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        if self.has(Defect::AcknowledgedBeforeStored, 4) {
            return Box::pin(std::future::ready(Ok(Appended::New(Box::new(batch)))));
        }
        self.ask(move |store| Box::pin(async move { store.append(batch).await }))
    }

    fn transition(&self, mut step: Transition) -> Answer<'_, Transitioned> {
        let reports = step.report.is_some();
        if step.lease.is_some() && self.defect == Some(Defect::LeaseUnchecked) {
            step.lease = None;
        }
        let is_forgotten = reports && self.has(Defect::ReportForgotten, 3);
        let is_repeated = reports && self.defect == Some(Defect::EndedTwice);
        self.ask(move |store| {
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
        self.ask(move |store| {
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

    inner! {
        append_local(local: LocalBatch) -> LocalAppended;
        session(workspace: WorkspaceId, session: SessionId) -> Option<SessionState>;
        set_mode(change: ModeChange) -> ModeChanged;
        tokens() -> Tokens;
        add_token(token: KeptToken) -> TokenAdded;
        end_token(name: TokenName, ended: Ended) -> Option<Token>;
        create_workspace(workspace: WorkspaceId) -> bool;
        grant_lease(workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> u64;
        roots(workspace: WorkspaceId) -> Vec<String>;
        lease(workspace: WorkspaceId) -> Lease;
        digest(workspace: WorkspaceId, revision: Revision) -> Option<Sha256Digest>;
        newest(workspace: WorkspaceId) -> Option<Revision>;
        counts(workspace: WorkspaceId) -> Option<WorkspaceCounts>;
        workspaces(after: Option<WorkspaceId>, limit: usize) -> Vec<ListedWorkspace>;
        due(now: UnixMillis, after: Option<DueKey>, limit: usize) -> Vec<Due>;
        batch(workspace: WorkspaceId, which: BatchSelector) -> Option<BatchRecord>;
        batches(workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Vec<Listed>;
        steps(workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Vec<Event>;
        file(workspace: WorkspaceId, path: RootedPath) -> Option<CloudFile>;
        files_with_key(workspace: WorkspaceId, doc_path: DocPath) -> Vec<CloudFile>;
        files(workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Vec<ListedFile>;
        blob_sizes(workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Vec<Option<u64>>;
        blob_chunk(workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Option<Bytes>;
        claim_upload(upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> ();
        unfinished_upload(workspace: WorkspaceId, blob: BlobRef) -> Option<Unfinished>;
        release_upload(upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> ();
        upload_chunk(upload: UploadId, index: u32) -> Option<Bytes>;
        put_chunk(upload: UploadId, index: u32, bytes: Bytes) -> ();
        commit_upload(upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> ();
        sweep_blobs(before: UnixMillis) -> usize;
        close() -> ();
    }
}
