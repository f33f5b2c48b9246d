//! What the log says of a batch's life.

use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{HistoryId, Revision, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::BatchRecord;
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::{
    Answer, Appended, BatchSelector, CloudFile, Lease, Listed, ListedFile, Store, StoreError, Transition, Transitioned,
    UploadId,
};
use tokio_util::bytes::Bytes;
use tonic::Code;
use tracing::subscriber::DefaultGuard;

use crate::server::{Server, applied, create_text, failed, line_patch, next_event, refusal, submit, two_changes};

/// A log for the whole program, besides those of the tests: with it, every event always has an interested subscriber, also
/// while tests set up theirs.
static BEGIN: Once = Once::new();

/// What is logged by a test's own thread, and by whatever works for it on others.
struct Log {
    logged: Logged,
    _until: DefaultGuard,
}

#[derive(Clone, Default)]
struct Logged(Arc<Mutex<Vec<u8>>>);

impl Write for Logged {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

impl Log {
    fn begin() -> Self {
        BEGIN.call_once(|| {
            let nowhere = tracing_subscriber::fmt().with_writer(std::io::sink).finish();
            tracing::subscriber::set_global_default(nowhere).unwrap();
        });
        let logged = Logged::default();
        let writer = logged.clone();
        let subscriber = tracing_subscriber::fmt().json().flatten_event(true).with_writer(move || writer.clone());
        Self { logged, _until: tracing::subscriber::set_default(subscriber.finish()) }
    }

    /// The lines that log this event.
    fn lines(&self, event: &str) -> Vec<String> {
        let text = String::from_utf8(self.logged.0.lock().unwrap().clone()).unwrap();
        let message = format!("\"message\":\"{event}\"");
        text.lines().filter(|line| line.contains(&message)).map(str::to_owned).collect()
    }

    fn assert_one(&self, event: &str, parts: &[&str]) {
        let lines = self.lines(event);
        assert_eq!(lines.len(), 1, "{event}: {lines:?}");
        for part in parts {
            assert!(lines[0].contains(part), "{part} in {}", lines[0]);
        }
    }
}

/// TUL-002-9.6, TUL-002-9.7: a batch is logged when it comes and when it is stored.
/// TUL-004-3.2.4, TUL-004-6.1.2, TUL-004-6.1.4.2: a created file is logged when it is sent, and when its result comes.
#[tokio::test]
async fn a_batch_leaves_its_trace() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let files = vec![create_text("src/New.txt", "text\n"), line_patch("app/a.txt")];
    let batch = client.submit(submit("w", "r1", files)).await.unwrap();
    log.assert_one("batch received", &["\"files\":2", "\"changes\":2", "\"requestId\":\"r1\""]);
    let id = format!("\"batchId\":\"{}\"", batch.batch_id);
    log.assert_one("batch stored", &[&id, "\"files\":2", "\"changes\":2", "\"workspaceId\":\"w\""]);

    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    next_event(&mut feed).await.unwrap();
    let turn = ["\"SessionId\":\"session-1\"", "\"ConversationId\":\"conversation-1\"", "\"TurnId\":\"turn-1\""];
    let what = ["\"ToolName\":\"workspace_create_file\"", "\"Path\":\"src/New.txt\"", "\"Overwrite\":true"];
    log.assert_one("Tool.CreateFile.Forwarded", &[turn.as_slice(), what.as_slice()].concat());

    client.upload("w", b"text\n").await.unwrap();
    let mut report = applied(&[("app", "src/New.txt", b"text\n"), ("app", "a.txt", b"text\n")]);
    report.files[1].changes = two_changes();
    let hash = format!("\"Hash\":\"{}\"", report.files[0].sha256());
    client.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
    client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    let parts = ["\"Success\":true", "\"SizeBytes\":5", &hash, "\"TurnId\":\"turn-1\""];
    log.assert_one("Tool.CreateFile.ResultReceived", &parts);
}

/// TUL-004-6.1.4.2: a result that is a failure says which.
#[tokio::test]
async fn a_failed_result_is_logged_with_its_error() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![create_text("a.txt", "")])).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.report("w", &batch.batch_id, epoch, failed("FILE_EXISTS")).await.unwrap();
    let parts = ["\"Success\":false", "\"ErrorCode\":\"FILE_EXISTS\"", "\"Path\":\"a.txt\""];
    log.assert_one("Tool.CreateFile.ResultReceived", &parts);
}

