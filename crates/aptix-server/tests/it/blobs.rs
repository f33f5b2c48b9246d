//! Blobs on their way in and out, and batches that name them.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::Uuid;
use aptix_model::record::UnixMillis;
use aptix_model::wire::v1;
use aptix_model::wire::v1::create_file::Content;
use aptix_model::wire::v1::file_selector::File;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use aptix_server::store::embedded::EmbeddedStore;
use aptix_server::store::{Store, UploadId};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;

use crate::place::{Place, durable, in_a_bucket};
use crate::server::{
    SOON, Server, applied, assert_refused, create_file, part_chunk, part_start, refusal, sha256, submit,
};
use crate::store_contract::{append, batch as stored_batch, workspace};
use crate::until::until;

fn blob(bytes: &[u8]) -> v1::BlobRef {
    v1::BlobRef { sha256: sha256(bytes), size_bytes: bytes.len() as u64 }
}

fn patterned(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from(index * 31 % 251).unwrap()).collect()
}

/// A blob comes back as it went, in whatever pieces; uploading it again is a no-op; other workspaces have no part in it.
#[tokio::test]
async fn a_blob_comes_back_as_it_went() {
    let server = Server::start();
    let mut client = server.connect().await;
    for length in [0, 1, (1 << 20) - 1, 1 << 20, (2 << 20) + 17] {
        let bytes = patterned(length);
        let kept = client.upload("w", &bytes).await.unwrap();
        assert_eq!(kept, blob(&bytes));
        assert_eq!(client.upload("w", &bytes).await.unwrap(), kept);
        assert!(client.download("w", &kept.sha256.to_uppercase()).await.unwrap() == bytes, "{length} bytes");
        assert_refused(client.download("v", &kept.sha256).await, Code::NotFound, "NOT_FOUND", "");
    }
    let bytes = patterned(3000);
    let mut parts = vec![part_start("w", blob(&bytes))];
    parts.extend(bytes.chunks(7).map(|chunk| part_chunk(chunk.to_vec())));
    client.upload_parts(parts).await.unwrap();
    assert!(client.download("w", &sha256(&bytes)).await.unwrap() == bytes);
    let asked = v1::FindMissingBlobsRequest {
        workspace_id: "w".to_owned(),
        sha256: vec![sha256(b"no"), sha256(&bytes), sha256(b"nor this")],
    };
    let missing = client.files.find_missing_blobs(asked).await.unwrap().into_inner();
    assert_eq!(missing.missing_sha256, [sha256(b"no"), sha256(b"nor this")]);
}

/// An upload that is not what it announced, or not an upload, is refused by name, and nothing is kept.
#[tokio::test]
async fn an_upload_must_be_what_it_announces() {
    let server = Server::start();
    let mut client = server.connect().await;
    let good = blob(b"content");
    let start = |sha256: &str, size_bytes| part_start("w", v1::BlobRef { sha256: sha256.to_owned(), size_bytes });
    let chunk = |bytes: &[u8]| part_chunk(bytes.to_vec());
    let cases = [
        ("wrong digest", vec![start(&good.sha256, 7), chunk(b"CONTENT")], "HASH_FAILED", ""),
        ("too few bytes", vec![start(&good.sha256, 8), chunk(b"content")], "HASH_FAILED", ""),
        ("too many bytes", vec![start(&good.sha256, 6), chunk(b"content")], "HASH_FAILED", ""),
        ("no bytes", vec![start(&good.sha256, 7)], "HASH_FAILED", ""),
        ("over the limit", vec![start(&good.sha256, (256 << 20) + 1)], "TOO_LARGE", "FILE"),
        ("chunk too large", vec![start(&good.sha256, 2 << 20), chunk(&vec![0; (1 << 20) + 1])], "TOO_LARGE", "FILE"),
        ("empty chunk", vec![start(&good.sha256, 7), chunk(b"")], "INVALID_REQUEST", "MISSING"),
        ("no start", vec![chunk(b"content")], "INVALID_REQUEST", "MISSING"),
        ("nothing", vec![], "INVALID_REQUEST", "MISSING"),
        ("no part", vec![start(&good.sha256, 7), v1::UploadBlobRequest { part: None }], "INVALID_REQUEST", "MISSING"),
        ("two starts", vec![start(&good.sha256, 7), start(&good.sha256, 7)], "INVALID_REQUEST", "UNEXPECTED_FIELD"),
        ("no digest", vec![start("abc", 7), chunk(b"content")], "INVALID_REQUEST", "SHA_FORMAT"),
    ];
    for (case, parts, reason, detail) in cases {
        let status = client.upload_parts(parts).await.unwrap_err();
        let expected = (Code::InvalidArgument, reason.to_owned(), detail.to_owned());
        assert_eq!(refusal(&status), expected, "{case}: {}", status.message());
        assert_refused(client.download("w", &good.sha256).await, Code::NotFound, "NOT_FOUND", "");
    }
    let known = client.upload("w", b"content").await.unwrap();
    let lie = client.upload_parts(vec![part_start("w", known), chunk(b"CONTENT")]).await;
    assert_refused(lie, Code::InvalidArgument, "HASH_FAILED", "");
}

