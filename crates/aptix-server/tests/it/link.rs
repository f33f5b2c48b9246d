//! An agent's connection: how it begins, what an agent may send on it, and how it ends.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_model::wire::v1::serve_request::Message;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use tonic::{Code, Status};

use crate::server::{SOON, Server, assert_refused, connect_agent, fields, hello, next, refusal};

fn answer(question_id: u64) -> Message {
    let answer = Some(v1::answer::Answer::Failure(v1::Failure::default()));
    Message::Answer(v1::Answer { question_id, answer })
}

fn request(message: impl Into<Option<Message>>) -> v1::ServeRequest {
    v1::ServeRequest { message: message.into() }
}

/// What becomes of a connection whose first messages are these.
async fn outcome(server: &Server, first: Vec<v1::ServeRequest>) -> Result<(), Status> {
    let mut client = server.connect().await;
    let mut stream = client.agent.serve(tokio_stream::iter(first)).await?.into_inner();
    while tokio::time::timeout(SOON, stream.message()).await.expect("it ends in time")?.is_some() {}
    Ok(())
}

#[tokio::test]
async fn the_lease_states_what_the_server_is() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (_sender, mut stream) = connect_agent(&mut client.agent, hello("w", "agent")).await.unwrap();
    let Some(v1::serve_response::Message::Lease(lease)) = next(&mut stream).await.unwrap().message else {
        panic!("the lease comes first");
    };
    assert_eq!(lease.server_version, env!("CARGO_PKG_VERSION"));
}

/// Each message that has no place on the connection ends it, and the status says which.
#[tokio::test]
async fn a_message_out_of_place_ends_the_connection_by_name() {
    let server = Server::start();
    let hello = || request(Message::Hello(hello("w", "agent")));
    let cases = [
        (vec![request(answer(1))], "UNEXPECTED_FIELD", "answer"),
        (vec![request(None)], "MISSING", "hello"),
        (vec![], "MISSING", "hello"),
        (vec![hello(), hello()], "UNEXPECTED_FIELD", "hello"),
        (vec![hello(), request(None)], "MISSING", "message"),
        (vec![hello(), request(answer(1))], "UNKNOWN_QUESTION", "answer.questionId"),
        (vec![hello(), request(Message::Answer(v1::Answer::default()))], "MISSING", "answer.answer"),
    ];
    for (messages, detail, field) in cases {
        let ended = outcome(&server, messages.clone()).await;
        let status = ended.clone().unwrap_err();
        assert_eq!(fields(&status), [field], "{messages:?}: {status:?}");
        assert_refused(ended, Code::InvalidArgument, "INVALID_REQUEST", detail);
    }
    outcome(&server, vec![hello()]).await.expect("an agent that closes its side ends the connection in order");
}

#[tokio::test]
async fn a_hello_that_is_not_as_described_is_refused_by_field() {
    let server = Server::start();
    let many = |count: usize| (0..count).map(|number| format!("name-{number}")).collect::<Vec<_>>();
    let good = hello("w", "agent");
    let cases = [
        (v1::Hello { workspace_id: String::new(), ..good.clone() }, "hello.workspaceId"),
        (v1::Hello { agent_id: "a b".to_owned(), ..good.clone() }, "hello.agentId"),
        (v1::Hello { version: "x".repeat(65), ..good.clone() }, "hello.version"),
        (v1::Hello { roots: Vec::new(), ..good.clone() }, "hello.roots"),
        (v1::Hello { roots: many(65), ..good.clone() }, "hello.roots"),
        (v1::Hello { roots: vec!["app".to_owned(); 2], ..good.clone() }, "hello.roots"),
        (v1::Hello { roots: vec!["x".repeat(256)], ..good.clone() }, "hello.roots"),
        (v1::Hello { approval_mode: 99, ..good.clone() }, "hello.approvalMode"),
        (v1::Hello { features: many(65), ..good.clone() }, "hello.features"),
        (v1::Hello { features: vec!["a\nb".to_owned()], ..good.clone() }, "hello.features"),
    ];
    for (hello, field) in cases {
        let status = outcome(&server, vec![request(Message::Hello(hello))]).await.unwrap_err();
        assert_eq!((status.code(), fields(&status)), (Code::InvalidArgument, vec![field.to_owned()]), "{status:?}");
    }
}

/// A caller that never says Hello is cut off, and takes no lease.
#[tokio::test]
async fn a_caller_without_a_hello_is_cut_off() {
    let dispatch = Settings { heartbeat: Duration::from_secs(3600), ..Settings::default() };
    let options = Options { dispatch, request_idle: Duration::from_secs(2), ..Options::default() };
    let server = Server::with(options);
    let mut client = server.connect().await;
    let silent = client.agent.serve(tokio_stream::pending::<v1::ServeRequest>());
    let ended = tokio::time::timeout(SOON, silent).await.expect("it ends in time").map(drop);
    assert_refused(ended, Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "");
    client.lease("w", "agent", 0).await.unwrap();
}

/// An agent that closes its side, or sends what it must not, gives the lease back.
#[tokio::test]
async fn the_end_of_a_connection_frees_the_lease() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    feed.sender.send(request(answer(7))).await.unwrap();
    assert_refused(next(&mut feed).await, Code::InvalidArgument, "INVALID_REQUEST", "UNKNOWN_QUESTION");
    let (_, mut feed) = other.lease("w", "other", 0).await.unwrap();
    drop(feed.sender);
    assert_eq!(feed.stream.message().await.unwrap(), None);
    client.lease("w", "agent", 0).await.unwrap();
}

/// What an agent sends is bounded before it is decoded, whatever it answers.
#[tokio::test]
async fn an_answer_that_is_too_large_ends_the_connection_by_name() {
    let server = Server::start();
    let read = |results| v1::answer::Answer::ReadFiles(v1::ReadFilesResponse { results });
    let file = v1::FileContent { content: Some(vec![7; 5 << 20].into()), ..v1::FileContent::default() };
    let file = v1::FileResult { result: Some(v1::file_result::Result::File(file)) };
    let entries = vec![v1::FileResult::default(); aptix_model::id_block::ENTRIES + 1];
    for (answer, field) in [(read(vec![file]), None), (read(entries), Some("answer.readFiles.results"))] {
        let answer = Message::Answer(v1::Answer { question_id: 1, answer: Some(answer) });
        let ended = outcome(&server, vec![request(Message::Hello(hello("w", "agent"))), request(answer)]).await;
        let status = ended.unwrap_err();
        let (code, reason, _) = refusal(&status);
        assert_eq!((code, reason.as_str()), (Code::InvalidArgument, "TOO_LARGE"), "{status:?}");
        assert_eq!(fields(&status).first().map(String::as_str), field);
    }
}
