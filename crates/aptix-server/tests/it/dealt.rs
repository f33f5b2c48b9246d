//! Three stores on one database behind one: what one of them writes, the next one reads and goes on from.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, Weak};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{HistoryId, WorkspaceId};
use aptix_model::state::BatchState;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, Store, Transition, Transitioned, UploadId};
use tokio::sync::watch;
use tokio_util::bytes::Bytes;

use crate::cluster::Database;
use crate::store_contract::{append, batch, step, with_empty_blob};

/// Three stores that take calls in turn, as three servers on one database do behind a load balancer.
///
/// None of them has joined the others, so none sends hints: the rows that a store knows from its last write are out of
/// date once another store has written, and only the comparison with the database shows it.
pub(crate) struct Dealt {
    stores: [PostgresStore; 3],
    /// Calls that were dealt out so far.
    calls: AtomicUsize,
    /// Index of the store that takes the steps which are under way; dropped with the last of them.
    stepping: Mutex<Weak<usize>>,
}

/// Three stores in a new database; `None` where the test is skipped.
pub(crate) async fn store() -> Option<Dealt> {
    let database = Database::new()?;
    let stores = [database.open().await, database.open().await, database.open().await];
    Some(Dealt { stores, calls: AtomicUsize::new(0), stepping: Mutex::default() })
}

impl Dealt {
    /// Index of the store that takes the next call.
    fn turn(&self) -> usize {
        self.calls.fetch_add(1, Ordering::Relaxed) % self.stores.len()
    }

    fn next(&self) -> &PostgresStore {
        &self.stores[self.turn()]
    }

    /// The store that takes every call that writes an upload: only the server that began or resumed it may.
    fn writer(&self, upload: UploadId) -> &PostgresStore {
        &self.stores[usize::from(upload.0.as_bytes()[15]) % self.stores.len()]
    }
}

impl Wrapper for Dealt {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        question(self.next())
    }

    /// Steps that overlap go to one store, which takes them in the order of the calls: servers promise no order between
    /// them. A step that begins while none is under way goes to the next store.
    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        let mut stepping = self.stepping.lock().unwrap();
        let at = stepping.upgrade().unwrap_or_else(|| Arc::new(self.turn()));
        *stepping = Arc::downgrade(&at);
        Box::pin(async move {
            let answer = self.stores[*at].transition(step).await;
            drop(at);
            answer
        })
    }

    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.writer(upload).claim_upload(upload, workspace, blob)
    }

    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()> {
        self.writer(upload).release_upload(upload, workspace, digest)
    }

    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>> {
        self.writer(upload).upload_chunk(upload, index)
    }

    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()> {
        self.writer(upload).put_chunk(upload, index, bytes)
    }

    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        self.writer(upload).commit_upload(upload, workspace, blob)
    }

    fn discard_upload(&self, upload: UploadId) {
        self.writer(upload).discard_upload(upload);
    }

    fn history(&self) -> HistoryId {
        self.next().history()
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.next().failed()
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.next().healed()
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        self.next().reopenings()
    }

    fn is_shared(&self) -> bool {
        true
    }

    /// Closes all of them.
    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            for store in &self.stores {
                store.close().await?;
            }
            Ok(())
        })
    }
}

/// How many groups each store committed.
fn commits(store: &Dealt) -> [u64; 3] {
    store.stores.each_ref().map(|store| store.asked().commits)
}

/// The control of the contract on several servers: every store takes calls, and one store takes steps that overlap.
#[tokio::test]
async fn each_store_has_its_turn() {
    let Some(store) = store().await else { return };
    let store = with_empty_blob(store).await;
    let mut batches = Vec::new();
    for number in 1..=9 {
        batches.push(append(&store, batch(number, "w", &format!("r{number}"))).await);
    }
    assert_eq!(commits(&store), [3; 3]);
    let take = |at: usize| Wrapper::transition(&*store, step(&batches[at], BatchState::Applied));
    for at in 0..3 {
        assert!(matches!(take(at).await, Ok(Transitioned::Done(_))));
    }
    assert_eq!(commits(&store), [4; 3]);
    let (first, second, third) = tokio::join!(take(3), take(4), take(5));
    let revisions = [first, second, third].map(|taken| match taken {
        Ok(Transitioned::Done(batch)) => batch.revision.0,
        other => panic!("the step is taken, and not {other:?}"),
    });
    assert_eq!(revisions, [13, 14, 15], "in the order of the calls");
    let idle = commits(&store).into_iter().filter(|commits| *commits == 4).count();
    assert_eq!(idle, 2, "one store took all of them");
}
