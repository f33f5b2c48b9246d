//! The bytes that a workspace stores: the sum that each store has of them, and the limit on it.

use std::path::Path;
use std::sync::Arc;

use aptix_model::batch::{BlobRef, Content, CreateFile, FileEdit};
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::{BatchRecord, Reverting, Source, UnixMillis};
use aptix_model::state::BatchState;
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::options::Options;
use aptix_server::quota::{Allowance, QuotaRules};
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::embedded::verify::verify;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::retention::{Age, Limits, Retained, Retention};
use aptix_server::store::size::stored_bytes;
use aptix_server::store::{BatchSelector, Store, Transitioned, UploadId};
use tokio::task::JoinSet;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;

use crate::quotas::Limited;
use crate::server::{
    Clients, SOON, Server, applied, create_text, next_event, part_chunk, part_start, refusal, sha256, submit,
};
use crate::store_contract::{append, batch, prepared, step, workspace};

/// The blob `abcde`.
fn blob() -> BlobRef {
    BlobRef { sha256: sha256(b"abcde").parse().unwrap(), size_bytes: 5 }
}

/// A batch that creates a file of this blob.
fn naming(number: u128, blob: BlobRef) -> BatchRecord {
    let mut record = batch(number, "w", &format!("r{number}"));
    record.batch.files[0].edit =
        FileEdit::CreateFile(CreateFile { content: Content::Blob(blob), overwrite: false, content_format: None });
    record
}

async fn end(store: &Arc<dyn Store>, record: &BatchRecord) -> BatchRecord {
    match store.transition(step(record, BatchState::Applied)).await {
        Ok(Transitioned::Done(record)) => record,
        other => panic!("the step is taken: {other:?}"),
    }
}

/// The sum that a store has, held against the records that it lists and these bytes of blobs and uploads.
async fn used(store: &Arc<dyn Store>, blobs: u64) -> u64 {
    let mut sum = blobs;
    for entry in store.batches(workspace("w"), None, 1000).await.unwrap() {
        let which = BatchSelector::Id(entry.unwrap().batch);
        sum += stored_bytes(&store.batch(workspace("w"), which).await.unwrap().unwrap());
    }
    let used = store.used_bytes(workspace("w")).await.unwrap();
    assert_eq!(used, sum, "the sum of what is there");
    used
}

async fn retain(store: &Arc<dyn Store>, limits: Limits) -> Retained {
    let order = Retention { workspace: workspace("w"), limits, now: Age(0), is_rehearsal: false };
    store.retain(order).await.unwrap()
}

const CONTENT: Limits = Limits { content_batches: Some(1), ..NONE };
const NONE: Limits = Limits {
    content_age: None,
    content_batches: None,
    content_bytes: None,
    record_age: None,
    record_events: None,
    record_least: std::time::Duration::ZERO,
};

