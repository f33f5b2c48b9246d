//! Uploads that were cut off: how much the server has of them, going on from there, and what becomes of those that nobody goes
//! on with.

use std::sync::Arc;

use aptix_model::record::UnixMillis;
use aptix_model::wire::v1;
use aptix_server::options::Options;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Status};

use crate::place::{Place, durable, in_a_bucket};
use crate::server::{Clients, Server, assert_refused, part_chunk, part_start, sha256};
use crate::until::until;

const MIB: usize = 1 << 20;

fn blob(bytes: &[u8]) -> v1::BlobRef {
    v1::BlobRef { sha256: sha256(bytes), size_bytes: bytes.len() as u64 }
}

/// Bytes of which no two chunks are equal.
fn patterned(length: usize) -> Vec<u8> {
    (0..length).map(|index| u8::try_from((index + index / MIB) * 31 % 251).unwrap()).collect()
}

async fn stat(client: &mut Clients, blob: &v1::BlobRef) -> v1::StatUploadResponse {
    let request = v1::StatUploadRequest { workspace_id: "w".to_owned(), blob: Some(blob.clone()) };
    client.files.stat_upload(request).await.unwrap().into_inner()
}

/// Waits until no call uploads the blob; answers how much there is of it.
async fn received(client: &mut Clients, blob: &v1::BlobRef) -> usize {
    let found = until(async || Some(stat(client, blob).await).filter(|found| !found.is_in_progress)).await;
    usize::try_from(found.received_bytes).unwrap()
}

fn start(blob: &v1::BlobRef, offset: usize) -> v1::UploadBlobRequest {
    let mut part = part_start("w", blob.clone());
    if let Some(v1::upload_blob_request::Part::Start(start)) = &mut part.part {
        start.offset = offset as u64;
    }
    part
}

/// Sends the bytes from an offset on; answers the kept blob, and how many bytes were sent.
async fn resume(client: &mut Clients, all: &[u8], offset: usize) -> Result<(v1::BlobRef, usize), Status> {
    let mut parts = vec![start(&blob(all), offset)];
    let sent = &all[offset.min(all.len())..];
    parts.extend(sent.chunks(MIB).map(|chunk| part_chunk(chunk.to_vec())));
    Ok((client.upload_parts(parts).await?, sent.len()))
}

/// Sends the first bytes of a blob, and waits until the server has them; the connection is cut with what is answered.
#[expect(clippy::disallowed_methods, reason = "the handle is kept, and ended with the test")]
async fn begin(
    client: &mut Clients,
    blob: &v1::BlobRef,
    first: &[u8],
) -> (mpsc::Sender<v1::UploadBlobRequest>, tokio::task::JoinHandle<()>) {
    let (parts, stream) = mpsc::channel(4);
    let mut files = client.files.clone();
    let call = tokio::spawn(async move { drop(files.upload_blob(ReceiverStream::new(stream)).await) });
    parts.send(start(blob, 0)).await.unwrap();
    for chunk in first.chunks(MIB) {
        parts.send(part_chunk(chunk.to_vec())).await.unwrap();
    }
    until(async || (stat(client, blob).await.received_bytes == first.len() as u64).then_some(())).await;
    (parts, call)
}

/// As [`begin`], and cuts the call off.
async fn cut_off(client: &mut Clients, all: &[u8], after: usize) {
    let (_parts, call) = begin(client, &blob(all), &all[..after]).await;
    call.abort();
    assert_eq!(received(client, &blob(all)).await, after);
}

durable! {
    only_the_rest_is_sent_after_a_cut,
    other_bytes_are_refused_by_digest,
    an_unfinished_upload_outlives_the_store_and_is_swept_by_age,
}

in_a_bucket! {
    only_the_rest_is_sent_after_a_cut,
    other_bytes_are_refused_by_digest,
    an_unfinished_upload_outlives_the_store_and_is_swept_by_age,
}

/// After a cut at 60 of 64 MiB the rest alone is sent, and the blob is what it was announced as.
async fn only_the_rest_is_sent_after_a_cut(place: Place) {
    let store = place.open().await;
    let server = Server::over(store, Options::default());
    let mut client = server.connect().await;
    let all = patterned(64 * MIB);
    assert_eq!(stat(&mut client, &blob(&all)).await, v1::StatUploadResponse::default());
    cut_off(&mut client, &all, 60 * MIB).await;
    let (kept, sent) = resume(&mut client, &all, 60 * MIB).await.unwrap();
    assert_eq!((kept, sent), (blob(&all), 4 * MIB));
    assert!(client.download("w", &sha256(&all)).await.unwrap() == all);
    assert_eq!(received(&mut client, &blob(&all)).await, all.len());
}