/// A stalled upload is ended, and its place is free for the next.
#[tokio::test]
async fn a_stalled_upload_is_ended() {
    let dispatch = Settings { transfers: aptix_server::caller::Share::of(1), ..Settings::default() };
    let upload_idle = Duration::from_secs(3);
    let server = Server::with(Options { dispatch, upload_idle, ..Options::default() });
    let mut client = server.connect().await;
    let (parts, stream) = mpsc::channel(4);
    parts.send(part_start("w", blob(b"content"))).await.unwrap();
    let status = client.files.upload_blob(ReceiverStream::new(stream)).await.unwrap_err();
    assert_eq!(refusal(&status).0, Code::DeadlineExceeded);
    client.upload("w", b"content").await.unwrap();
}

durable! {
    unreferenced_blobs_are_deleted,
    an_upload_that_is_resumed_late_can_be_finished,
}

in_a_bucket! {
    unreferenced_blobs_are_deleted,
    an_upload_that_is_resumed_late_can_be_finished,
}

/// An unreferenced blob is deleted; referenced ones stay, and one that is uploaded again is there again.
async fn unreferenced_blobs_are_deleted(place: Place) {
    let store = place.open().await;
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    for content in [&b"in a batch"[..], b"in a file", b"unnamed."] {
        client.upload("w", content).await.unwrap();
    }
    let named = Content::Blob(blob(b"in a batch"));
    client.submit(submit("w", "r1", vec![create_file("a", named)])).await.unwrap();
    let text = Content::Text("in a file".to_owned());
    let batch = client.submit(submit("w", "r2", vec![create_file("b", text)])).await.unwrap();
    client.report("w", &batch.batch_id, epoch, applied(&[("app", "b", b"in a file")])).await.unwrap();
    let sizes = || async {
        let digests = [&b"in a batch"[..], b"in a file", b"unnamed."].map(|content| sha256(content).parse().unwrap());
        let sizes = store.blob_sizes("w".parse().unwrap(), digests.to_vec()).await.unwrap();
        sizes.into_iter().map(|size| size.is_some()).collect::<Vec<_>>()
    };
    assert_eq!(store.sweep_blobs(UnixMillis(0)).await, Ok(0), "none is that old");
    assert_eq!(sizes().await, [true, true, true]);
    assert_eq!(store.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(1));
    assert_eq!(sizes().await, [true, true, false]);
    client.upload("w", b"unnamed.").await.unwrap();
    let named = Content::Blob(blob(b"unnamed."));
    let batch = client.submit(submit("w", "r3", vec![create_file("c", named)])).await.unwrap();
    crate::prepared::cancel(&mut client, &batch.batch_id).await.unwrap();
    assert_eq!(store.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(0), "a batch that ended is kept, with its content");
    assert_eq!(sizes().await, [true, true, true]);
}

