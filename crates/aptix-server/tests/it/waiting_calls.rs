//! Calls that wait for the end of their batch: what they hold meanwhile, and how they end with the server.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_server::caller::Share;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use serde_json::json;
use tokio::task::JoinSet;
use tonic::{Code, Request, Status};

use crate::server::{Clients, Server, applied, assert_refused, next_event};

async fn call(client: Clients, request: &str) -> Result<v1::CallToolResponse, Status> {
    call_within(client, request, None).await
}

/// The same, by a caller that waits for so long.
async fn call_within(
    mut client: Clients,
    request: &str,
    time: Option<Duration>,
) -> Result<v1::CallToolResponse, Status> {
    let call = v1::CallToolRequest {
        workspace_id: "w".to_owned(),
        tool: "workspace_create_file".to_owned(),
        arguments: json!({ "path": "a.txt", "content": request }).to_string().into_bytes().into(),
        request_id: request.to_owned(),
        wait: Some(prost_types::Duration { seconds: 3600, nanos: 0 }),
        ..v1::CallToolRequest::default()
    };
    let mut call = Request::new(call);
    time.into_iter().for_each(|time| call.set_timeout(time));
    Ok(client.tools.call_tool(call).await?.into_inner())
}

/// A call that waits holds no place among the calls that are worked on, but one among those that wait for an agent; where that is
/// taken, the next call is answered at once, PENDING, and its batch stays. A server that stops ends the wait.
#[tokio::test]
async fn a_call_that_waits_gives_its_place_back_until_the_server_stops() {
    let dispatch = Settings { questions: Share::of(1), ..Settings::default() };
    let mut server = Server::with(Options { dispatch, calls: Share::of(1), ..Options::default() });
    let (waiting, mut client) = (server.connect().await, server.connect().await);
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    let mut calls = JoinSet::new();
    calls.spawn(call(waiting, "r1"));
    let batch = next_event(&mut feed).await.unwrap().batch.unwrap();
    // Answered although the call goes on.
    assert_eq!(client.get("w", &batch.batch_id).await.unwrap().state(), v1::BatchState::Approved);
    let pending = call(client.clone(), "r2").await.unwrap();
    assert_eq!((pending.is_error, pending.state()), (true, v1::BatchState::Approved), "{pending:?}");
    assert!(pending.structured.contains("DEADLINE_EXCEEDED"), "{pending:?}");
    assert_eq!(next_event(&mut feed).await.unwrap().batch.unwrap().batch_id, pending.batch_id, "the batch is stored");
    assert!(calls.try_join_next().is_none(), "the first call still waits");
    server.tell_to_stop();
    let ended = calls.join_next().await.unwrap().unwrap();
    assert_refused(ended, Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
}

/// However long a caller offers to wait, the answer comes within the time that the server gives a call: PENDING, and the batch stays.
#[tokio::test]
async fn a_call_is_answered_within_the_time_of_a_call() {
    let server = Server::with(Options { call_deadline: Duration::from_secs(3), ..Options::default() });
    let client = server.connect().await;
    let answer = call(client, "r1").await.unwrap();
    assert_eq!((answer.is_error, answer.state()), (true, v1::BatchState::Approved), "{answer:?}");
    assert!(answer.structured.contains("DEADLINE_EXCEEDED"), "{answer:?}");
}

/// A caller whose own time ends before has the answer too: PENDING, with the batch, and the same call goes on waiting.
#[tokio::test]
async fn a_call_is_answered_within_the_time_of_its_caller() {
    let server = Server::start();
    let mut client = server.connect().await;
    let answer = call_within(client.clone(), "r1", Some(Duration::from_secs(4))).await.unwrap();
    assert_eq!((answer.is_error, answer.state()), (true, v1::BatchState::Approved), "{answer:?}");
    assert!(answer.structured.contains("DEADLINE_EXCEEDED"), "{answer:?}");
    let (epoch, _feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"r1").await.unwrap();
    let report = applied(&[("app", "a.txt", b"r1")]);
    let mut agent = client.clone();
    let (again, reported) = tokio::join!(call(client, "r1"), agent.report("w", &answer.batch_id, epoch, report));
    reported.unwrap();
    let again = again.unwrap();
    assert_eq!((again.state(), &again.batch_id), (v1::BatchState::Applied, &answer.batch_id));
}
