//! Prepared batches: who may apply or replace one, until when, and what every other call gets.

use std::sync::atomic::Ordering;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::answer::Answer;
use aptix_model::wire::v1::prepare_batch_request::Content;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use tonic::{Code, Status};

use crate::live_files::Disk;
use crate::place::{Place, durable};
use crate::server::{Clients, SOON, Server, applied, assert_refused, create_text, fields, refusal, sha256, submit};

fn edit(text: &str) -> v1::Edit {
    let file = v1::FilePatch { key: "a.txt".to_owned(), ..create_text("a.txt", text) };
    v1::Edit { files: vec![file], ..v1::Edit::default() }
}

pub(crate) fn asked(request: &str, owner: &str) -> v1::PrepareBatchRequest {
    v1::PrepareBatchRequest {
        workspace_id: "w".to_owned(),
        request_id: request.to_owned(),
        owner: owner.to_owned(),
        content: Some(Content::Edit(edit(""))),
        view: v1::BatchView::Full.into(),
        ..v1::PrepareBatchRequest::default()
    }
}

/// An agent that plans every batch.
pub(crate) fn planning() -> Disk {
    let disk = Disk::default();
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        let Answer::Prepare(v1::Plan { report: Some(report), .. }) = answer else { return };
        for file in &mut report.files {
            file.path = file.doc_path.trim_start_matches("app/").to_owned();
            (file.sha256, file.size_bytes) = (Some(sha256(b"")), Some(0));
        }
    }));
    disk
}

pub(crate) async fn prepare(client: &mut Clients, request: v1::PrepareBatchRequest) -> Result<v1::Batch, Status> {
    client.batches.prepare_batch(request).await.map(|answer| answer.into_inner().batch.unwrap())
}

pub(crate) async fn apply(client: &mut Clients, id: &str, owner: &str, request: &str) -> Result<v1::Batch, Status> {
    let request = v1::ApplyPreparedRequest {
        workspace_id: "w".to_owned(),
        batch_id: id.to_owned(),
        owner: owner.to_owned(),
        request_id: request.to_owned(),
        ..v1::ApplyPreparedRequest::default()
    };
    client.batches.apply_prepared(request).await.map(|answer| answer.into_inner().batch.unwrap())
}

async fn reject(client: &mut Clients, id: &str, reason: &str) -> Result<v1::Batch, Status> {
    let request = v1::RejectBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: id.to_owned(),
        reason: reason.to_owned(),
        reviewer: "Rita".to_owned(),
    };
    client.batches.reject_batch(request).await.map(|answer| answer.into_inner().batch.unwrap())
}

pub(crate) async fn cancel(client: &mut Clients, id: &str) -> Result<v1::Batch, Status> {
    let request =
        v1::CancelBatchRequest { workspace_id: "w".to_owned(), batch_id: id.to_owned(), ..Default::default() };
    client.batches.cancel_batch(request).await.map(|answer| answer.into_inner().batch.unwrap())
}

/// REASON or REASON.DETAIL.
fn code<T: std::fmt::Debug>(answer: Result<T, Status>) -> String {
    let (code, reason, detail) = refusal(&answer.unwrap_err());
    assert!(matches!(code, Code::FailedPrecondition | Code::NotFound), "{code:?} {reason}");
    if detail.is_empty() { reason } else { format!("{reason}.{detail}") }
}

durable! {
    a_batch_is_planned_once_and_kept_with_its_plan,
}

