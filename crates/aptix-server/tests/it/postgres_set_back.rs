//! Streams of servers on PostgreSQL whose database is replaced by a copy that lacks the newest of what they sent, as a standby is that
//! was promoted without synchronous replication: they end, and skip nothing.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::fleet::FleetOptions;
use aptix_server::options::{Changeable, Options};
use aptix_server::store::Store;
use tokio::time::timeout;
use tonic::Code;

use crate::cluster::{Cluster, open};
use crate::postgres_store::SOON;
use crate::server::{Clients, Feed, Server, create_text, next, next_event, submit};
use crate::store_contract::{append, batch};
use crate::until::until;

/// Longer than any test.
const NEVER: Duration = Duration::from_secs(3600);

/// A server that learns of changes by hints alone, on a cluster of its own.
async fn server() -> Option<(Cluster, Server)> {
    let cluster = Cluster::start()?;
    cluster.create_database("store");
    let fleet = FleetOptions { poll: NEVER, ..FleetOptions::default() };
    let store: Arc<dyn Store> = Arc::new(open(&cluster.address("store")).await);
    let changeable = Changeable { fleet, ..Approvals::default().into() };
    let mut options = Options::default();
    options.dispatch.heartbeat = NEVER;
    Some((cluster, Server::asking(store, options, changeable)))
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
