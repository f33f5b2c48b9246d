//! Calls of tools that plan or write: each becomes one batch under its request id, waited for, and answered as it ends.

use aptix_model::limits::LINES;
use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use prost_types::Duration;
use serde_json::{Value, json};
use tonic::{Code, Status};

use crate::live_files::Disk;
use crate::prepared;
use crate::server::{Clients, Server, applied, assert_refused, create_text, failed, fields, hello, next_event, sha256};

const CREATE: &str = "workspace_create_file";

fn request(request_id: &str, tool: &str, arguments: &Value) -> v1::CallToolRequest {
    v1::CallToolRequest {
        workspace_id: "w".to_owned(),
        tool: tool.to_owned(),
        arguments: arguments.to_string().into_bytes().into(),
        request_id: request_id.to_owned(),
        owner: "ann".to_owned(),
        ..v1::CallToolRequest::default()
    }
}

fn create(text: &str) -> Value {
    json!({ "path": "a.txt", "content": text, "overwrite": true })
}

async fn call(client: &mut Clients, request: v1::CallToolRequest) -> Result<v1::CallToolResponse, Status> {
    Ok(client.tools.call_tool(request).await?.into_inner())
}

/// The same call, which does not wait.
fn impatient(request: v1::CallToolRequest) -> v1::CallToolRequest {
    v1::CallToolRequest { wait: Some(Duration { seconds: 0, nanos: 0 }), ..request }
}

fn structured(answer: &v1::CallToolResponse) -> Value {
    serde_json::from_str(&answer.structured).unwrap()
}

async fn count(client: &mut Clients) -> usize {
    let request = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    client.batches.list_batches(request).await.map_or(0, |listed| listed.into_inner().batches.len())
}

/// Without an agent the batch is stored and waits; the same call goes on waiting, two at once as well, and each is answered with
/// the one end.
#[tokio::test]
async fn a_call_is_one_batch_however_often_it_comes() {
    let server = Server::start();
    let mut client = server.connect().await;
    let pending = call(&mut client, impatient(request("r1", CREATE, &create("new\n")))).await.unwrap();
    assert_eq!((pending.is_error, pending.state()), (true, v1::BatchState::Approved));
    let object = structured(&pending);
    assert_eq!((&object["errorCode"], &object["detail"]), (&json!("WriteFailed"), &json!("DEADLINE_EXCEEDED")));
    assert!(object["message"].as_str().unwrap().contains("no agent serves"), "{object}");

    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let event = next_event(&mut feed).await.unwrap();
    assert_eq!(event.batch.unwrap().batch_id, pending.batch_id);
    let again = call(&mut client, impatient(request("r1", CREATE, &create("new\n")))).await.unwrap();
    assert_eq!((&again.batch_id, again.state()), (&pending.batch_id, v1::BatchState::Approved));
    assert!(again.structured.contains("has not reported"), "{}", again.structured);

    client.upload("w", b"new\n").await.unwrap();
    let (mut one, mut other, mut agent) = (client.clone(), client.clone(), client.clone());
    let report = applied(&[("app", "a.txt", b"new\n")]);
    let (one, other, reported) = tokio::join!(
        call(&mut one, request("r1", CREATE, &create("new\n"))),
        call(&mut other, request("r1", CREATE, &create("new\n"))),
        agent.report("w", &pending.batch_id, epoch, report),
    );
    reported.unwrap();
    let (one, other) = (one.unwrap(), other.unwrap());
    assert_eq!(one, other);
    assert_eq!((one.is_error, one.state(), &one.batch_id), (false, v1::BatchState::Applied, &pending.batch_id));
    let expected = json!({
        "success": true, "message": "File overwritten.", "path": "a.txt", "sizeBytes": 4, "hash": sha256(b"new\n"),
        "created": false, "overwritten": true, "errorCode": null, "detail": null,
    });
    assert_eq!(structured(&one), expected);
    assert_eq!(call(&mut client, request("r1", CREATE, &create("new\n"))).await.unwrap(), one, "it has ended");
    assert_eq!(count(&mut client).await, 1);

    let reused = call(&mut client, request("r1", CREATE, &create("other\n"))).await;
    assert_refused(reused, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    assert_eq!(count(&mut client).await, 1);
}

/// Two calls that come at once under one new request id store one batch.
#[tokio::test]
async fn two_calls_at_once_store_one_batch() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (mut one, mut other) = (client.clone(), client.clone());
    let same = || impatient(request("r1", CREATE, &create("new\n")));
    let (one, other) = tokio::join!(call(&mut one, same()), call(&mut other, same()));
    assert_eq!(one.unwrap().batch_id, other.unwrap().batch_id);
    assert_eq!(count(&mut client).await, 1);
}

