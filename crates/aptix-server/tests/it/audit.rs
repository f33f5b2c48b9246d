//! The record of who did what to a batch, when, and why: kept for every step, over a restart.

use std::sync::Arc;

use aptix_model::wire::v1;
use aptix_server::options::Options;
use aptix_server::store::memory::MemoryStore;
use tonic::Code;

use crate::place::{Place, durable};
use crate::server::{Clients, Server, applied, assert_refused, create_text, failed, next, submit};

/// The steps of a batch: what, the state after it, by whom, and why.
pub(crate) async fn steps(client: &mut Clients, id: &str) -> Vec<String> {
    let request = v1::GetBatchRequest {
        workspace_id: "w".to_owned(),
        batch: Some(v1::get_batch_request::Batch::BatchId(id.to_owned())),
        ..Default::default()
    };
    let answer = client.batches.get_batch(request).await.unwrap().into_inner();
    let batch = answer.batch.unwrap();
    assert_eq!(answer.steps.last().map(|step| step.revision), Some(batch.revision));
    assert_eq!(answer.steps[0].time, batch.create_time);
    assert_eq!(answer.steps.last().unwrap().time, batch.update_time);
    let step = |step: &v1::BatchStep| {
        let actor = step.actor.clone().unwrap();
        let kind = step.kind().as_str_name().trim_start_matches("EVENT_KIND_").to_owned();
        let state = step.state().as_str_name().trim_start_matches("BATCH_STATE_").to_owned();
        let by = actor.kind().as_str_name().trim_start_matches("ACTOR_KIND_").to_owned();
        format!("{kind} {state} {by}({}) {}", actor.name, step.reason).trim_end().to_owned()
    };
    answer.steps.iter().map(step).collect()
}

fn cancel(id: &str, reason: &str) -> v1::CancelBatchRequest {
    let (batch_id, reason) = (id.to_owned(), reason.to_owned());
    v1::CancelBatchRequest { workspace_id: "w".to_owned(), batch_id, reason, author: "ann".to_owned() }
}

/// Four batches that end in four ways; what is expected of the steps of each.
async fn four_ends(client: &mut Clients) -> Vec<(String, Vec<&'static str>)> {
    let (epoch, _feed) = client.lease("w", "laptop", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let mut ids = Vec::new();
    for request in ["applied", "refused", "cancelled", "rejected"] {
        let batch = client.submit(submit("w", request, vec![create_text(request, "")])).await.unwrap();
        ids.push(batch.batch_id);
    }
    client.report("w", &ids[0], epoch, applied(&[("app", "applied", b"")])).await.unwrap();
    let mut report = failed("REJECTED");
    report.outcome = v1::Outcome::Rejected.into();
    report.failures[0].message = "not today".to_owned();
    client.report("w", &ids[1], epoch, report).await.unwrap();
    client.batches.cancel_batch(cancel(&ids[2], "out of date")).await.unwrap();
    client.batches.cancel_batch(cancel(&ids[2], "again, and it changes nothing")).await.unwrap();
    let reject = v1::RejectBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: ids[3].clone(),
        reason: "wrong file".to_owned(),
        reviewer: "Rita".to_owned(),
    };
    client.batches.reject_batch(reject).await.unwrap();
    let first = "SUBMITTED APPROVED AUTHOR()";
    let ends = [
        "REPORTED APPLIED AGENT(laptop)",
        "REPORTED REJECTED PERSON() not today",
        "CANCELLED CANCELLED AUTHOR(ann) out of date",
        "REJECTED REJECTED PERSON(Rita) wrong file",
    ];
    ids.into_iter().zip(ends.map(|end| vec![first, end])).collect()
}

async fn assert_steps(client: &mut Clients, expected: &[(String, Vec<&'static str>)]) {
    for (id, expected) in expected {
        assert_eq!(steps(client, id).await, *expected);
    }
}

#[tokio::test]
async fn every_step_keeps_who_when_and_why() {
    let server = Server::over(Arc::new(MemoryStore::default()), Options::default());
    let mut client = server.connect().await;
    let expected = four_ends(&mut client).await;
    assert_steps(&mut client, &expected).await;
}

durable! {
    steps_survive_a_restart,
}

async fn steps_survive_a_restart(place: Place) {
    let store = place.open().await;
    let server = Server::over(Arc::clone(&store), Options::default());
    let mut client = server.connect().await;
    let expected = four_ends(&mut client).await;
    drop(client);
    server.stop().await.unwrap();
    drop(store);
    let server = Server::over(place.open().await, Options::default());
    assert_steps(&mut server.connect().await, &expected).await;
}

/// The person at the workstation who agreed or refused is the actor of the report; no one else is taken for one.
#[tokio::test]
async fn a_report_names_the_person_who_decided() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, _feed) = client.lease("w", "laptop", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let actor = |kind: v1::ActorKind, name: &str| v1::Actor { kind: kind.into(), name: name.to_owned() };
    let rita = (epoch, Some(actor(v1::ActorKind::Person, "Rita")));
    let mut rejected = failed("REJECTED");
    rejected.outcome = v1::Outcome::Rejected.into();
    rejected.failures[0].message = "not today".to_owned();
    let ends = [
        (applied(&[("app", "a", b"")]), "REPORTED APPLIED PERSON(Rita)"),
        (rejected, "REPORTED REJECTED PERSON(Rita) not today"),
    ];
    for (request, (report, expected)) in ["a", "b"].into_iter().zip(ends) {
        let batch = client.submit(submit("w", request, vec![create_text(request, "")])).await.unwrap().batch_id;
        for (other, code, reason, detail) in [
            (actor(v1::ActorKind::Agent, "laptop"), Code::InvalidArgument, "INVALID_REQUEST", ""),
            (actor(v1::ActorKind::Person, &"x".repeat((64 << 10) + 1)), Code::InvalidArgument, "TOO_LARGE", "TEXT"),
        ] {
            let refused = client.report_decided("w", &batch, (epoch, Some(other)), report.clone()).await;
            assert_refused(refused, code, reason, detail);
        }
        client.report_decided("w", &batch, rita.clone(), report.clone()).await.unwrap();
        // The same report again, of an agent that has forgotten who it was.
        client.report_decided("w", &batch, (epoch, None), report).await.unwrap();
        assert_eq!(steps(&mut client, &batch).await[1..], [expected]);
    }
}

/// A reader of the workspace gets the reason with the event, of a long one the beginning; one that is too long is refused.
#[tokio::test]
async fn a_reason_comes_with_its_event() {
    let server = Server::start();
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r", vec![create_text("a.txt", "")])).await.unwrap();
    let refused = client.batches.cancel_batch(cancel(&batch.batch_id, &"x".repeat((64 << 10) + 1))).await;
    assert_refused(refused, Code::InvalidArgument, "TOO_LARGE", "TEXT");
    let reason = "x".repeat(64 << 10);
    client.batches.cancel_batch(cancel(&batch.batch_id, &reason)).await.unwrap();
    let watch = v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), after_revision: 1, ..Default::default() };
    let mut events = client.workspaces.watch_workspace(watch).await.unwrap().into_inner();
    let Some(v1::watch_workspace_response::Message::Event(event)) = next(&mut events).await.unwrap().message else {
        panic!("an event is expected");
    };
    assert_eq!((event.kind(), event.reason.as_str()), (v1::EventKind::Cancelled, &reason[..1 << 10]));
    assert!(steps(&mut client, &batch.batch_id).await[1].ends_with(&reason), "the whole reason is kept");
}