/// The same bytes may come twice, from any offset up to what there is; an offset behind it is refused, and says what there is.
#[tokio::test]
async fn an_upload_goes_on_from_anything_that_there_is() {
    let server = Server::start();
    let mut client = server.connect().await;
    for offset in [1, MIB - 1, MIB, 2 * MIB + 7, 3 * MIB] {
        let all = patterned(3 * MIB + offset + 5);
        cut_off(&mut client, &all, 3 * MIB).await;
        let status = resume(&mut client, &all, 3 * MIB + 1).await.unwrap_err();
        assert!(status.message().contains("3145728 bytes"), "{status}");
        assert_refused(Err::<(), _>(status), Code::InvalidArgument, "INVALID_REQUEST", "UPLOAD_OFFSET");
        resume(&mut client, &all, offset).await.unwrap();
        assert!(client.download("w", &sha256(&all)).await.unwrap() == all, "from {offset}");
        // What is there already is checked as well, and kept.
        resume(&mut client, &all, 2 * MIB + 1).await.unwrap();
    }
    let small = patterned(9);
    let status = resume(&mut client, &small, 4).await.map(drop);
    assert_refused(status, Code::InvalidArgument, "INVALID_REQUEST", "UPLOAD_OFFSET");
}

/// Going on with other bytes is refused by digest, and nothing is kept; other sizes and workspaces have no part in an upload.
async fn other_bytes_are_refused_by_digest(place: Place) {
    let store = place.open().await;
    let server = Server::over(store, Options::default());
    let mut client = server.connect().await;
    let all = patterned(4 * MIB);
    cut_off(&mut client, &all, 3 * MIB).await;
    let larger = v1::BlobRef { size_bytes: 5 << 20, ..blob(&all) };
    assert_eq!(stat(&mut client, &larger).await.received_bytes, 0);
    let elsewhere = v1::StatUploadRequest { workspace_id: "v".to_owned(), blob: Some(blob(&all)) };
    assert_eq!(client.files.stat_upload(elsewhere).await.unwrap().into_inner().received_bytes, 0);
    let other = vec![start(&blob(&all), 3 * MIB), part_chunk(vec![7; MIB])];
    assert_refused(client.upload_parts(other).await, Code::InvalidArgument, "HASH_FAILED", "");
    assert_eq!(received(&mut client, &blob(&all)).await, 0, "no one knows which bytes were wrong");
    assert_refused(client.download("w", &sha256(&all)).await, Code::NotFound, "NOT_FOUND", "");
    resume(&mut client, &all, 0).await.unwrap();
    assert!(client.download("w", &sha256(&all)).await.unwrap() == all);
}

/// While one call uploads a blob, another may upload it from the start and finish first; it cannot go on with what comes by
/// the other one.
#[tokio::test]
async fn two_callers_upload_one_blob_at_once() {
    let server = Server::start();
    let (mut one, mut other) = (server.connect().await, server.connect().await);
    let all = patterned(3 * MIB);
    let (parts, call) = begin(&mut one, &blob(&all), &all[..2 * MIB]).await;
    assert!(stat(&mut other, &blob(&all)).await.is_in_progress);
    let refused = resume(&mut other, &all, 2 * MIB).await.map(drop);
    assert_refused(refused, Code::ResourceExhausted, "RESOURCE_EXHAUSTED", "");
    resume(&mut other, &all, 0).await.unwrap();
    parts.send(part_chunk(all[2 * MIB..].to_vec())).await.unwrap();
    drop(parts);
    call.await.unwrap();
    assert!(one.download("w", &sha256(&all)).await.unwrap() == all);
}

/// An upload that was cut off is there after the store is opened again, goes on, and is swept by age.
async fn an_unfinished_upload_outlives_the_store_and_is_swept_by_age(place: Place) {
    let (all, swept) = (patterned(3 * MIB), patterned(4 * MIB));
    {
        let store = place.open().await;
        let server = Server::over(Arc::clone(&store), Options::default());
        let mut client = server.connect().await;
        cut_off(&mut client, &all, 2 * MIB).await;
        cut_off(&mut client, &swept, 2 * MIB).await;
        drop(client);
        server.stop().await.unwrap();
    }
    let store = place.open().await;
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut client = server.connect().await;
    assert_eq!(received(&mut client, &blob(&all)).await, 2 * MIB);
    resume(&mut client, &all, 2 * MIB).await.unwrap();
    assert!(client.download("w", &sha256(&all)).await.unwrap() == all);
    assert_eq!(store.sweep_blobs(UnixMillis(0)).await, Ok(0), "none is that old");
    assert_eq!(received(&mut client, &blob(&swept)).await, 2 * MIB);
    assert_eq!(store.sweep_blobs(UnixMillis(u64::MAX)).await.map(|swept| swept > 0), Ok(true));
    assert_eq!(received(&mut client, &blob(&swept)).await, 0);
    let gone = resume(&mut client, &swept, 2 * MIB).await.map(drop);
    assert_refused(gone, Code::InvalidArgument, "INVALID_REQUEST", "UPLOAD_OFFSET");
}
