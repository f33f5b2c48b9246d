//! Prepared batches over a real server and a real agent: planned, kept over restarts of both, applied as planned or moved.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use aptix_engine::digest::sha256;
use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::prepare_batch_request::Content;
use tonic::transport::Channel;

use crate::processes::{Machine, Server, connected, eventually, served, wait_until_served, write};

/// Calls the server of a test.
struct Caller {
    runtime: tokio::runtime::Runtime,
    batches: BatchServiceClient<Channel>,
    files: FileServiceClient<Channel>,
}

impl Caller {
    fn of(server: &Server) -> Self {
        let (runtime, channel) = connected(server);
        Self { runtime, batches: BatchServiceClient::new(channel.clone()), files: FileServiceClient::new(channel) }
    }

    fn prepare(&mut self, request: &str, document: &str) -> v1::Batch {
        let document = v1::Document { dialect: String::new(), text: document.as_bytes().to_vec().into() };
        self.prepare_content(request, Content::Document(document))
    }

    /// Prepares a batch that creates a file of an uploaded blob.
    fn prepare_blob(&mut self, request: &str, path: &str, blob: &v1::BlobRef) -> v1::Batch {
        self.prepare_content(request, Content::Edit(created(path, blob)))
    }

    fn prepare_content(&mut self, request: &str, content: Content) -> v1::Batch {
        let request = v1::PrepareBatchRequest {
            workspace_id: "demo".to_owned(),
            request_id: request.to_owned(),
            owner: "ann".to_owned(),
            content: Some(content),
            view: v1::BatchView::Full.into(),
            ..v1::PrepareBatchRequest::default()
        };
        let answer = self.runtime.block_on(self.batches.prepare_batch(request)).unwrap();
        answer.into_inner().batch.unwrap()
    }

    fn upload(&mut self, content: &[u8]) -> v1::BlobRef {
        use v1::upload_blob_request::Part;
        let blob = v1::BlobRef { sha256: sha256(content).to_string(), size_bytes: content.len() as u64 };
        let start = v1::UploadBlobStart {
            workspace_id: "demo".to_owned(),
            blob: Some(blob.clone()),
            ..v1::UploadBlobStart::default()
        };
        let chunks = content.chunks(1 << 20).map(|chunk| Part::Chunk(chunk.to_vec().into()));
        let parts = std::iter::once(Part::Start(start)).chain(chunks);
        let parts: Vec<_> = parts.map(|part| v1::UploadBlobRequest { part: Some(part) }).collect();
        self.runtime.block_on(self.files.upload_blob(tokio_stream::iter(parts))).unwrap();
        blob
    }

    fn apply(&mut self, batch: &v1::Batch) {
        let request = v1::ApplyPreparedRequest {
            workspace_id: "demo".to_owned(),
            batch_id: batch.batch_id.clone(),
            owner: "ann".to_owned(),
            request_id: format!("apply-{}", batch.batch_id),
            ..v1::ApplyPreparedRequest::default()
        };
        self.runtime.block_on(self.batches.apply_prepared(request)).unwrap();
    }

    fn ended(&mut self, batch: &v1::Batch) -> v1::Batch {
        let mut ended = None;
        eventually("the batch ends", || {
            let request = v1::GetBatchRequest {
                workspace_id: "demo".to_owned(),
                batch: Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone())),
                view: v1::BatchView::Full.into(),
            };
            let batch = self.runtime.block_on(self.batches.get_batch(request)).unwrap().into_inner().batch.unwrap();
            let is_open = [v1::BatchState::Prepared, v1::BatchState::Approved].contains(&batch.state());
            ended = (!is_open).then_some(batch);
            ended.is_some()
        });
        ended.unwrap()
    }
}

/// An edit that creates a file of an uploaded blob.
fn created(path: &str, blob: &v1::BlobRef) -> v1::Edit {
    let content = Some(v1::create_file::Content::Blob(blob.clone()));
    let create = v1::CreateFile { content, ..v1::CreateFile::default() };
    let action = Some(v1::file_patch::Action::CreateFile(create));
    let target = Some(v1::file_patch::Target::Path(path.to_owned()));
    let files = vec![v1::FilePatch { target, action, ..v1::FilePatch::default() }];
    v1::Edit { files, ..v1::Edit::default() }
}

fn replace(old: &str, new: &str) -> String {
    let patch = serde_json::json!({ "operation": "replace", "oldText": old, "newText": new });
    serde_json::json!({ "path": "a.txt", "patches": [patch] }).to_string()
}