/// The life of a workspace; answers what it stored after each step, and what retention counted.
async fn live(store: Arc<dyn Store>) -> Vec<u64> {
    let (store, w) = (&store, workspace("w"));
    let mut seen = vec![used(store, 0).await];
    // A blob is counted from when its upload can be resumed, and once, however often it is uploaded.
    for number in [1, 2] {
        let upload = UploadId(Uuid::from_u128(number));
        store.claim_upload(upload, w.clone(), blob()).await.unwrap();
        store.put_chunk(upload, 0, b"abcde".as_slice().into()).await.unwrap();
        if number == 1 {
            seen.push(used(store, 5).await);
        }
        store.commit_upload(upload, w.clone(), blob()).await.unwrap();
        seen.push(used(store, 5).await);
    }
    // One upload of a blob can be resumed; it counts until it is dropped.
    let other = BlobRef { sha256: Sha256Digest::from_bytes([8; 32]), size_bytes: 100 };
    let uploads = [3, 4].map(|number| UploadId(Uuid::from_u128(number)));
    store.claim_upload(uploads[0], w.clone(), other).await.unwrap();
    seen.push(used(store, 105).await);
    store.claim_upload(uploads[1], w.clone(), BlobRef { size_bytes: 40, ..other }).await.unwrap();
    seen.push(used(store, 45).await);
    for upload in uploads {
        store.release_upload(upload, w.clone(), other.sha256).await.unwrap();
    }
    seen.push(used(store, 5).await);
    // Batches with reports, one that takes another one back, and one whose place another one takes.
    let first = end(store, &append(store, naming(1, blob())).await).await;
    seen.push(used(store, 5).await);
    let author = aptix_model::actor::Actor::unnamed(aptix_model::actor::ActorKind::Author);
    let source = Source::Revert(Reverting { of: first.id, author, reason: None });
    let revert = append(store, BatchRecord { source, ..naming(2, blob()) }).await;
    end(store, &revert).await;
    seen.push(used(store, 5).await);
    let former = append(store, prepared(3, "p3", u64::MAX, None)).await;
    append(store, prepared(4, "p4", u64::MAX, Some(former.id))).await;
    seen.push(used(store, 5).await);
    assert!(matches!(store.append(naming(9, blob())).await, Ok(aptix_server::store::Appended::New(_))));
    let again = BatchRecord { request_id: "r1".parse().unwrap(), ..naming(10, blob()) };
    store.append(again).await.unwrap();
    seen.push(used(store, 5).await);
    // Retention counts the blob of both batches once, and what it removes is free.
    let counted = retain(store, CONTENT).await;
    assert_eq!(counted.contents, 3, "{counted:?}");
    seen.extend([counted.content_bytes, used(store, 5).await]);
    let counted = retain(store, Limits { content_bytes: Some(0), record_events: Some(1), ..NONE }).await;
    seen.extend([counted.content_bytes, counted.records, used(store, 5).await]);
    assert_eq!(store.used_bytes(workspace("v")).await, Ok(0));
    seen
}

/// What is stored is counted once, and by each store alike.
#[tokio::test]
async fn every_store_counts_stored_bytes_alike() {
    let [embedded, healed] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let in_memory = live(Arc::new(MemoryStore::default())).await;
    assert_eq!(live(Arc::new(EmbeddedStore::open(embedded.path()).unwrap())).await, in_memory);
    assert_eq!(live(Arc::new(crate::place::healing(healed.path()))).await, in_memory);
    let [before, .., last] = &in_memory[..] else { panic!("{in_memory:?}") };
    assert!(before < last && *last < in_memory[10], "{in_memory:?}");
}

#[cfg(feature = "postgres")]
#[tokio::test]
async fn a_database_counts_stored_bytes_alike() {
    let Some(store) = crate::cluster::store().await else { return };
    assert_eq!(live(Arc::new(store)).await, live(Arc::new(MemoryStore::default())).await);
}

/// Removes every sum from a store, as one of an earlier version has none.
fn forget_sums(dir: &Path) {
    let database = fjall::Database::builder(dir).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    let sums: Vec<_> = records.prefix("j").map(|entry| entry.key().unwrap()).collect();
    assert_eq!(sums.len(), 2, "that of the workspace, and that all are there");
    sums.into_iter().for_each(|key| records.remove(key).unwrap());
    database.persist(fjall::PersistMode::SyncAll).unwrap();
}

/// The sums outlive a process; a store without them counts once, at its next start; and a sweep of blobs frees theirs.
#[tokio::test]
async fn sums_are_kept_and_counted_where_there_are_none() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let last = *live(Arc::clone(&store)).await.last().unwrap();
    store.close().await.unwrap();
    drop(store);
    for forgets in [false, true] {
        if forgets {
            forget_sums(dir.path());
        }
        assert_eq!(verify(dir.path()).unwrap().damages, Vec::<String>::new());
        let store = EmbeddedStore::open(dir.path()).unwrap();
        assert_eq!(store.used_bytes(workspace("w")).await, Ok(last), "forgets {forgets}");
        store.close().await.unwrap();
    }
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let upload = UploadId(Uuid::from_u128(77));
    let unnamed = BlobRef { sha256: Sha256Digest::from_bytes([9; 32]), size_bytes: 3 };
    store.put_chunk(upload, 0, b"abc".as_slice().into()).await.unwrap();
    store.commit_upload(upload, workspace("w"), unnamed).await.unwrap();
    assert_eq!(store.used_bytes(workspace("w")).await, Ok(last + 3));
    assert_eq!(store.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(1));
    assert_eq!(store.used_bytes(workspace("w")).await, Ok(last));
}

