//! Modes of sessions over gRPC: what a RESTRICTED session is refused, how a change waits, and who may ask for one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::wire::v1;
use aptix_server::caller::Share;
use aptix_server::dispatcher::Settings;
use aptix_server::dispatcher::approvals::{Approval, Approvals};
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use tonic::{Code, Status};

use crate::approvals::approve;
use crate::place::{Place, durable};
use crate::prepared::{apply, asked, cancel, planning, prepare};
use crate::server::{Clients, SOON, Server, applied, assert_refused, create_text, edit_of, fields, submit};

const WORDS: &str = "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";

const RESTRICTED: v1::SessionMode = v1::SessionMode::Restricted;
const UNRESTRICTED: v1::SessionMode = v1::SessionMode::Unrestricted;

/// Asks for a mode of the session that `submit` names, in the name of Ann.
fn mode(request: &str, mode: v1::SessionMode) -> v1::SetSessionModeRequest {
    v1::SetSessionModeRequest {
        workspace_id: "w".to_owned(),
        session_id: "session-1".to_owned(),
        owner: "ann".to_owned(),
        mode: mode.into(),
        request_id: request.to_owned(),
        wait: None,
    }
}

/// The same, and waits.
fn waiting(request: &str, to: v1::SessionMode) -> v1::SetSessionModeRequest {
    v1::SetSessionModeRequest { wait: Some(prost_types::Duration { seconds: 600, nanos: 0 }), ..mode(request, to) }
}

async fn set(client: &mut Clients, request: v1::SetSessionModeRequest) -> Result<v1::SetSessionModeResponse, Status> {
    client.sessions.set_session_mode(request).await.map(tonic::Response::into_inner)
}

async fn session(client: &mut Clients, id: &str) -> Result<v1::Session, Status> {
    let request = v1::GetSessionRequest { workspace_id: "w".to_owned(), session_id: id.to_owned() };
    Ok(client.sessions.get_session(request).await?.into_inner().session.unwrap())
}

fn a_batch(request: &str) -> v1::SubmitBatchRequest {
    submit("w", request, vec![create_text("a.txt", "")])
}

fn assert_restricted<T: std::fmt::Debug>(answer: Result<T, Status>) {
    let status = answer.expect_err("the session may not write");
    assert!(status.message().starts_with(&format!("POLICY_DENIED (RESTRICTED_MODE): {WORDS}\nhint: ")), "{status:?}");
    assert_refused::<()>(Err(status), Code::PermissionDenied, "POLICY_DENIED", "RESTRICTED_MODE");
}

/// REQ-PATCH-009.1, REQ-PATCH-009.2, REQ-PATCH-009.3: whatever writes or plans is refused with the fixed sentence, for that
/// session alone; what is prepared stays, and can be applied once the session may write again.
#[tokio::test]
async fn a_restricted_session_is_refused_in_every_way_that_writes() {
    let server = Server::start();
    let mut client = server.connect().await;
    let agent = planning().serve(&mut client).await;
    let of_session = |request: &str| v1::PrepareBatchRequest { origin: a_batch("").origin, ..asked(request, "ann") };
    let stored = client.submit(a_batch("r1")).await.unwrap();
    let prepared = prepare(&mut client, of_session("r2")).await.unwrap();
    client.upload("w", b"").await.unwrap();
    client.report("w", &stored.batch_id, 1, applied(&[("app", "a.txt", b"")])).await.unwrap();
    let done = set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    assert_eq!(done.state(), v1::ModeChangeState::Done);

    assert_restricted(client.submit(a_batch("r3")).await);
    assert_restricted(client.submit(v1::SubmitBatchRequest { validate_only: true, ..a_batch("r3") }).await);
    let mut malformed = a_batch("r3");
    edit_of(&mut malformed).files.clear();
    assert_restricted(client.submit(malformed).await);
    let large = format!("{{\"path\":\"b.txt\",\"content\":\"{}\"}}", "x".repeat(1 << 20));
    let document = v1::Document { dialect: String::new(), text: large.into_bytes().into() };
    let content = Some(v1::submit_batch_request::Content::Document(document));
    assert_restricted(client.submit(v1::SubmitBatchRequest { content, ..a_batch("r3") }).await);
    assert_restricted(prepare(&mut client, of_session("r3")).await);
    assert_restricted(apply(&mut client, &prepared.batch_id, "ann", "a1").await);
    let revert = v1::RevertBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: stored.batch_id.clone(),
        request_id: "b1".to_owned(),
        origin: a_batch("").origin,
        ..v1::RevertBatchRequest::default()
    };
    assert_restricted(client.batches.revert_batch(revert).await);

    assert_eq!(client.submit(a_batch("r1")).await.unwrap().batch_id, stored.batch_id, "a repeat stores nothing");
    assert_eq!(prepare(&mut client, of_session("r2")).await.unwrap(), prepared, "it stays");
    for session_id in ["", "session-2", "a session"] {
        let origin = Some(v1::Origin { session_id: session_id.to_owned(), ..v1::Origin::default() });
        let request = format!("of-{}", session_id.replace(' ', "_"));
        client.submit(v1::SubmitBatchRequest { origin, ..a_batch(&request) }).await.unwrap();
    }

    set(&mut client, mode("m2", UNRESTRICTED)).await.unwrap();
    client.submit(a_batch("r3")).await.unwrap();
    assert_eq!(apply(&mut client, &prepared.batch_id, "ann", "a1").await.unwrap().state(), v1::BatchState::Approved);
    agent.abort();
}