/// The server sweeps now and then.
#[tokio::test]
async fn the_server_sweeps_blobs() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let options = Options { blob_retention: Duration::ZERO, ..Options::default() };
    let server = Server::over(store, options);
    let mut client = server.connect().await;
    let blob = client.upload("w", b"unnamed.").await.unwrap();
    let request = v1::FindMissingBlobsRequest { workspace_id: "w".to_owned(), sha256: vec![blob.sha256.clone()] };
    until(async || {
        let missing = client.files.find_missing_blobs(request.clone()).await.unwrap().into_inner().missing_sha256;
        (!missing.is_empty()).then_some(())
    })
    .await;
}

/// Stores a blob that nothing names, and an upload that was cut off, which began long ago.
async fn long_ago(store: &dyn Store, name: &str, number: u8) {
    let uploads = [0, 1].map(|which| UploadId(Uuid::from_u128(u128::from(2 * number + which))));
    for upload in uploads {
        store.put_chunk(upload, 0, b"abc".as_slice().into()).await.unwrap();
    }
    let whole = BlobRef { sha256: Sha256Digest::from_bytes([2 * number; 32]), ..cut_off(number) };
    store.commit_upload(uploads[0], workspace(name), whole).await.unwrap();
    store.claim_upload(uploads[1], workspace(name), cut_off(number)).await.unwrap();
}

/// The blob whose upload [`long_ago`] cut off.
fn cut_off(number: u8) -> BlobRef {
    BlobRef { sha256: Sha256Digest::from_bytes([2 * number + 1; 32]), size_bytes: 3 }
}

/// An upload that began long ago and is gone on with now is not swept away under its caller.
async fn an_upload_that_is_resumed_late_can_be_finished(place: Place) {
    let store = place.open().await;
    let began = UnixMillis(1);
    for number in [1, 2] {
        long_ago(&*store, "w", number).await;
    }
    let resumed = cut_off(2);
    assert!(store.unfinished_upload(workspace("w"), resumed).await.unwrap().is_some());
    assert_eq!(store.sweep_blobs(began).await, Ok(1), "of two uploads the one that nobody asked about");
    assert_eq!(store.unfinished_upload(workspace("w"), cut_off(1)).await, Ok(None));
    let found = store.unfinished_upload(workspace("w"), resumed).await.unwrap().unwrap();
    assert_eq!(found.bytes, resumed.size_bytes);
    store.commit_upload(found.upload, workspace("w"), resumed).await.unwrap();
    assert_eq!(store.blob_sizes(workspace("w"), vec![resumed.sha256]).await, Ok(vec![Some(resumed.size_bytes)]));
}

