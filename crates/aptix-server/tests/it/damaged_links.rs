//! A batch whose record is damaged keeps nothing that takes it back from being reported.

use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::embedded::EmbeddedStore;

use crate::local::{local, report};
use crate::server::{Server, applied, create_text, submit};

/// Both ways in which a batch is taken back, by its server and on the workstation, end although the batch cannot be read: the
/// agent would report them again for ever.
#[tokio::test]
async fn a_report_is_taken_although_the_batch_that_is_taken_back_is_damaged() {
    const LOCAL: &str = "018f6d2e-7c1a-7b3e-9d55-0123456c0000";
    let place = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).unwrap();
    let server = Server::over(Arc::new(EmbeddedStore::open(place.path()).unwrap()), Options::default());
    let mut client = server.connect().await;
    let (epoch, feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"new").await.unwrap();
    let written = || applied(&[("app", "a.txt", b"new")]);
    let first = client.submit(submit("w", "r1", vec![create_text("a.txt", "new")])).await.unwrap().batch_id;
    client.report("w", &first, epoch, written()).await.unwrap();
    let revert = v1::RevertBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: first.clone(),
        request_id: "r2".to_owned(),
        ..v1::RevertBatchRequest::default()
    };
    let revert = client.batches.revert_batch(revert).await.unwrap().into_inner().batch.unwrap().batch_id;
    drop(feed);
    server.stop().await.unwrap();

    let database = fjall::Database::builder(place.path()).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    let id: uuid::Uuid = first.parse().unwrap();
    records.insert([b"b", id.as_bytes().as_slice()].concat(), "damaged").unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((records, database));

    let server = Server::over(Arc::new(EmbeddedStore::open(place.path()).unwrap()), Options::default());
    let mut client = server.connect().await;
    let (epoch, feed) = client.lease("w", "agent", 0).await.unwrap();
    let ended = client.report("w", &revert, epoch, written()).await.unwrap();
    assert_eq!(ended.state(), v1::BatchState::Applied);
    let undo = v1::ReportLocalBatchRequest { reverts: first, ..local(LOCAL, epoch, &[("a.txt", b"new")]) };
    assert_eq!(report(&mut client, undo).await.unwrap().state(), v1::BatchState::Applied);
    drop(feed);
    server.stop().await.unwrap();
}