/// A refusal for want of room: what it says.
fn no_room(status: &Status) -> String {
    assert_eq!(refusal(status), (Code::ResourceExhausted, "OVER_LIMIT".to_owned(), String::new()), "{status:?}");
    let details = status.get_error_details();
    assert_eq!(details.error_info().unwrap().metadata["limit"], "stored_bytes_per_workspace");
    let [violation] = &details.quota_failure().unwrap().violations[..] else { panic!("{details:?}") };
    assert_eq!(violation.subject, "workspace:w");
    status.message().to_owned()
}

fn limited(store: Arc<dyn Store>, most: u64) -> Server {
    let own = Allowance { stored_bytes: Some(most), ..Allowance::default() };
    let rules = QuotaRules { workspaces: [(workspace("w"), own)].into(), ..QuotaRules::default() };
    Server::asking(store, Options::default(), (Approvals::default(), rules))
}

async fn send(clients: &Clients, workspace: &str, request: &str, text: &str) -> Result<v1::Batch, Status> {
    clients.clone().submit(submit(workspace, request, vec![create_text("a", text)])).await
}

/// Over the limit new batches and blobs of authors are refused; what an agent reports of what it applied is not, nor are retries; and
/// retention makes room.
#[tokio::test]
async fn a_workspace_without_room_takes_reports_and_nothing_new() {
    const MOST: u64 = 20_000;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = limited(Arc::clone(&store), MOST);
    let mut client = server.connect().await;
    let text = "x".repeat(5_000);
    let mut stored = Vec::new();
    let refused = loop {
        match send(&client, "w", &format!("r{}", stored.len()), &text).await {
            Ok(batch) => stored.push(batch),
            Err(status) => break status,
        }
    };
    let used = store.used_bytes(workspace("w")).await.unwrap();
    assert_eq!(stored.len(), 3, "{used}");
    let message = no_room(&refused);
    for part in [
        format!("stores {used} bytes"),
        format!("limit of {MOST} stored bytes"),
        "hint: wait until retention".to_owned(),
    ] {
        assert!(message.contains(&part), "{part} in {message}");
    }
    assert_eq!(send(&client, "w", "r0", &text).await.unwrap().batch_id, stored[0].batch_id, "a retry is answered");
    send(&client, "v", "r0", &text).await.expect("another workspace has room");
    let large = vec![7; 8_000];
    no_room(&client.upload("w", &large).await.unwrap_err());
    assert_eq!(store.used_bytes(workspace("w")).await, Ok(used), "refused calls store nothing");

    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    next_event(&mut feed).await.unwrap();
    let blob = v1::BlobRef { sha256: sha256(&large), size_bytes: large.len() as u64 };
    let mut start = part_start("w", blob);
    if let Some(v1::upload_blob_request::Part::Start(start)) = &mut start.part {
        start.lease_secret = client.secret("w");
    }
    client.upload_parts(vec![start, part_chunk(large.clone())]).await.expect("what the agent wrote is taken");
    for batch in &stored {
        client.report("w", &batch.batch_id, epoch, applied(&[("app", "a", &large)])).await.expect("a report is taken");
    }
    assert!(store.used_bytes(workspace("w")).await.unwrap() > MOST);
    no_room(&send(&client, "w", "r9", "small").await.unwrap_err());
    let counted = retain(&store, Limits { content_batches: Some(0), ..NONE }).await;
    assert_eq!(counted.contents, 3);
    send(&client, "w", "r9", "small").await.expect("retention made room");
}

