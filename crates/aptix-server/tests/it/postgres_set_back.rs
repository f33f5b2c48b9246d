//! Streams of servers on PostgreSQL whose database is replaced by a copy that lacks the newest of what they sent, as a standby is that
//! was promoted without synchronous replication: they end, and skip nothing.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::id::{HistoryId, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::fleet::FleetOptions;
use aptix_server::options::{Changeable, Options};
use aptix_server::store::fleet::Hints;
use aptix_server::store::postgres::PostgresStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, BatchSelector, Store, UploadId};
use tokio::sync::{Semaphore, watch};
use tokio::time::timeout;
use tonic::Code;

use crate::cluster::{Cluster, open};
use crate::postgres_store::SOON;
use crate::server::{Clients, Feed, Server, create_text, next, next_event, submit};
use crate::store_contract::{append, batch};
use crate::until::until;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// A server that learns of changes by hints alone.
fn asking(store: Arc<dyn Store>) -> Server {
    let fleet = FleetOptions { poll: NEVER, ..FleetOptions::default() };
    let changeable = Changeable { fleet, ..Approvals::default().into() };
    let mut options = Options::default();
    options.dispatch.heartbeat = NEVER;
    Server::asking(store, options, changeable)
}

/// The same on a cluster of its own.
async fn server() -> Option<(Cluster, Server)> {
    let cluster = Cluster::start()?;
    cluster.create_database("store");
    let store = Arc::new(open(&cluster.address("store")).await);
    Some((cluster, asking(store)))
}

async fn add(client: &mut Clients, request: &str) {
    let batch = submit("w", request, vec![create_text("a.txt", "1")]);
    until(async || client.clone().submit(batch.clone()).await.ok()).await;
}

/// A feed of the agent, from the beginning, once the server has its place.
async fn served(client: &Clients) -> (Clients, Feed) {
    until(async || {
        let mut client = client.clone();
        let (_, feed) = client.lease("w", "agent", 0).await.ok()?;
        Some((client, feed))
    })
    .await
}

/// The end of a feed that has sent everything up to a revision.
async fn end(feed: &mut Feed) -> tonic::Status {
    timeout(SOON, next_event(feed)).await.expect("the feed ends").expect_err("nothing is sent after what is lost")
}

/// Readers who have events that are lost are not sent those that took their numbers, nor later ones.
#[tokio::test(flavor = "multi_thread")]
async fn streams_end_whose_newest_events_are_lost() {
    let Some((cluster, server)) = server().await else { return };
    let (mut client, mut feed) = served(&server.connect().await).await;
    add(&mut client, "r1").await;
    assert_eq!(next_event(&mut feed).await.unwrap().revision, 1);
    cluster.keep();
    for revision in 2..=3 {
        add(&mut client, &format!("r{revision}")).await;
        assert_eq!(next_event(&mut feed).await.unwrap().revision, revision);
    }
    let request = v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), after_revision: 2, ..Default::default() };
    let mut watching = client.workspaces.watch_workspace(request).await.unwrap().into_inner();
    let lost = next(&mut watching).await.unwrap();
    let Some(v1::watch_workspace_response::Message::Event(lost)) = lost.message else { panic!("{lost:?}") };
    let batch_id = lost.batch.unwrap().batch_id;
    let request = v1::WatchBatchRequest { workspace_id: "w".to_owned(), batch_id, ..Default::default() };
    let mut states = client.batches.watch_batch(request).await.unwrap().into_inner();
    next(&mut states).await.unwrap();
    cluster
        .set_back(async |elsewhere| {
            let other = Arc::new(open(&elsewhere.address("store")).await);
            for number in 2..=5 {
                append(&other, batch(number, "w", &format!("other{number}"))).await;
            }
        })
        .await;
    let watched = timeout(SOON, next(&mut watching)).await.expect("the stream ends").unwrap_err();
    let of_batch = timeout(SOON, next(&mut states)).await.expect("the stream ends").unwrap_err();
    for status in [end(&mut feed).await, watched, of_batch] {
        assert_eq!(status.code(), Code::Unavailable, "{status:?}");
        assert!(status.message().contains("newest events of the workspace are gone"), "{status:?}");
    }
}

/// An agent whose lease is lost serves no more: the next lease has the same epoch.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_ends_whose_lease_is_lost() {
    let Some((cluster, server)) = server().await else { return };
    let mut client = server.connect().await;
    add(&mut client, "r1").await;
    cluster.keep();
    let (_client, mut feed) = served(&client).await;
    assert_eq!(next_event(&mut feed).await.unwrap().revision, 1);
    cluster.set_back(async |_| {}).await;
    assert_eq!(end(&mut feed).await.code(), Code::Unavailable);
}

/// A store whose batches are read one after the other, as they are let through.
struct Held {
    inner: PostgresStore,
    let_through: Semaphore,
}

impl Wrapper for Held {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        question(&self.inner)
    }

    fn batch(&self, workspace: WorkspaceId, selector: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        Box::pin(async {
            self.let_through.acquire().await.unwrap().forget();
            self.inner.batch(workspace, selector).await
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
        self.inner.reopenings()
    }

    fn is_shared(&self) -> bool {
        self.inner.is_shared()
    }

    fn hints(&self) -> Option<Hints> {
        self.inner.hints()
    }
}

/// A feed that has read a page of events, and not their batches yet, ends where those are lost: none of them is called damaged.
#[tokio::test(flavor = "multi_thread")]
async fn a_feed_ends_amid_a_page_whose_newest_batches_are_lost() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_database("store");
    let inner = open(&cluster.address("store")).await;
    let store = Arc::new(Held { inner, let_through: Semaphore::new(0) });
    let server = asking(Arc::clone(&store) as Arc<dyn Store>);
    let mut client = server.connect().await;
    add(&mut client, "r1").await;
    cluster.keep();
    for number in 2..=3 {
        add(&mut client, &format!("r{number}")).await;
    }
    let (client, mut feed) = served(&client).await;
    store.let_through.add_permits(1);
    assert_eq!(next_event(&mut feed).await.unwrap().revision, 1);
    cluster
        .set_back(async |elsewhere| {
            let other = Arc::new(open(&elsewhere.address("store")).await);
            for number in 2..=3 {
                append(&other, batch(number, "w", &format!("other{number}"))).await;
            }
        })
        .await;
    let request = v1::GetWorkspaceRequest { workspace_id: "w".to_owned() };
    until(async || client.clone().workspaces.get_workspace(request.clone()).await.ok()).await;
    store.let_through.add_permits(10);
    let status = end(&mut feed).await;
    assert_eq!(status.code(), Code::Unavailable, "{status:?}");
    assert!(status.message().contains("newest events of the workspace are gone"), "{status:?}");
}