/// Plans outlive both processes. Of two for one file both are applied, the second where its place is now; one whose own place
/// changed is refused, and writes nothing.
#[test]
fn plans_survive_restarts_and_move_with_their_places() {
    let machine = Machine::new();
    machine.put("a.txt", "one\ntwo\nthree\n");
    let server = machine.server();
    let agent = machine.agent(&server);
    wait_until_served(&server);
    let mut caller = Caller::of(&server);
    let first = caller.prepare("r1", &replace("one", "1\n1.5"));
    let second = caller.prepare("r2", &replace("three", "3"));
    let stale = caller.prepare("r3", &replace("one", "uno"));
    let plan = second.preparation.clone().unwrap().plan.unwrap();
    assert!(plan.report.clone().unwrap().diff.contains("-three\n+3\n"), "{plan:?}");
    assert_eq!(&plan.files[0].places[0].old[..], b"three\n", "{plan:?}");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "one\ntwo\nthree\n".to_owned())], "nothing is written yet");

    let address = server.address.clone();
    drop((agent, server, caller));
    let server = machine.server_at(&address);
    let mut caller = Caller::of(&server);
    // Nobody serves: what is let go ahead waits for the next agent.
    caller.apply(&first);
    let _agent = machine.agent(&server);
    let applied = caller.ended(&first);
    assert_eq!(applied.state(), v1::BatchState::Applied, "{applied:?}");
    assert!(applied.report.unwrap().files[0].warnings.is_empty());
    caller.apply(&second);
    let moved = caller.ended(&second);
    assert_eq!(moved.state(), v1::BatchState::Applied, "{moved:?}");
    assert_eq!(moved.report.unwrap().files[0].warnings[0].code, "REBASED");
    caller.apply(&stale);
    let refused = caller.ended(&stale);
    assert_eq!(refused.report.unwrap().failures[0].reason, "FILE_CHANGED");
    assert_eq!(machine.files(), [("a.txt".to_owned(), "1\n1.5\ntwo\n3\n".to_owned())]);
    assert_eq!(
        caller.prepare("r1", &replace("one", "1\n1.5")).state(),
        v1::BatchState::Applied,
        "a repeat plans nothing"
    );
}

/// Content that was uploaded is planned, and written after restarts of both processes; what comes of a document whose content is
/// too large for a question goes the same way. A batch whose blob is no text is stored as failed, and one that is cancelled
/// writes nothing.
#[test]
fn content_in_blobs_is_planned_and_applied_after_restarts() {
    let machine = Machine::new();
    let server = machine.server();
    let agent = machine.agent(&server);
    wait_until_served(&server);
    let mut caller = Caller::of(&server);
    let lines = "one more line\n".repeat(200_000);
    let blob = caller.upload(lines.as_bytes());
    let uploaded = caller.prepare_blob("r1", "a.txt", &blob);
    assert_eq!(uploaded.state(), v1::BatchState::Prepared, "{:?}", uploaded.report);
    let report = uploaded.preparation.clone().unwrap().plan.unwrap().report.unwrap();
    assert_eq!(report.files[0].sha256, Some(blob.sha256.clone()), "{report:?}");
    let document = |path: &str| serde_json::json!({ "path": path, "content": lines }).to_string();
    let detached = caller.prepare("r2", &document("b.txt"));
    assert_eq!(detached.state(), v1::BatchState::Prepared, "{:?}", detached.report);
    let cancelled = caller.prepare_blob("r3", "c.txt", &blob);
    let binary = caller.upload(b"\xff\xfe\0");
    let refused = caller.prepare_blob("r4", "d.txt", &binary);
    let failure = refused.report.as_ref().map(|report| &report.failures[0]);
    let found = failure.map(|failure| (failure.reason.as_str(), failure.path.as_str()));
    assert_eq!((refused.state(), found), (v1::BatchState::Failed, Some(("NOT_TEXT", "d.txt"))));
    let preview = v1::SubmitBatchRequest {
        workspace_id: "demo".to_owned(),
        request_id: "r5".to_owned(),
        content: Some(v1::submit_batch_request::Content::Edit(created("e.txt", &blob))),
        validate_only: true,
        ..v1::SubmitBatchRequest::default()
    };
    let previewed = caller.runtime.block_on(caller.batches.submit_batch(preview)).unwrap().into_inner().preview;
    assert_eq!(previewed.unwrap().outcome(), v1::Outcome::Applied);
    assert_eq!(machine.files(), [], "nothing is written yet");

    let address = server.address.clone();
    drop((agent, server, caller));
    let server = machine.server_at(&address);
    let _agent = machine.agent(&server);
    let mut caller = Caller::of(&server);
    let cancel = v1::CancelBatchRequest {
        workspace_id: "demo".to_owned(),
        batch_id: cancelled.batch_id.clone(),
        ..v1::CancelBatchRequest::default()
    };
    caller.runtime.block_on(caller.batches.cancel_batch(cancel)).unwrap();
    for batch in [&uploaded, &detached] {
        caller.apply(batch);
        let ended = caller.ended(batch);
        assert_eq!(ended.state(), v1::BatchState::Applied, "{:?}", ended.report);
    }
    let written = ["a.txt", "b.txt"].map(|path| (path.to_owned(), lines.clone()));
    assert!(machine.files() == written, "the contents are those of the blob, and no other file is there");
}

