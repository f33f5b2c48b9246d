//! Calls whose caller's time is over while the store gives no answer: each ends in time and says so, and what it waited for is given up.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use aptix_model::id::HistoryId;
use aptix_model::wire::v1;
use aptix_model::wire::v1::file_selector::File;
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, Store, UploadId};
use prost::Message as _;
use tokio::sync::watch;
use tokio::time::timeout;
use tonic::Code;

use crate::http2::{Raw, framed, request};
use crate::server::{SOON, Server, create_text, refusal, sha256, submit};

/// A store over one in memory that answers no read while it is held. How many were asked, and how many of them were given up.
#[derive(Default)]
struct Held {
    inner: MemoryStore,
    is_held: AtomicBool,
    reads: watch::Sender<(usize, usize)>,
}

/// A read that has no answer.
struct Read<'a>(&'a watch::Sender<(usize, usize)>);

impl Drop for Read<'_> {
    fn drop(&mut self) {
        self.0.send_modify(|(_, given_up)| *given_up += 1);
    }
}

/// The calls that are held.
const READS: [&str; 15] = [
    "batch",
    "session",
    "digest",
    "newest",
    "batches",
    "events",
    "steps",
    "file",
    "files_with_key",
    "files",
    "blob_sizes",
    "blob_chunk",
    "unfinished_upload",
    "lease",
    "roots",
];

impl Wrapper for Held {
    fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        if !(self.is_held.load(Ordering::SeqCst) && READS.contains(&call)) {
            return question(&self.inner);
        }
        Box::pin(async move {
            self.reads.send_modify(|(asked, _)| *asked += 1);
            let _read = Read(&self.reads);
            pending().await
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
}

/// Calls that read of the store, of a workspace with one batch.
fn calls(batch: &str) -> Vec<(&'static str, Vec<u8>)> {
    let (workspace_id, batch_id) = ("w".to_owned(), batch.to_owned());
    let file = || Some(v1::FileSelector { file: Some(File::Path("a".to_owned())) });
    let which = Some(v1::get_batch_request::Batch::BatchId(batch_id.clone()));
    let get = v1::GetBatchRequest { workspace_id: workspace_id.clone(), batch: which, ..Default::default() };
    let change = v1::GetChangeRequest { workspace_id: workspace_id.clone(), id: batch_id.clone() };
    let list = v1::ListBatchesRequest { workspace_id: workspace_id.clone(), ..Default::default() };
    let watch = v1::WatchBatchRequest { workspace_id: workspace_id.clone(), batch_id, ..Default::default() };
    let watch_all = v1::WatchWorkspaceRequest { workspace_id: workspace_id.clone(), ..Default::default() };
    let files = v1::ListFilesRequest { workspace_id: workspace_id.clone(), ..Default::default() };
    let read = v1::ReadFileRequest { workspace_id: workspace_id.clone(), file: file(), ..Default::default() };
    let missing = v1::FindMissingBlobsRequest { workspace_id: workspace_id.clone(), sha256: vec![sha256(b"x")] };
    let download = v1::DownloadBlobRequest { workspace_id: workspace_id.clone(), sha256: sha256(b"") };
    let blob = Some(v1::BlobRef { sha256: sha256(b"x"), size_bytes: 1 });
    let upload = v1::StatUploadRequest { workspace_id: workspace_id.clone(), blob };
    let session = v1::GetSessionRequest { workspace_id, session_id: "session-1".to_owned() };
    vec![
        ("BatchService/GetBatch", get.encode_to_vec()),
        ("BatchService/GetChange", change.encode_to_vec()),
        ("BatchService/ListBatches", list.encode_to_vec()),
        ("BatchService/WatchBatch", watch.encode_to_vec()),
        ("WorkspaceService/WatchWorkspace", watch_all.encode_to_vec()),
        ("FileService/ListFiles", files.encode_to_vec()),
        ("FileService/ReadFile", read.encode_to_vec()),
        ("FileService/FindMissingBlobs", missing.encode_to_vec()),
        ("FileService/DownloadBlob", download.encode_to_vec()),
        ("FileService/StatUpload", upload.encode_to_vec()),
        ("SessionService/GetSession", session.encode_to_vec()),
    ]
}

#[tokio::test]
async fn a_call_ends_with_its_callers_time_and_gives_up_what_it_waits_for() {
    let store = Arc::new(Held::default());
    let server = Server::over(Arc::clone(&store) as Arc<dyn Store>, Options::default());
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    let mut reads = store.reads.subscribe();
    store.is_held.store(true, Ordering::SeqCst);
    let raw = Raw::over(server.stream().await).await;
    for (method, message) in calls(&batch.batch_id) {
        for time in ["1m", "100m"] {
            let head = request(&format!("/aptix.v1.{method}")).header("grpc-timeout", time);
            let ended = raw.call(head, &framed(0, message.len(), &message), true).await;
            let expected = (Code::DeadlineExceeded, "DEADLINE_EXCEEDED".to_owned(), String::new());
            assert_eq!(refusal(&ended.status), expected, "{method} within {time}: {ended:?}");
        }
        let all = reads.wait_for(|(asked, given_up)| asked == given_up);
        timeout(SOON, all).await.unwrap_or_else(|_| panic!("{method} still waits for the store")).unwrap();
    }
    let (asked, _) = *store.reads.borrow();
    assert!(asked >= calls(&batch.batch_id).len(), "{asked} reads were waited for");
    // The control: the same call is answered once the store is.
    store.is_held.store(false, Ordering::SeqCst);
    client.get("w", &batch.batch_id).await.unwrap();
}