durable! {
    a_change_waits_for_batches_in_flight_and_accepts_no_others,
    a_batch_that_waits_for_a_person_is_held_to_the_mode_when_it_is_approved,
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: from the request on nothing new is accepted; the mode changes once the batch in flight has
/// ended, also over a restart of the server, and without a caller who waits.
async fn a_change_waits_for_batches_in_flight_and_accepts_no_others(place: Place) {
    let open = async || Server::over(place.open().await, Options::default());
    let server = open().await;
    let mut client = server.connect().await;
    client.upload("w", b"").await.unwrap();
    let batch = client.submit(a_batch("r1")).await.unwrap().batch_id;
    let pending = set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    assert_eq!(pending.state(), v1::ModeChangeState::Pending);
    let found = session(&mut client, "session-1").await.unwrap();
    assert_eq!(pending.session, Some(found.clone()));
    assert_eq!((found.mode(), found.changes_to(), found.in_flight_batches), (UNRESTRICTED, RESTRICTED, 1));
    assert_eq!((found.owner.as_str(), found.conversation_id.as_str()), ("ann", "conversation-1"));
    assert_eq!(found.in_flight_batch_ids, std::slice::from_ref(&batch));
    assert_restricted(client.submit(a_batch("r2")).await);
    drop(client);
    server.stop().await.unwrap();

    let server = open().await;
    let mut client = server.connect().await;
    assert_restricted(client.submit(a_batch("r2")).await);
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    let mut other = client.clone();
    let report = async {
        client.report("w", &batch, epoch, applied(&[("app", "a.txt", b"")])).await.unwrap();
    };
    let (answer, ()) =
        tokio::time::timeout(SOON, async { tokio::join!(set(&mut other, waiting("m1", RESTRICTED)), report) })
            .await
            .unwrap();
    let done = answer.unwrap();
    assert_eq!(done.state(), v1::ModeChangeState::Done);
    assert_eq!(done.session.unwrap().mode(), RESTRICTED);
    assert_restricted(client.submit(a_batch("r2")).await);

    // The second change takes effect with no one waiting for it.
    assert_eq!(set(&mut client, mode("m2", UNRESTRICTED)).await.unwrap().state(), v1::ModeChangeState::Done);
    let batch = client.submit(a_batch("r2")).await.unwrap().batch_id;
    assert_eq!(set(&mut client, mode("m3", RESTRICTED)).await.unwrap().state(), v1::ModeChangeState::Pending);
    cancel(&mut client, &batch).await.unwrap();
    let found = session(&mut client, "session-1").await.unwrap();
    assert_eq!(
        (found.mode(), found.changes_to(), found.in_flight_batches),
        (RESTRICTED, v1::SessionMode::Unspecified, 0)
    );
    assert_eq!(set(&mut client, mode("m2", UNRESTRICTED)).await.unwrap().state(), v1::ModeChangeState::Done);
    assert_restricted(client.submit(a_batch("r4")).await);
}

/// The later of two requests wins; who waits for the other learns so at once.
#[tokio::test]
async fn of_two_requests_at_once_the_later_one_wins() {
    let server = Server::over(Arc::new(MemoryStore::default()), Options::default());
    let mut client = server.connect().await;
    client.submit(a_batch("r1")).await.unwrap();
    set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    let (mut one, mut two) = (client.clone(), client.clone());
    let both =
        async { tokio::join!(set(&mut one, waiting("m1", RESTRICTED)), set(&mut two, waiting("m2", UNRESTRICTED))) };
    let (first, second) = tokio::time::timeout(SOON, both).await.unwrap();
    assert_eq!(first.unwrap().state(), v1::ModeChangeState::Superseded);
    let second = second.unwrap();
    assert_eq!((second.state(), second.session.unwrap().mode()), (v1::ModeChangeState::Done, UNRESTRICTED));
    client.submit(a_batch("r2")).await.unwrap();
    let repeated = set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    assert_eq!(repeated.state(), v1::ModeChangeState::Superseded, "a repeat changes nothing");
    client.submit(a_batch("r3")).await.unwrap();
}

/// REQ-PATCH-009.4, REQ-PATCH-009.5: a batch that waits for a person is not in flight. The mode changes at once, and until it is
/// UNRESTRICTED again the batch is not approved: it keeps waiting, also over a restart, or is rejected.
async fn a_batch_that_waits_for_a_person_is_held_to_the_mode_when_it_is_approved(place: Place) {
    let open = async || {
        let always = Approvals { usual: Approval::Always, workspaces: BTreeMap::new() };
        Server::asking(place.open().await, Options::default(), always)
    };
    let server = open().await;
    let mut client = server.connect().await;
    client.upload("w", b"").await.unwrap();
    let [first, second] = ["r1", "r2"].map(a_batch);
    let [first, second] = [client.submit(first).await.unwrap().batch_id, client.submit(second).await.unwrap().batch_id];
    let done = set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    let found = done.session.as_ref().unwrap();
    assert_eq!((done.state(), found.mode(), found.in_flight_batches), (v1::ModeChangeState::Done, RESTRICTED, 0));
    let refused = approve(&mut client, "w", &first).await;
    assert!(refused.as_ref().unwrap_err().message().contains("approve it afterwards, or reject it"), "{refused:?}");
    assert_restricted(refused);
    drop(client);
    server.stop().await.unwrap();

    let server = open().await;
    let mut client = server.connect().await;
    assert_restricted(approve(&mut client, "w", &first).await);
    let waiting = client.get("w", &first).await.unwrap();
    assert_eq!((waiting.state(), waiting.report), (v1::BatchState::PendingApproval, None));
    let reject =
        v1::RejectBatchRequest { workspace_id: "w".to_owned(), batch_id: second, ..v1::RejectBatchRequest::default() };
    assert_eq!(
        client.batches.reject_batch(reject).await.unwrap().into_inner().batch.unwrap().state(),
        v1::BatchState::Rejected
    );
    set(&mut client, mode("m2", UNRESTRICTED)).await.unwrap();
    assert_eq!(approve(&mut client, "w", &first).await.unwrap().state(), v1::BatchState::Approved);
    assert_eq!(approve(&mut client, "w", &first).await.unwrap().state(), v1::BatchState::Approved);
    // Now it is in flight, and what waits for it waits.
    assert_eq!(set(&mut client, mode("m3", RESTRICTED)).await.unwrap().state(), v1::ModeChangeState::Pending);
    assert_eq!(
        approve(&mut client, "w", &first).await.unwrap().state(),
        v1::BatchState::Approved,
        "it was approved before"
    );
}

/// The first owner keeps a session; what is no request is refused, each field by its name.
#[tokio::test]
async fn only_its_owner_changes_a_session() {
    let server = Server::start();
    let mut client = server.connect().await;
    assert_refused(session(&mut client, "session-1").await, Code::NotFound, "NOT_FOUND", "");
    set(&mut client, mode("m1", RESTRICTED)).await.unwrap();
    let by_bob = v1::SetSessionModeRequest { owner: "bob".to_owned(), ..mode("m2", UNRESTRICTED) };
    assert_refused(set(&mut client, by_bob).await, Code::FailedPrecondition, "WRONG_OWNER", "");
    let reused = set(&mut client, mode("m1", UNRESTRICTED)).await;
    assert_refused(reused, Code::AlreadyExists, "REQUEST_ID_REUSED", "");
    assert_eq!(session(&mut client, "session-1").await.unwrap().mode(), RESTRICTED);
    let wrong = v1::SetSessionModeRequest {
        workspace_id: String::new(),
        session_id: "a session".to_owned(),
        owner: "-".to_owned(),
        mode: 0,
        request_id: String::new(),
        wait: Some(prost_types::Duration { seconds: -1, nanos: 0 }),
    };
    let status = set(&mut client, wrong).await.unwrap_err();
    assert_eq!(fields(&status), ["workspaceId", "sessionId", "owner", "requestId", "mode", "wait"]);
    let unknown = v1::SetSessionModeRequest { mode: 7, ..mode("m3", RESTRICTED) };
    assert_refused(set(&mut client, unknown).await, Code::InvalidArgument, "INVALID_REQUEST", "UNKNOWN_ENUM");
}

/// A change that is stored is never refused: where too many calls wait, or the caller's own time ends, it is answered as it is.
#[tokio::test]
async fn a_change_that_cannot_be_waited_for_is_answered_as_pending() {
    let dispatch = Settings { questions: Share::of(1), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let (mut client, other) = (server.connect().await, server.connect().await);
    client.submit(a_batch("r1")).await.unwrap();
    let mut short = tonic::Request::new(waiting("m1", RESTRICTED));
    short.set_timeout(Duration::from_secs(2));
    let answered = client.sessions.set_session_mode(short).await.unwrap().into_inner();
    assert_eq!(answered.state(), v1::ModeChangeState::Pending, "before the caller's time is over");
    // One of two takes the only place; the other is answered at once.
    let mut calls = tokio::task::JoinSet::new();
    for mut client in [client, other] {
        calls.spawn(async move { set(&mut client, waiting("m1", RESTRICTED)).await });
    }
    let first = tokio::time::timeout(SOON, calls.join_next()).await.unwrap().unwrap().unwrap();
    assert_eq!(first.unwrap().state(), v1::ModeChangeState::Pending);
    assert!(calls.try_join_next().is_none(), "the other waits");
}

/// A call waits no longer than it was asked to, and not for a server that stops; the request stays.
#[tokio::test]
async fn a_call_that_waits_ends_in_time() {
    let store = Arc::new(MemoryStore::default());
    let mut server = Server::over(Arc::clone(&store) as Arc<dyn aptix_server::store::Store>, Options::default());
    let mut client = server.connect().await;
    client.submit(a_batch("r1")).await.unwrap();
    let short = Some(prost_types::Duration::try_from(Duration::from_millis(20)).unwrap());
    let pending = set(&mut client, v1::SetSessionModeRequest { wait: short, ..mode("m1", RESTRICTED) }).await.unwrap();
    assert_eq!(pending.state(), v1::ModeChangeState::Pending);
    let mut other = client.clone();
    let (answer, ()) = tokio::time::timeout(SOON, async {
        tokio::join!(set(&mut other, waiting("m1", RESTRICTED)), async {
            // It has been admitted by the time that a later call on the same connection is answered.
            assert_restricted(client.submit(a_batch("r2")).await);
            server.tell_to_stop();
        })
    })
    .await
    .unwrap();
    assert_refused(answer, Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
}