/// The plan is asked of the agent once, and stored with the batch; a repeat is answered without the agent, after a restart too.
async fn a_batch_is_planned_once_and_kept_with_its_plan(place: Place) {
    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    let silent = prepare(&mut client, asked("r1", "ann")).await;
    assert_refused(silent, Code::Unavailable, "UNAVAILABLE", "NO_AGENT");
    let disk = planning();
    let agent = disk.serve(&mut client).await;
    let batch = prepare(&mut client, asked("r1", "ann")).await.unwrap();
    assert_eq!((batch.state(), batch.source()), (v1::BatchState::Prepared, v1::BatchSource::Prepared));
    let preparation = batch.preparation.clone().unwrap();
    assert_eq!((preparation.owner.as_str(), preparation.kind.as_str()), ("ann", "create_file"));
    assert_eq!(preparation.plan.unwrap().report.unwrap().files[0].sha256, Some(sha256(b"")));
    assert_eq!(preparation.expire_time.unwrap().seconds / 60, batch.create_time.unwrap().seconds / 60 + 60);
    agent.abort();
    drop(client);
    server.stop().await.unwrap();

    let server = Server::over(place.open().await, Options::default());
    let mut client = server.connect().await;
    assert_eq!(prepare(&mut client, asked("r1", "ann")).await.unwrap(), batch);
    assert_eq!(disk.asked.load(Ordering::SeqCst), 1);
    for other in [
        asked("r1", "bob"),
        v1::PrepareBatchRequest { existing_batch_id: batch.batch_id.clone(), ..asked("r1", "ann") },
        v1::PrepareBatchRequest { content: Some(Content::Edit(edit("other"))), ..asked("r1", "ann") },
    ] {
        assert_refused(prepare(&mut client, other).await, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    }
    let submitted = client.submit(submit("w", "r1", edit("").files)).await;
    assert_refused(submitted, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    assert_eq!(apply(&mut client, &batch.batch_id, "ann", "a1").await.unwrap().state(), v1::BatchState::Approved);
}

/// WS-MOD-4.1.2, WS-MOD-4.1.3: applied once, by its owner, in time; a repeat of the same call is answered alike.
#[tokio::test]
async fn a_prepared_batch_is_applied_once_by_its_owner() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let batch = prepare(&mut client, asked("r1", "ann")).await.unwrap().batch_id;
    let short = v1::PrepareBatchRequest {
        time_to_live: Some(prost_types::Duration { seconds: 0, nanos: 1_000_000 }),
        ..asked("r2", "ann")
    };
    let over = prepare(&mut client, short).await.unwrap().batch_id;
    let plain = client.submit(submit("w", "r3", edit("").files)).await.unwrap().batch_id;
    let ended = prepare(&mut client, asked("r4", "ann")).await.unwrap().batch_id;
    cancel(&mut client, &ended).await.unwrap();
    for (id, owner, expected) in [
        ("018f6d2e-7c1a-7b3e-9d55-0123456789ab", "ann", "NOT_FOUND"),
        (&batch, "bob", "WRONG_OWNER"),
        (&over, "bob", "WRONG_OWNER"),
        (&over, "ann", "HUNK_EXPIRED"),
        (&over, "ann", "HUNK_EXPIRED"),
        (&plain, "ann", "INVALID_STATE.NOT_PREPARED"),
        (&ended, "ann", "INVALID_STATE.NOT_PREPARED"),
    ] {
        assert_eq!(code(apply(&mut client, id, owner, "a1").await), expected, "{id} {owner}");
    }
    assert_eq!(client.get("w", &over).await.unwrap().state(), v1::BatchState::Expired);
    let freed = apply(&mut client, &batch, "ann", "a1").await.unwrap();
    assert_eq!(freed.state(), v1::BatchState::Approved);
    assert_eq!(apply(&mut client, &batch, "ann", "a1").await.unwrap(), freed, "the answer may have been lost");
    assert_eq!(code(apply(&mut client, &batch, "ann", "a2").await), "INVALID_STATE.NOT_PREPARED");
    agent.abort();
    client.upload("w", b"").await.unwrap();
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.report("w", &batch, epoch, applied(&[("app", "a.txt", b"")])).await.unwrap();
    assert_eq!(code(apply(&mut client, &batch, "ann", "a2").await), "ALREADY_APPLIED");
    assert_eq!(apply(&mut client, &batch, "ann", "a1").await.unwrap().state(), v1::BatchState::Applied);
}

/// WS-MOD-4.2.2, WS-MOD-4.2.3, WS-MOD-4.2.4: a batch takes the place of a prepared one of its owner and its kind, in one step.
#[tokio::test]
async fn a_prepared_batch_is_replaced_by_its_owner_with_the_same_kind() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let first = prepare(&mut client, asked("r1", "ann")).await.unwrap().batch_id;
    let replacing = |request: &str, owner: &str, existing: &str| v1::PrepareBatchRequest {
        existing_batch_id: existing.to_owned(),
        ..asked(request, owner)
    };
    assert_eq!(code(prepare(&mut client, replacing("r2", "bob", &first)).await), "WRONG_OWNER");
    let delete = v1::FilePatch {
        action: Some(v1::file_patch::Action::DeleteFile(v1::DeleteFile::default())),
        ..edit("").files.remove(0)
    };
    let other = v1::Edit { files: vec![delete], ..v1::Edit::default() };
    let other = v1::PrepareBatchRequest { content: Some(Content::Edit(other)), ..replacing("r2", "ann", &first) };
    assert_eq!(code(prepare(&mut client, other).await), "INVALID_STATE.OTHER_KIND");
    let unknown = "018f6d2e-7c1a-7b3e-9d55-0123456789ab";
    assert_eq!(code(prepare(&mut client, replacing("r2", "ann", unknown)).await), "NOT_FOUND");
    let second = prepare(&mut client, replacing("r2", "ann", &first)).await.unwrap();
    assert_eq!(second.preparation.unwrap().replaces, first);
    assert_eq!(client.get("w", &first).await.unwrap().state(), v1::BatchState::Cancelled);
    assert_eq!(code(apply(&mut client, &first, "ann", "a1").await), "INVALID_STATE.NOT_PREPARED");
    assert_eq!(code(prepare(&mut client, replacing("r3", "ann", &first)).await), "INVALID_STATE.NOT_PREPARED");
    // Of a replacement and an apply at once one wins, and the other is refused by name.
    let (mut one, mut two) = (client.clone(), client.clone());
    let (replaced, applied) = tokio::join!(
        prepare(&mut one, replacing("r4", "ann", &second.batch_id)),
        apply(&mut two, &second.batch_id, "ann", "a1"),
    );
    match (replaced, applied) {
        (Ok(_), refused) => assert_eq!(code(refused), "INVALID_STATE.NOT_PREPARED"),
        (refused, Ok(_)) => assert_eq!(code(refused), "INVALID_STATE.NOT_PREPARED"),
        both => panic!("{both:?}"),
    }
    agent.abort();
}