/// TUL-002-9.8: a refused batch is logged with its reason, its document path, and everything that failed validation.
#[tokio::test]
async fn a_refused_batch_is_logged_with_its_reasons() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let mut file = line_patch("app/a.txt");
    if let Some(aptix_model::wire::v1::file_patch::Action::LinePatch(patch)) = &mut file.action {
        patch.original_sha256 = "abc".to_owned();
    }
    client.submit(submit("w", "r1", vec![file])).await.unwrap_err();
    let parts = ["\"reason\":\"INVALID_REQUEST\"", "\"docPath\":\"app/a.txt\"", "SHA_FORMAT", "\"count\":1"];
    log.assert_one("batch refused", &parts);
    assert!(log.lines("batch stored").is_empty());
}

/// A store whose disk has failed.
#[derive(Default)]
struct FailedStore(MemoryStore);

fn failure<'a, T: Send + 'a>() -> Answer<'a, T> {
    let cause = "input/output error on /dev/secret".to_owned();
    Box::pin(std::future::ready(Err(StoreError::Failed { action: "write", cause })))
}

impl Store for FailedStore {
    fn append(&self, _: BatchRecord) -> Answer<'_, Appended> {
        failure()
    }
    fn transition(&self, _: Transition) -> Answer<'_, Transitioned> {
        failure()
    }
    fn history(&self) -> HistoryId {
        self.0.history()
    }
    fn grant_lease(&self, _: WorkspaceId, _: Sha256Digest) -> Answer<'_, u64> {
        failure()
    }
    fn lease(&self, _: WorkspaceId) -> Answer<'_, Lease> {
        failure()
    }
    fn digest(&self, _: WorkspaceId, _: Revision) -> Answer<'_, Option<Sha256Digest>> {
        failure()
    }
    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>> {
        self.0.newest(workspace)
    }
    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        self.0.batch(workspace, which)
    }
    fn batches(&self, _: WorkspaceId, _: Option<Revision>, _: usize) -> Answer<'_, Vec<Listed>> {
        failure()
    }
    fn events(&self, _: WorkspaceId, _: Revision, _: usize) -> Answer<'_, Vec<Listed>> {
        failure()
    }
    fn file(&self, _: WorkspaceId, _: RootedPath) -> Answer<'_, Option<CloudFile>> {
        failure()
    }
    fn files_with_key(&self, _: WorkspaceId, _: DocPath) -> Answer<'_, Vec<CloudFile>> {
        failure()
    }
    fn files(&self, _: WorkspaceId, _: Option<RootedPath>, _: usize) -> Answer<'_, Vec<ListedFile>> {
        failure()
    }
    fn blob_sizes(&self, _: WorkspaceId, _: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>> {
        failure()
    }
    fn blob_chunk(&self, _: WorkspaceId, _: Sha256Digest, _: u32) -> Answer<'_, Option<Bytes>> {
        failure()
    }
    fn put_chunk(&self, _: UploadId, _: u32, _: Bytes) -> Answer<'_, ()> {
        failure()
    }
    fn commit_upload(&self, _: UploadId, _: WorkspaceId, _: BlobRef) -> Answer<'_, ()> {
        failure()
    }
    fn discard_upload(&self, _: UploadId) {}
    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.failed()
    }
    fn close(&self) -> Answer<'_, ()> {
        self.0.close()
    }
}

/// TUL-002-9.4, TUL-002-9.5: an unexpected error is logged in full, and its caller sees only general words.
#[tokio::test]
async fn an_unexpected_error_is_logged_and_not_shown() {
    let log = Log::begin();
    let server = Server::over(Arc::new(FailedStore::default()), Options::default());
    let mut client = server.connect().await;
    let status = client.submit(submit("w", "r1", vec![create_text("a", "")])).await.unwrap_err();
    assert_eq!(refusal(&status), (Code::Internal, "INTERNAL".to_owned(), String::new()));
    let words = "INTERNAL: the server failed at its store; the server's log says why; its operator has to act";
    assert_eq!(status.message(), words);
    log.assert_one("call failed in the store", &["/dev/secret"]);
}