/// TUL-002-9.3: arguments that are none are refused by name in the form of the tool, and nothing is stored.
#[tokio::test]
async fn a_fault_in_the_arguments_stores_nothing() {
    let server = Server::start();
    let mut client = server.connect().await;
    let insert = json!({ "operation": "insert", "afterLine": 0, "newLines": vec![""; LINES + 2] });
    let many_lines = json!({ "files": [{ "docPath": "app/a", "originalSha256": "", "changes": [insert] }] });
    for (tool, arguments, code, detail) in [
        ("workspace_write_patch", many_lines, "TOO_LARGE", "DOCUMENT"),
        ("edit", json!({ "file_path": 1, "old_string": "a", "new_string": "b" }), "INVALID_REQUEST", "TYPE"),
        ("edit", json!({ "file_path": "C:/a", "old_string": "a", "new_string": "b" }), "INVALID_PATH", "DRIVE"),
        ("patch", json!({ "path": "a.txt", "patches": [] }), "INVALID_REQUEST", "EMPTY"),
        ("workspace_write_patch", json!({ "files": [] }), "INVALID_REQUEST", "EMPTY"),
        ("prepare_file_append", json!({ "path": "../a", "content": "x" }), "INVALID_PATH", "TRAVERSAL"),
        ("apply_file_modification", json!({ "hunk_id": "x" }), "INVALID_REQUEST", "ID_FORMAT"),
        ("undo", json!({ "batch_id": "x" }), "INVALID_REQUEST", "ID_FORMAT"),
    ] {
        let answer = call(&mut client, request("r1", tool, &arguments)).await.unwrap();
        assert!(answer.is_error && answer.batch_id.is_empty(), "{answer:?}");
        let error = structured(&answer)["errors"][0].clone();
        assert_eq!((&error["code"], &error["detail"]), (&json!(code), &json!(detail)), "{tool}: {error}");
    }
    let answer = call(&mut client, request("r1", CREATE, &json!({ "path": "../a", "content": "" }))).await.unwrap();
    assert_eq!(
        (&structured(&answer)["errorCode"], &structured(&answer)["path"]),
        (&json!("InvalidPath"), &json!("../a"))
    );
    assert_eq!(count(&mut client).await, 0);
    let unnamed = call(&mut client, request("", CREATE, &create("x"))).await.unwrap_err();
    assert_eq!((unnamed.code(), fields(&unnamed)), (Code::InvalidArgument, vec!["requestId".to_owned()]));
    let arguments = json!({ "path": "a.txt", "content": "x" });
    let unowned = v1::CallToolRequest { owner: String::new(), ..request("r1", "prepare_file_append", &arguments) };
    let unowned = call(&mut client, unowned).await.unwrap_err();
    assert_eq!((unowned.code(), fields(&unowned)), (Code::InvalidArgument, vec!["owner".to_owned()]));
}

/// A batch that was refused, or withdrawn, is answered with why.
#[tokio::test]
async fn a_batch_that_is_not_applied_says_why() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let write = |id| request(id, "delete_file", &json!({ "path": "a.txt" }));
    let refused = call(&mut client, impatient(write("r1"))).await.unwrap().batch_id;
    next_event(&mut feed).await.unwrap();
    client.report("w", &refused, epoch, failed("FILE_MISSING")).await.unwrap();
    let answer = call(&mut client, write("r1")).await.unwrap();
    assert_eq!((answer.is_error, answer.state()), (true, v1::BatchState::Failed));
    assert_eq!(structured(&answer)["errors"][0]["code"], "FILE_MISSING");
    assert_eq!(structured(&answer)["batchId"], refused);

    let withdrawn = call(&mut client, impatient(write("r2"))).await.unwrap().batch_id;
    let cancel = v1::CancelBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: withdrawn,
        reason: "not wanted".to_owned(),
        ..v1::CancelBatchRequest::default()
    };
    client.batches.cancel_batch(cancel).await.unwrap();
    let answer = call(&mut client, write("r2")).await.unwrap();
    let error = structured(&answer)["errors"][0].clone();
    assert_eq!((answer.state(), &error["code"]), (v1::BatchState::Cancelled, &json!("INVALID_STATE")));
    assert!(error["message"].as_str().unwrap().ends_with("not wanted"), "{error}");
}