/// A person's refusal ends a batch with its reason; what ended another way is not rejected.
#[tokio::test]
async fn a_batch_is_rejected_with_a_reason() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let prepared = prepare(&mut client, asked("r1", "ann")).await.unwrap().batch_id;
    let plain = client.submit(submit("w", "r2", edit("").files)).await.unwrap().batch_id;
    for id in [&prepared, &plain] {
        let rejected = reject(&mut client, id, "wrong file").await.unwrap();
        assert_eq!(rejected.state(), v1::BatchState::Rejected);
        let report = rejected.report.clone().unwrap();
        assert_eq!(report.outcome(), v1::Outcome::Rejected);
        assert_eq!(report.failures[0].message, "Rita rejected the batch: wrong file");
        assert_eq!(reject(&mut client, id, "another reason").await.unwrap(), rejected, "the first reason stays");
        assert_eq!(code(cancel(&mut client, id).await), "INVALID_STATE");
    }
    assert_eq!(code(apply(&mut client, &prepared, "ann", "a1").await), "INVALID_STATE.NOT_PREPARED");
    let gone = prepare(&mut client, asked("r3", "ann")).await.unwrap().batch_id;
    cancel(&mut client, &gone).await.unwrap();
    assert_eq!(code(reject(&mut client, &gone, "").await), "INVALID_STATE");
    let long = reject(&mut client, &gone, &"x".repeat(70_000)).await;
    assert_refused(long, Code::InvalidArgument, "TOO_LARGE", "TEXT");
    agent.abort();
}

/// What nobody applies ends by itself.
#[tokio::test]
async fn a_batch_that_nobody_applies_expires() {
    let dispatch = Settings { expiry_sweep: Duration::from_millis(10), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let short = v1::PrepareBatchRequest {
        time_to_live: Some(prost_types::Duration { seconds: 0, nanos: 1_000_000 }),
        ..asked("r1", "ann")
    };
    let batch = prepare(&mut client, short).await.unwrap();
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id.clone(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
    let ended = async {
        while let Some(message) = states.message().await.unwrap() {
            if message.batch.as_ref().is_some_and(|batch| batch.state() == v1::BatchState::Expired) {
                return;
            }
        }
        panic!("the stream ended before the batch");
    };
    tokio::time::timeout(SOON, ended).await.unwrap();
    agent.abort();
}

/// What is no call, what the agent refuses, and an answer that is no plan of the batch.
#[tokio::test]
async fn what_cannot_be_prepared_is_said_or_stored_as_failed() {
    let server = Server::start();
    let mut client = server.connect().await;
    let disk = planning();
    let agent = disk.serve(&mut client).await;
    let zero = Some(prost_types::Duration::default());
    let wrong = v1::PrepareBatchRequest {
        time_to_live: zero,
        existing_batch_id: "x".to_owned(),
        content: None,
        ..asked("", "-ann")
    };
    let status = prepare(&mut client, wrong).await.unwrap_err();
    assert_eq!(fields(&status), ["requestId", "content", "owner", "existingBatchId", "timeToLive"]);
    let blob = v1::BlobRef { sha256: "0".repeat(64), size_bytes: 1 };
    let absent = crate::server::create_file("a.txt", v1::create_file::Content::Blob(blob));
    let absent = v1::Edit { files: vec![absent], ..v1::Edit::default() };
    let absent = v1::PrepareBatchRequest { content: Some(Content::Edit(absent)), ..asked("r1", "ann") };
    assert_refused(prepare(&mut client, absent).await, Code::FailedPrecondition, "BLOB_MISSING", "");
    *disk.twist.lock().unwrap() = None;
    assert_refused(prepare(&mut client, asked("r1", "ann")).await, Code::Internal, "INTERNAL", "WRONG_ANSWER");
    *disk.twist.lock().unwrap() = Some(Box::new(|answer| {
        let failure =
            v1::Failure { reason: "FILE_EXISTS".to_owned(), message: "it is there".to_owned(), ..Default::default() };
        let outcome = v1::Outcome::Failed.into();
        let report = Some(v1::Report { outcome, failures: vec![failure], ..Default::default() });
        *answer = Answer::Prepare(v1::Plan { report, files: Vec::new() });
    }));
    let refused = prepare(&mut client, asked("r1", "ann")).await.unwrap();
    assert_eq!(refused.state(), v1::BatchState::Failed);
    assert_eq!(refused.report.as_ref().unwrap().failures[0].reason, "FILE_EXISTS");
    assert_eq!(refused.preparation.as_ref().unwrap().plan, None);
    assert_eq!(code(apply(&mut client, &refused.batch_id, "ann", "a1").await), "INVALID_STATE.NOT_PREPARED");
    agent.abort();
}