/// The retry of a document with content that travels in blobs is answered although its content was removed and no room is left.
#[tokio::test]
async fn a_retry_whose_content_went_needs_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let store: Arc<dyn Store> = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let server = limited(Arc::clone(&store), 3_000_000);
    let mut client = server.connect().await;
    let document = |path: &str| {
        let text = serde_json::json!({ "path": path, "content": path.repeat(1_500_000) }).to_string();
        let document = v1::Document { dialect: "create-file".to_owned(), text: text.into_bytes().into() };
        let content = Some(v1::submit_batch_request::Content::Document(document));
        v1::SubmitBatchRequest { content, ..submit("w", path, Vec::new()) }
    };
    let first = client.submit(document("a")).await.unwrap();
    let withdraw = v1::CancelBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: first.batch_id.clone(),
        ..v1::CancelBatchRequest::default()
    };
    client.batches.cancel_batch(withdraw).await.unwrap();
    retain(&store, Limits { content_batches: Some(0), ..NONE }).await;
    store.sweep_blobs(UnixMillis(u64::MAX)).await.unwrap();
    client.submit(document("b")).await.expect("there is room again");
    no_room(&client.submit(document("c")).await.unwrap_err());
    assert_eq!(client.submit(document("a")).await.unwrap().batch_id, first.batch_id);
}

/// Calls that come together store no more than there is room for.
#[tokio::test(flavor = "multi_thread")]
async fn calls_at_one_time_share_the_room() {
    const MOST: u64 = 20_000;
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let server = limited(Arc::clone(&store), MOST);
    let client = server.connect().await;
    let mut calls = JoinSet::new();
    for number in 0..32 {
        let client = client.clone();
        calls.spawn(async move { send(&client, "w", &format!("r{number}"), &"x".repeat(5_000)).await.map(drop) });
    }
    let refused: Vec<_> = calls.join_all().await.into_iter().filter_map(Result::err).collect();
    refused.iter().for_each(|status| drop(no_room(status)));
    assert!((29..32).contains(&refused.len()), "{} were refused", refused.len());
    assert!(store.used_bytes(workspace("w")).await.unwrap() <= MOST);
    // What was held for refused calls is given back.
    for number in 32..32 + refused.len() - 29 {
        send(&client, "w", &format!("r{number}"), &"x".repeat(5_000)).await.unwrap();
    }
    no_room(&send(&client, "w", "last", &"x".repeat(5_000)).await.unwrap_err());
}

/// The limit is a key of the configuration, also of one workspace, and changes without a restart. An upload that was cut off has its
/// room already.
#[tokio::test]
async fn the_limit_is_configured_and_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let text = "stored_bytes_per_workspace = 8388608\n[workspaces.w]\nstored_bytes_per_workspace = 1048576\n";
    let server = Limited::start(dir.path(), text, &[("author", "orchestrator", "w")]);
    let token = server.tokens[0].clone();
    let clients = server.connect().await;
    let upload = async || {
        let bytes = vec![1; 2 << 20];
        let parts = std::iter::once(part_start("w", v1::BlobRef { sha256: sha256(&bytes), size_bytes: 2 << 20 }));
        let parts: Vec<_> = parts.chain(bytes.chunks(1 << 20).map(|chunk| part_chunk(chunk.to_vec()))).collect();
        clients.clone().files.upload_blob(crate::identity::with(&token, tokio_stream::iter(parts))).await.map(drop)
    };
    let message = no_room(&upload().await.unwrap_err());
    assert!(message.contains("stores 0 bytes, and 2097152 more would exceed its limit of 1048576"), "{message}");
    server.reload("stored_bytes_per_workspace = 8388608\n");
    let began = std::time::Instant::now();
    while let Err(status) = upload().await {
        no_room(&status);
        assert!(began.elapsed() < SOON, "the limit has not changed");
    }
}