/// The answer about a batch of very many files has room in a message without them.
#[tokio::test]
async fn an_answer_that_is_too_large_leaves_its_files_out() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let paths: Vec<_> = (0..9_000).map(|number| format!("{}/{number}.txt", "d".repeat(100))).collect();
    let files: Vec<_> = paths.iter().map(|path| json!({ "path": path, "operation": "delete" })).collect();
    let bundle = || impatient(request("r1", "apply_file_bundle", &json!({ "files": files })));
    let batch = call(&mut client, bundle()).await.unwrap().batch_id;
    next_event(&mut feed).await.unwrap();
    let report = |path: &String| v1::FileReport {
        path: path.clone(),
        doc_path: format!("app/{path}"),
        status: v1::FileStatus::Deleted.into(),
        sha256_before: Some(sha256(b"old\n")),
        ..v1::FileReport::default()
    };
    let files = paths.iter().map(report).collect();
    let report = v1::Report { outcome: v1::Outcome::Applied.into(), files, ..v1::Report::default() };
    client.report("w", &batch, epoch, report).await.unwrap();
    let answer = call(&mut client, bundle()).await.unwrap();
    let object = structured(&answer);
    assert_eq!((&object["success"], &object["files"]), (&json!(true), &json!([])));
    assert_eq!(object["warnings"][0]["code"], "FILES_OMITTED");
}

/// A workstation that plans an append to `a.txt`.
fn planning() -> Disk {
    let disk = Disk::default();
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        let Answer::Prepare(v1::Plan { report: Some(report), .. }) = answer else { return };
        for file in &mut report.files {
            file.doc_path = "app/a.txt".to_owned();
            file.changes =
                vec![v1::ChangeReport { tier: "exact".to_owned(), candidates: 1, start_line: 1, end_line: 1 }];
            (file.sha256, file.size_bytes) = (Some(sha256(b"")), Some(0));
        }
    }));
    disk
}

/// A planning call that is repeated is answered as its plan stands now: one that was replaced or let be applied is no plan any more.
#[tokio::test]
async fn a_repeated_planning_call_shows_no_plan_that_is_used_up() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let plan = |id, existing: &Value| {
        let arguments = json!({ "path": "a.txt", "content": "x", "existing_hunk_id": existing });
        request(id, "prepare_file_append", &arguments)
    };
    let first = call(&mut client, plan("p1", &Value::Null)).await.unwrap();
    let hunk = structured(&first)["hunkId"].clone();
    let second = call(&mut client, plan("p2", &hunk)).await.unwrap();
    assert_eq!((second.is_error, second.state()), (false, v1::BatchState::Prepared), "{second:?}");
    let replaced = call(&mut client, plan("p1", &Value::Null)).await.unwrap();
    assert_eq!((replaced.is_error, replaced.state()), (true, v1::BatchState::Cancelled));
    assert_eq!(structured(&replaced)["errors"][0]["detail"], "CHANGED", "{replaced:?}");

    let apply = json!({ "hunk_id": structured(&second)["hunkId"] });
    call(&mut client, impatient(request("a1", "apply_file_modification", &apply))).await.unwrap();
    let used = call(&mut client, plan("p2", &hunk)).await.unwrap();
    assert_eq!((used.is_error, used.state()), (true, v1::BatchState::Approved));
    assert_eq!(structured(&used)["errors"][0]["detail"], "NOT_PREPARED", "{used:?}");
    agent.abort();
}

/// A plan that failed can be applied again, unless it may have been written all the same.
#[tokio::test]
async fn a_plan_that_may_have_been_written_is_not_applied_again() {
    for (reason, is_open) in [("FILE_CHANGED", true), ("NEEDS_OPERATOR", false)] {
        let server = Server::start();
        let mut client = server.connect().await;
        let agent = planning().serve(&mut client).await;
        let plan = request("p1", "prepare_file_append", &json!({ "path": "a.txt", "content": "x" }));
        let hunk = structured(&call(&mut client, plan).await.unwrap())["hunkId"].clone();
        let apply = |id| impatient(request(id, "apply_file_modification", &json!({ "hunk_id": hunk })));
        let first = call(&mut client, apply("a1")).await.unwrap();
        client.report("w", &first.batch_id, 1, failed(reason)).await.unwrap();
        let again = call(&mut client, apply("a2")).await.unwrap();
        assert_eq!(again.state() == v1::BatchState::Approved, is_open, "{reason}: {again:?}");
        assert_eq!(count(&mut client).await, if is_open { 2 } else { 1 }, "{reason}");
        if !is_open {
            assert_eq!(structured(&again)["errors"][0]["detail"], "NOT_PREPARED", "{again:?}");
        }
        agent.abort();
    }
}

