//! What the log says of a batch's life.

use std::io::Write;
use std::pin::Pin;
use std::sync::{Arc, Mutex, Once};

use aptix_model::id::HistoryId;
use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_server::identity::Principal;
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{Answer, Store, StoreError, UploadId};
use serde_json::{Value, json};
use tokio::sync::watch;
use tonic::Code;
use tracing::subscriber::DefaultGuard;

use crate::identity::{admin, make, new, store_with_workspaces, with};
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

    /// Every line so far.
    fn lines(&self) -> Vec<Value> {
        let text = String::from_utf8(self.logged.0.lock().unwrap().clone()).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// The events since the last call, without what every line of a log has; how long something took is left at that it is
    /// known.
    fn events(&self) -> Vec<Value> {
        let lines = std::mem::take(&mut *self.logged.0.lock().unwrap());
        let lines = String::from_utf8(lines).unwrap();
        let lines = lines.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let events = lines.filter(|line| line["target"] == "aptix::events").map(|mut event| {
            let fields = event.as_object_mut().unwrap();
            let level = fields.remove("level").unwrap();
            let is_refusal = fields["Event"].as_str().unwrap().ends_with("Refused");
            assert_eq!(level, if is_refusal { "WARN" } else { "INFO" }, "{fields:?}");
            assert!(fields.remove("DurationMs").unwrap().as_f64().unwrap() >= 0.0, "{fields:?}");
            assert!(fields.remove("timestamp").is_some() && fields.remove("target").is_some());
            assert_eq!(fields.remove("Via").unwrap(), "server");
            event
        });
        events.collect()
    }
}

/// An event of the batch that `submit` makes, with more fields.
fn event(name: &str, more: Value) -> Value {
    let mut event = json!({
        "Event": name, "WorkspaceId": "w", "RequestId": "r1",
        "SessionId": "session-1", "ConversationId": "conversation-1", "TurnId": "turn-1",
    });
    let Value::Object(more) = more else { panic!("fields are an object") };
    event.as_object_mut().unwrap().extend(more);
    event
}

/// TUL-002-9.6, TUL-002-9.7: a batch is logged when it comes and when it is stored.
/// TUL-004-3.2.4, TUL-004-6.1.2, TUL-004-6.1.4.2: a created file is logged when it is sent, and when its result comes.
#[tokio::test]
async fn a_batch_leaves_its_trace() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let files = vec![create_text("src/New.txt", "text\n"), line_patch("app/a.txt")];
    let batch = client.submit(submit("w", "r1", files.clone())).await.unwrap();
    let id = &batch.batch_id;
    let size = json!({ "Files": 2, "Changes": 2 });
    let stored = json!({ "BatchId": id, "Files": 2, "Changes": 2, "Revision": 1 });
    assert_eq!(log.events(), [event("Batch.Received", size.clone()), event("Batch.Stored", stored)]);
    client.submit(submit("w", "r1", files)).await.unwrap();
    let repeated = event("Batch.Repeated", json!({ "BatchId": id, "State": "APPROVED" }));
    assert_eq!(log.events(), [event("Batch.Received", size), repeated]);

    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    next_event(&mut feed).await.unwrap();
    let forwarded = json!({
        "BatchId": id, "ToolName": "workspace_create_file", "Path": "src/New.txt", "Overwrite": true,
    });
    let sent = event("Batch.Forwarded", json!({ "BatchId": id, "Files": 2, "Changes": 2 }));
    assert_eq!(log.events(), [sent, event("Tool.CreateFile.Forwarded", forwarded)]);

    client.upload("w", b"text\n").await.unwrap();
    let mut report = applied(&[("app", "src/New.txt", b"text\n"), ("app", "a.txt", b"text\n")]);
    report.files[1].changes = two_changes();
    let result = json!({
        "BatchId": id, "ToolName": "workspace_create_file", "Path": "src/New.txt", "Overwrite": true, "Success": true,
        "SizeBytes": 5, "Hash": report.files[0].sha256(),
    });
    client.report("w", id, epoch, report.clone()).await.unwrap();
    client.report("w", id, epoch, report).await.unwrap();
    let reported = event("Batch.Reported", json!({ "BatchId": id, "State": "APPLIED" }));
    assert_eq!(log.events(), [reported, event("Tool.CreateFile.ResultReceived", result)]);
}