/// The command line prepares a batch, shows its plan, and lets its owner have it applied, once.
#[test]
fn a_document_is_prepared_and_applied_by_its_owner() {
    let (machine, server, _agent) = served("auto");
    wait_until_served(&server);
    machine.put("a.txt", "one\ntwo\n");
    write(&machine.path("edit.json"), &replace("two", "2"));
    let (planned, code) = machine.ask(&server, "submit", &["--prepare", "--owner", "ann", "edit.json"]);
    assert_eq!((code, &planned["state"]), (Some(0), &"PREPARED".into()), "{planned}");
    assert!(planned["diff"].as_str().unwrap().contains("-two\n+2\n"), "{planned}");
    let id = planned["batchId"].as_str().unwrap();
    assert_eq!(machine.ask(&server, "show", &[id]).0["diff"], planned["diff"]);
    assert_eq!(machine.files()[0].1, "one\ntwo\n", "nothing is written yet");
    let apply = |owner: &str| machine.call(&server, "apply-prepared", &["--owner", owner, id]);
    let refused = apply("bob");
    assert_eq!((refused.status.code(), has(&refused.stderr, "WRONG_OWNER")), (Some(1), true), "{refused:?}");
    let done = apply("ann");
    assert_eq!((done.status.code(), has(&done.stdout, "QUEUED")), (Some(0), true), "{done:?}");
    eventually("the batch is applied", || machine.files()[0].1 == "one\n2\n");
    assert_eq!(apply("ann").status.code(), Some(1));

    let (rejected, _) = machine.ask(&server, "submit", &["--prepare", "--owner", "ann", "edit.json"]);
    assert_eq!((&rejected["state"], &rejected["success"]), (&"FAILED".into(), &false.into()), "{rejected}");
    write(&machine.path("edit.json"), &replace("one", "1"));
    let (planned, _) = machine.ask(&server, "submit", &["--prepare", "edit.json"]);
    let id = planned["batchId"].as_str().unwrap();
    let rejected = machine.call(&server, "reject", &["--reason", "not now", "--reviewer", "Rita", id]);
    assert!(rejected.status.success() && has(&rejected.stdout, "REJECTED"), "{rejected:?}");
    let (shown, _) = machine.ask(&server, "show", &[id]);
    assert_eq!(shown["errors"][0]["message"], "Rita rejected the batch: not now");
}

/// While nobody serves the workspace, a submit that waits says so, and that the batch is queued: nobody has approved it.
#[test]
fn a_submit_that_waits_says_that_nobody_serves() {
    let machine = Machine::new();
    let server = machine.server();
    write(&machine.path("edit.json"), "{\"path\":\"a.txt\",\"content\":\"x\\n\"}");
    let queued = machine.call(&server, "submit", &["edit.json"]);
    assert!(has(&queued.stdout, "QUEUED") && !has(&queued.stdout, "APPROVED"), "{queued:?}");
    let url = server.url();
    write(&machine.path("edit.json"), "{\"path\":\"b.txt\",\"content\":\"x\\n\"}");
    let mut command = machine.aptix(&["submit", "--server", &url, "--workspace", "demo", "--wait", "edit.json"]);
    let mut waiting = command.stderr(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut said = String::new();
    let mut stderr = BufReader::new(waiting.stderr.take().unwrap());
    while !said.contains("nobody serves the workspace demo") {
        assert!(stderr.read_line(&mut said).unwrap() > 0, "{said}");
    }
    let _agent = machine.agent(&server);
    let done = waiting.wait_with_output().unwrap();
    assert!(done.status.success() && has(&done.stdout, "b.txt"), "{done:?}");
}

fn has(output: &[u8], part: &str) -> bool {
    String::from_utf8_lossy(output).contains(part)
}