/// A plan of tools has one file: a batch of several, whichever of its files is named, is applied by its id alone.
#[tokio::test]
async fn a_prepared_batch_of_several_files_is_no_plan_of_tools() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = prepared::planning().serve(&mut client).await;
    let files = ["a.txt", "b.txt"].map(|path| v1::FilePatch { key: path.to_owned(), ..create_text(path, "") });
    let edit = v1::Edit { files: files.into(), ..v1::Edit::default() };
    let content = Some(v1::prepare_batch_request::Content::Edit(edit));
    let batch = v1::PrepareBatchRequest { content, ..prepared::asked("p1", "ann") };
    let batch = prepared::prepare(&mut client, batch).await.unwrap();
    let hunks: Vec<_> = batch.edit.unwrap().files.into_iter().map(|file| file.file_patch_id).collect();
    for (request_id, hunk) in ["a1", "a2"].into_iter().zip(&hunks) {
        let append = json!({ "path": "a.txt", "content": "x", "existing_hunk_id": hunk });
        for (tool, arguments) in
            [("apply_file_modification", json!({ "hunk_id": hunk })), ("prepare_file_append", append)]
        {
            let answer = call(&mut client, impatient(request(request_id, tool, &arguments))).await.unwrap();
            let error = structured(&answer)["errors"][0].clone();
            assert_eq!((&error["code"], &error["detail"]), (&json!("INVALID_STATE"), &json!("OTHER_KIND")), "{error}");
            assert!(error["message"].as_str().unwrap().contains("2 files"), "{error}");
        }
    }
    let freed = prepared::apply(&mut client, &batch.batch_id, "ann", "f1").await.unwrap();
    assert_eq!(freed.state(), v1::BatchState::Approved);
    let apply = json!({ "hunk_id": hunks[0] });
    let reused = call(&mut client, impatient(request("f1", "apply_file_modification", &apply))).await;
    assert_refused(reused, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    agent.abort();
}

/// WS-MOD-4.1.2, WS-MOD-4.1.3, WS-MOD-4.2.2: a plan is applied and replaced by its owner alone, once, with an edit of its kind.
#[tokio::test]
async fn a_plan_belongs_to_its_owner() {
    let server = Server::start();
    let mut client = server.connect().await;
    let disk = planning();
    let agent = disk.serve(&mut client).await;
    let plan = |id, existing: Option<&str>, tool: &str| {
        let mut arguments = json!({ "path": "a.txt", "content": "x" });
        if let Some(hunk) = existing {
            arguments["existing_hunk_id"] = hunk.into();
        }
        request(id, tool, &arguments)
    };
    let append = "prepare_file_append";
    let planned = call(&mut client, plan("p1", None, append)).await.unwrap();
    assert_eq!((planned.is_error, planned.state()), (false, v1::BatchState::Prepared), "{planned:?}");
    let object = structured(&planned);
    let hunk = object["hunkId"].as_str().unwrap().to_owned();
    assert_eq!((&object["state"], &object["batchId"]), (&json!("PREPARED"), &json!(planned.batch_id)));
    assert!(object["expiresAtMs"].is_u64(), "{object}");
    assert_eq!(call(&mut client, plan("p1", None, append)).await.unwrap(), planned, "a repeat plans nothing");

    let apply = |id, owner: &str, hunk: &str| v1::CallToolRequest {
        owner: owner.to_owned(),
        ..impatient(request(id, "apply_file_modification", &json!({ "hunk_id": hunk })))
    };
    let lines = json!({ "path": "a.txt", "range": "1", "content": "x", "existing_hunk_id": hunk });
    let ranged = request("p3", "prepare_file_range_edit", &lines);
    let of_bob = v1::CallToolRequest { owner: "bob".to_owned(), ..plan("p2", Some(&hunk), append) };
    let session = v1::Origin { session_id: "ann".to_owned(), ..v1::Origin::default() };
    for (request, code) in [
        (apply("a1", "bob", &hunk), "WRONG_OWNER"),
        (of_bob, "WRONG_OWNER"),
        (ranged, "INVALID_STATE OTHER_KIND"),
        (apply("a2", "ann", &planned.batch_id), "NOT_FOUND"),
        (apply("a3", "ann", "018f6d2e-7c1a-7b3e-9d55-0123456789ab"), "NOT_FOUND"),
    ] {
        let answer = call(&mut client, request).await.unwrap();
        let error = structured(&answer)["errors"][0].clone();
        let found = format!("{} {}", error["code"].as_str().unwrap(), error["detail"].as_str().unwrap_or_default());
        assert_eq!((found.trim_end(), answer.is_error), (code, true), "{error}");
        // In the words of the tool: by the id of the hunk, and by the name of its argument.
        let said = error.to_string();
        assert!(code != "WRONG_OWNER" || said.contains(&hunk), "{said}");
        assert!(!code.ends_with("OTHER_KIND") || said.contains("leave existing_hunk_id out"), "{said}");
    }
    let replaced = call(&mut client, plan("p4", Some(&hunk), append)).await.unwrap();
    assert_eq!((&structured(&replaced)["hunkId"], replaced.is_error), (&json!(hunk), false), "a plan keeps its id");
    assert_ne!(replaced.batch_id, planned.batch_id);
    let by_session = v1::CallToolRequest { origin: Some(session), ..apply("a5", "", &hunk) };
    let freed = call(&mut client, by_session).await.unwrap();
    assert_eq!(
        (freed.state(), structured(&freed)["errors"][0]["detail"].clone()),
        (v1::BatchState::Approved, json!("PENDING"))
    );
    agent.abort();
}