/// TUL-004-6.1.4.2: a result that is a failure has the code of the tool. A file that is not to blame has none.
#[tokio::test]
async fn a_failed_result_is_logged_with_its_error() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let files = vec![create_text("innocent.txt", ""), create_text("there.txt", "")];
    let batch = client.submit(submit("w", "r1", files)).await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    log.events();
    let mut report = failed("FILE_EXISTS");
    report.failures[0].file_index = Some(1);
    client.report("w", &batch.batch_id, epoch, report).await.unwrap();
    let result = |more: Value| {
        let about = json!({
            "BatchId": batch.batch_id, "ToolName": "workspace_create_file", "Overwrite": true, "Success": false,
        });
        let Value::Object(mut fields) = about else { panic!("fields are an object") };
        fields.extend(more.as_object().unwrap().clone());
        event("Tool.CreateFile.ResultReceived", fields.into())
    };
    let innocent = result(json!({ "Path": "innocent.txt" }));
    let there = result(json!({ "Path": "there.txt", "ErrorCode": "FileExists" }));
    let mut events = log.events();
    events.retain(|event| event["Event"] != "Tool.CreateFile.Forwarded" && event["Event"] != "Batch.Forwarded");
    let reported = event("Batch.Reported", json!({ "BatchId": batch.batch_id, "State": "FAILED" }));
    assert_eq!(events, [reported, innocent, there]);
}

/// TUL-002-9.8: a refused batch is logged with its reason, its document path, and everything that failed validation; so is
/// every other call that is refused, also one that cannot be read.
#[tokio::test]
async fn a_refused_call_is_logged_with_its_reasons() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let mut file = line_patch("app/a.txt");
    if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut file.action {
        patch.original_sha256 = "never logged".to_owned();
    }
    let sha = "app/a.txt: INVALID_REQUEST (SHA_FORMAT) in files[1].originalSha256";
    client.submit(submit("w", "r1", vec![create_text("b.txt", ""), file.clone()])).await.unwrap_err();
    let refused = json!({ "Reason": "INVALID_REQUEST", "DocPath": "app/a.txt", "Count": 1, "Causes": sha });
    let size = json!({ "Files": 2, "Changes": 2 });
    assert_eq!(log.events(), [event("Batch.Received", size), event("Batch.Refused", refused)]);

    // Of the wrong shape: no batch, but a known author.
    client.submit(v1::SubmitBatchRequest { content: None, ..submit("w", "r1", vec![]) }).await.unwrap_err();
    let causes = "INVALID_REQUEST (MISSING) in content";
    let refused = json!({ "Reason": "INVALID_REQUEST", "Count": 1, "Causes": causes });
    assert_eq!(log.events(), [event("Batch.Refused", refused)]);

    // A document that cannot be parsed.
    let text = r#"{"path":"a.txt","content":"SECRET"#.as_bytes();
    let document = v1::Document { dialect: String::new(), text: text.into() };
    let content = Some(v1::submit_batch_request::Content::Document(document));
    client.submit(v1::SubmitBatchRequest { content, ..submit("w", "r1", vec![]) }).await.unwrap_err();
    let causes = "INVALID_REQUEST (JSON) in content";
    let refused = json!({ "Reason": "INVALID_REQUEST", "Count": 1, "Causes": causes });
    assert_eq!(log.events(), [event("Batch.Refused", refused)]);

    let dry_run = v1::SubmitBatchRequest { validate_only: true, ..submit("w", "r1", vec![create_text("b.txt", "")]) };
    client.submit(dry_run).await.unwrap();
    let size = json!({ "DryRun": true, "Files": 1, "Changes": 0 });
    assert_eq!(log.events(), [event("Batch.Received", size.clone()), event("Batch.Checked", size)]);

    client.submit(submit("w", "r1", vec![create_text("b.txt", "")])).await.unwrap();
    log.events();
    client.submit(submit("w", "r1", vec![create_text("c.txt", "")])).await.unwrap_err();
    let refused = json!({ "Reason": "REQUEST_ID_REUSED", "Count": 1, "Causes": "REQUEST_ID_REUSED in requestId" });
    assert_eq!(log.events().pop(), Some(event("Batch.Refused", refused)));
}