/// A server that is started again more often than `blob_retention` frees blobs and uploads all the same.
#[tokio::test(start_paused = true)]
async fn a_server_that_runs_for_a_short_time_sweeps_blobs() {
    const RETENTION: Duration = Duration::from_secs(24 * 3600);
    let dir = tempfile::tempdir().unwrap();
    let store = EmbeddedStore::open(dir.path()).unwrap();
    long_ago(&store, "w", 1).await;
    assert_eq!(store.used_bytes(workspace("w")).await, Ok(6));
    store.close().await.unwrap();
    drop(store);
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let options = Options { blob_retention: RETENTION, ..Options::default() };
    let (began, server) = (tokio::time::Instant::now(), Server::over(Arc::clone(&store) as Arc<dyn Store>, options));
    while store.used_bytes(workspace("w")).await != Ok(0) && began.elapsed() < RETENTION / 2 {
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(store.used_bytes(workspace("w")).await, Ok(0), "after {:?}", began.elapsed());
    server.stop().await.unwrap();
}

/// A batch that cannot be read keeps the blobs of its workspace, which it may name, and those of no other.
#[tokio::test]
async fn a_damaged_batch_keeps_no_blobs_of_other_workspaces() {
    let dir = tempfile::tempdir().unwrap();
    let store = Arc::new(EmbeddedStore::open(dir.path()).unwrap());
    let mut damaged = Vec::new();
    for (number, name) in [(1, "v"), (2, "w"), (3, "x")] {
        damaged.push(append(&store, stored_batch(u128::from(number), name, &format!("r{number}"))).await);
        long_ago(&*store, name, number).await;
    }
    store.close().await.unwrap();
    drop(store);
    let database = fjall::Database::builder(dir.path()).open().unwrap();
    let records = database.keyspace("records", fjall::KeyspaceCreateOptions::default).unwrap();
    records.insert([b"b", damaged[1].id.0.as_bytes().as_slice()].concat(), "damaged").unwrap();
    records.remove([b"s", damaged[2].id.0.as_bytes().as_slice()].concat()).unwrap();
    database.persist(fjall::PersistMode::SyncAll).unwrap();
    drop((records, database));
    let store = EmbeddedStore::open(dir.path()).unwrap();
    assert_eq!(store.sweep_blobs(UnixMillis(u64::MAX)).await, Ok(4), "a blob of v, and an upload of each workspace");
    let digests = || (1..=3).map(|number| Sha256Digest::from_bytes([2 * number; 32])).collect::<Vec<_>>();
    for (index, (name, is_kept)) in [("v", false), ("w", true), ("x", true)].into_iter().enumerate() {
        let sizes = store.blob_sizes(workspace(name), digests()).await.unwrap();
        assert_eq!(sizes[index], is_kept.then_some(3), "{name}");
    }
}

/// No more blobs are on their way at one time than the server allows.
#[tokio::test]
async fn transfers_are_bounded() {
    let dispatch = Settings { transfers: aptix_server::caller::Share::of(1), patience: SOON, ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let bytes = patterned(12 << 20);
    client.upload("w", &bytes).await.unwrap();
    let request = v1::DownloadBlobRequest { workspace_id: "w".to_owned(), sha256: sha256(&bytes) };
    // Its window is full long before its end, so it holds its place.
    let _unread = client.files.download_blob(request.clone()).await.unwrap();
    let second = client.files.download_blob(request).await.map(drop);
    assert_refused(second, Code::ResourceExhausted, "RESOURCE_EXHAUSTED", "");
}

/// A created file's content may be a blob, which must have been uploaded with this digest and size.
#[tokio::test]
async fn a_batch_names_only_blobs_that_are_there() {
    let server = Server::start();
    let mut client = server.connect().await;
    let bytes = patterned((1 << 20) + 1);
    let named = blob(&bytes);
    let files = vec![create_file("big.txt", Content::Blob(named.clone()))];
    let status = client.submit(submit("w", "r1", files.clone())).await.unwrap_err();
    assert_eq!(refusal(&status), (Code::FailedPrecondition, "BLOB_MISSING".to_owned(), String::new()));
    assert!(status.message().contains(&named.sha256));
    client.upload("w", &bytes).await.unwrap();
    let other_size = v1::BlobRef { size_bytes: 3, ..named };
    let wrong = vec![create_file("big.txt", Content::Blob(other_size))];
    let answer = client.submit(submit("w", "r1", wrong)).await;
    assert_refused(answer, Code::FailedPrecondition, "BLOB_MISSING", "");
    let batch = client.submit(submit("w", "r1", files)).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.report("w", &batch.batch_id, epoch, applied(&[("app", "big.txt", &bytes)])).await.unwrap();
    let read = client.read("w", File::Path("big.txt".to_owned())).await.unwrap();
    assert_eq!((read.content, read.file.unwrap().size_bytes), (None, bytes.len() as u64));
}