/// An absolute path is what the agent says it leads to: into a root, or nowhere. Without an agent nothing is stored, a repeat of
/// what was stored waits for one, and an answer that is none is passed on to nobody.
#[tokio::test]
async fn an_absolute_path_is_asked_of_the_agent() {
    let server = Server::start();
    let mut client = server.connect().await;
    let edit = |id: &str, path: &str| {
        impatient(request(id, "edit", &json!({ "file_path": path, "old_string": "a", "new_string": "b" })))
    };
    let alone = call(&mut client, edit("r1", "/srv/ann/app/src/a.txt")).await;
    assert_refused(alone, Code::Unavailable, "UNAVAILABLE", "NO_AGENT");
    let disk = Disk::default();
    let agent = disk.serve(&mut client).await;
    let (mut one, mut other) = (client.clone(), client.clone());
    let (first, second) = tokio::join!(
        call(&mut one, edit("r1", "/srv/ann/app/src/a.txt")),
        call(&mut other, edit("r1", "\\srv\\ann\\app\\src\\a.txt")),
    );
    assert_eq!(first.unwrap().batch_id, second.unwrap().batch_id, "it is one call");
    let relative = call(&mut client, edit("r1", "src/a.txt")).await.unwrap();
    assert_eq!(structured(&relative)["files"][0]["path"], "src/a.txt");
    let outside = call(&mut client, edit("r2", "/etc/passwd")).await.unwrap();
    let error = structured(&outside)["errors"][0].clone();
    assert_eq!((&error["code"], &error["detail"]), (&json!("INVALID_PATH"), &json!("ABSOLUTE")));
    for (path, doc_path) in [("../a.txt", "app/a.txt"), ("a.txt", "app/b.txt"), ("a.txt", ""), ("/a.txt", "app/a.txt")]
    {
        let (path, doc_path) = (path.to_owned(), doc_path.to_owned());
        *disk.twist.lock().unwrap() = Some(Box::new(move |answer| {
            let Answer::ResolvePaths(v1::PathsAnswer { paths }) = answer else { return };
            *paths = vec![v1::ResolvedPath { path: path.clone(), doc_path: doc_path.clone() }];
        }));
        let wrong = call(&mut client, edit("r3", "/srv/ann/app/a.txt")).await;
        assert_refused(wrong, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    }
    assert_eq!(count(&mut client).await, 1);
    agent.abort();
}

/// An agent of a version that does not resolve paths is not asked.
#[tokio::test]
async fn an_agent_that_resolves_no_paths_is_named() {
    let server = Server::start();
    let mut client = server.connect().await;
    let lease_secret = client.secret("w");
    let features = vec!["call_tool".to_owned()];
    let _feed = client.serve(v1::Hello { features, lease_secret, ..hello("w", "agent") }).await.unwrap();
    let arguments = json!({ "file_path": "/srv/ann/app/a.txt", "old_string": "a", "new_string": "b" });
    let refused = call(&mut client, impatient(request("r1", "edit", &arguments))).await;
    assert!(refused.as_ref().unwrap_err().message().contains("resolve_paths"), "{refused:?}");
    assert_refused(refused, Code::Unavailable, "UNAVAILABLE", "NO_AGENT");
    assert_eq!(count(&mut client).await, 0);
}
