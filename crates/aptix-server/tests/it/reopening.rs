//! What streams do while a store is opened again: what cannot be read now is not reported as damaged, and what a failed write left
//! behind is found. While nothing happens they read nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use aptix_model::id::{HistoryId, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::wire::v1;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, Appended, BatchSelector, Store, StoreError, UploadId};
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::{Code, Streaming};

use crate::server::{Clients, Feed, SOON, Server, create_text, next, next_event, submit};

/// A store over one in memory whose reads are counted, and which can behave as if it was opened again.
#[derive(Default)]
struct Reopening {
    inner: MemoryStore,
    /// Batches cannot be read now.
    is_closed: AtomicBool,
    /// Batches are stored, and their callers get an error.
    fails_late: AtomicBool,
    reads: AtomicUsize,
    reopenings: watch::Sender<u64>,
}

impl Reopening {
    fn asked(&self) -> &MemoryStore {
        self.reads.fetch_add(1, Ordering::SeqCst);
        &self.inner
    }

    fn reads(&self) -> usize {
        self.reads.load(Ordering::SeqCst)
    }
}

fn reopened<T: Send + 'static>() -> Answer<'static, T> {
    let cause = "the store is being opened again".to_owned();
    Box::pin(std::future::ready(Err(StoreError::ReadOnly { cause })))
}

impl Wrapper for Reopening {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        question(self.asked())
    }
    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        if self.is_closed.load(Ordering::SeqCst) { reopened() } else { self.asked().batch(workspace, which) }
    }
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        if !self.fails_late.load(Ordering::SeqCst) {
            return self.asked().append(batch);
        }
        Box::pin(async {
            self.asked().append(batch).await?;
            reopened().await
        })
    }
    fn history(&self) -> HistoryId {
        self.inner.history()
    }
    fn discard_upload(&self, upload: UploadId) {
        self.inner.discard_upload(upload);
    }
    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.failed()
    }
    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.inner.healed()
    }
    fn reopenings(&self) -> watch::Receiver<u64> {
        self.reopenings.subscribe()
    }
}

/// An agent would skip a batch that is reported as damaged, and the batch would wait for ever.
#[tokio::test]
async fn a_batch_that_cannot_be_read_now_is_not_passed_over() {
    let store = Arc::new(Reopening { is_closed: AtomicBool::new(true), ..Reopening::default() });
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    let stored = client.submit(submit("w", "r", vec![create_text("a.txt", "")])).await.unwrap();
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let ended = next_event(&mut feed).await;
    assert_eq!(ended.unwrap_err().code(), Code::Unavailable);
    let list = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    assert_eq!(client.batches.list_batches(list.clone()).await.unwrap_err().code(), Code::Unavailable);

    store.is_closed.store(false, Ordering::SeqCst);
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().batch_id, stored.batch_id);
    assert_eq!(client.batches.list_batches(list).await.unwrap().into_inner().damaged, []);
}

/// Streams of each kind: of an agent, of a batch, and of a workspace.
async fn streams(
    client: &mut Clients,
) -> (Feed, Streaming<v1::WatchBatchResponse>, Streaming<v1::WatchWorkspaceResponse>) {
    let batch = client.submit(submit("w", "first", vec![create_text("a.txt", "")])).await.unwrap();
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    next_event(&mut feed).await.unwrap();
    let (workspace_id, batch_id) = ("w".to_owned(), batch.batch_id);
    let watched =
        v1::WatchBatchRequest { workspace_id: workspace_id.clone(), batch_id, ..v1::WatchBatchRequest::default() };
    let mut watched = client.batches.watch_batch(watched).await.unwrap().into_inner();
    watched.message().await.unwrap();
    let events = v1::WatchWorkspaceRequest { workspace_id, ..v1::WatchWorkspaceRequest::default() };
    let mut events = client.workspaces.watch_workspace(events).await.unwrap().into_inner();
    events.message().await.unwrap();
    (feed, watched, events)
}

/// The next message of each.
async fn heartbeats(
    feed: &mut Feed,
    watched: &mut Streaming<v1::WatchBatchResponse>,
    events: &mut Streaming<v1::WatchWorkspaceResponse>,
) {
    next(feed).await.unwrap();
    next(watched).await.unwrap();
    next(events).await.unwrap();
}

#[tokio::test]
async fn streams_of_which_nothing_happens_read_nothing() {
    let store = Arc::new(Reopening::default());
    let dispatch = Settings { heartbeat: Duration::from_millis(1), ..Settings::default() };
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let (mut feed, mut watched, mut events) = streams(&mut client).await;
    for _ in 0..3 {
        heartbeats(&mut feed, &mut watched, &mut events).await;
    }
    let before = store.reads();
    for _ in 0..50 {
        heartbeats(&mut feed, &mut watched, &mut events).await;
    }
    assert_eq!(store.reads(), before);
    store.reopenings.send_modify(|count| *count += 1);
    while store.reads() < before + 3 {
        heartbeats(&mut feed, &mut watched, &mut events).await;
    }
}

/// The author of the batch got an error, and does not know whether the batch is stored; its agent is sent it.
#[tokio::test]
async fn what_a_failed_write_left_behind_is_sent_once_the_store_is_opened_again() {
    let store = Arc::new(Reopening::default());
    let dispatch = Settings { heartbeat: Duration::from_secs(3600), ..Settings::default() };
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let (mut feed, _watched, mut events) = streams(&mut client).await;
    store.fails_late.store(true, Ordering::SeqCst);
    let failed = client.submit(submit("w", "second", vec![create_text("b.txt", "")])).await;
    assert_eq!(failed.unwrap_err().code(), Code::Unavailable);
    store.reopenings.send_modify(|count| *count += 1);
    assert_eq!(next_event(&mut feed).await.unwrap().revision, 2);
    assert!(timeout(SOON, events.message()).await.unwrap().unwrap().is_some());
}

/// A directory that cannot be used is an error that names it.
#[tokio::test]
async fn a_place_that_is_no_directory_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    let _ = tempfile::Builder::new().prefix("x").tempfile_in(dir.path()).unwrap().persist(&path).unwrap();
    let error = aptix_server::store::embedded::EmbeddedStore::open(&path).err().unwrap();
    assert!(error.to_string().contains("file"), "{error}");
}