#[tokio::test]
async fn a_refused_call_about_a_batch_is_logged_with_its_reasons() {
    let log = Log::begin();
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r1", vec![create_text("a.txt", "")])).await.unwrap();
    log.events();
    let about = |name: &str, method: &str, reason: &str| {
        json!({
            "Event": name, "WorkspaceId": "w", "BatchId": batch.batch_id, "ToolName": method, "Reason": reason,
            "Count": 1, "Causes": reason,
        })
    };
    client.report("w", &batch.batch_id, 7, failed("FILE_EXISTS")).await.unwrap_err();
    assert_eq!(log.events(), [about("Call.Refused", "ReportBatch", "LEASE_LOST")]);

    let cancel =
        v1::CancelBatchRequest { workspace_id: "w".to_owned(), batch_id: batch.batch_id.clone(), ..Default::default() };
    client.batches.cancel_batch(cancel.clone()).await.unwrap();
    assert_eq!(log.events(), [event("Batch.Cancelled", json!({ "BatchId": batch.batch_id }))]);
    let other = client.submit(submit("w", "r1-rejected", vec![create_text("a.txt", "")])).await.unwrap().batch_id;
    log.events();
    let reject = v1::RejectBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: other.clone(),
        reason: "no".to_owned(),
        ..v1::RejectBatchRequest::default()
    };
    client.batches.reject_batch(reject).await.unwrap();
    let [rejected] = log.events().try_into().unwrap();
    assert_eq!((&rejected["Event"], &rejected["BatchId"]), (&json!("Batch.Rejected"), &json!(other)));
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.report("w", &batch.batch_id, epoch, failed("FILE_EXISTS")).await.unwrap_err();
    assert_eq!(log.events(), [about("Call.Refused", "ReportBatch", "RESULT_FINAL")]);
    let unknown = v1::CancelBatchRequest { batch_id: "no id".to_owned(), ..cancel };
    client.batches.cancel_batch(unknown).await.unwrap_err();
    let causes = "INVALID_REQUEST (ID_FORMAT) in batchId";
    let refused = json!({
        "Event": "Call.Refused", "WorkspaceId": "w", "ToolName": "CancelBatch", "Reason": "INVALID_REQUEST", "Count": 1,
        "Causes": causes,
    });
    assert_eq!(log.events(), [refused]);

    // Bytes that are no message, and a list that is longer than any batch's.
    let refused = |reason: &str, causes: &str| json!({ "Event": "Call.Refused", "ToolName": "SubmitBatch", "Reason": reason, "Count": 1, "Causes": causes });
    client.submit_bytes(vec![0xff; 10]).await.unwrap_err();
    assert_eq!(log.events(), [refused("INVALID_REQUEST", "INVALID_REQUEST")]);
    client.submit(submit("w", "r2", vec![v1::FilePatch::default(); 1 << 18])).await.unwrap_err();
    assert_eq!(log.events(), [refused("TOO_LARGE", "TOO_LARGE (FILES) in edit.files")]);
}

/// A store whose disk has failed.
#[derive(Default)]
struct FailedStore(MemoryStore);

fn failure<'a, T: Send + 'a>() -> Answer<'a, T> {
    let cause = "input/output error on /dev/secret".to_owned();
    Box::pin(std::future::ready(Err(StoreError::Failed { action: "write", cause })))
}

impl Wrapper for FailedStore {
    fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        match call {
            "tokens" | "newest" | "batch" | "sweep_blobs" | "grow_older" | "retain" | "close" => question(&self.0),
            _ => failure(),
        }
    }
    fn history(&self) -> HistoryId {
        self.0.history()
    }
    fn discard_upload(&self, _: UploadId) {}
    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.failed()
    }
    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.0.healed()
    }
    fn reopenings(&self) -> watch::Receiver<u64> {
        self.0.reopenings()
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
    let words = "INTERNAL: the server failed at its store\nhint: the server's log says why; its operator has to act";
    assert_eq!(status.message(), words);
    let logged = log.lines();
    let failed: Vec<_> = logged.iter().filter(|line| line["message"] == "call failed in the store").collect();
    assert!(failed.len() == 1 && failed[0].to_string().contains("/dev/secret"), "{logged:?}");
}

/// Who made or ended a token, or created a workspace, is in the log by the name of their token.
#[tokio::test]
async fn what_an_operator_does_is_logged_with_their_token() {
    let log = Log::begin();
    let (store, registry) = store_with_workspaces().await;
    let operator = make(&registry, new("olga", Role::Operator, Scope::All, None)).await;
    let server = Server::over(store, Options::default());
    let clients = server.connect().await;
    let token = v1::CreateTokenRequest {
        name: "laptop".to_owned(),
        role: v1::Role::Agent.into(),
        workspace_id: "own".to_owned(),
        ..Default::default()
    };
    admin(&clients).create_token(with(&operator, token)).await.unwrap();
    admin(&clients).revoke_token(with(&operator, v1::RevokeTokenRequest { name: "laptop".to_owned() })).await.unwrap();
    for _ in 0..2 {
        let workspace = v1::CreateWorkspaceRequest { workspace_id: "new".to_owned() };
        admin(&clients).create_workspace(with(&operator, workspace)).await.unwrap();
    }
    let lines: Vec<_> = log.lines().into_iter().filter(|line| line["by"].is_string()).collect();
    let said = lines.iter().map(|line| (line["message"].as_str().unwrap(), line["by"].as_str().unwrap()));
    let by = "token olga";
    let expected = [("a token was made", by), ("a token was revoked", by), ("a workspace was created", by)];
    assert_eq!(said.collect::<Vec<_>>(), expected, "what was there before is not created again");
    assert_eq!((lines[1]["token"].as_str(), lines[2]["WorkspaceId"].as_str()), (Some("laptop"), Some("new")));
    assert_eq!(Principal::Owner.to_string(), "owner");
}
