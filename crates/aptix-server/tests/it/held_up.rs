//! An agent that is asked over gRPC and does not answer: whom that holds up.

use aptix_model::wire::v1;
use aptix_model::wire::v1::serve_response::Message;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tonic::{Code, Status};

use crate::server::{Clients, Feed, SOON, Server, assert_refused, create_text, hello, next, next_event, submit};

/// How many calls are worked on at one time.
const CALLS: usize = 128;

/// An agent that reads what it is asked, and answers nothing by itself.
async fn agent(client: &mut Clients) -> Feed {
    let lease_secret = client.secret("w");
    let hello = v1::Hello { features: vec!["read".to_owned()], lease_secret, ..hello("w", "agent") };
    client.serve(hello).await.unwrap().1
}

/// The next question, heartbeats left out.
async fn question(feed: &mut Feed) -> u64 {
    loop {
        match next(feed).await.unwrap().message {
            Some(Message::Question(question)) => return question.question_id,
            Some(Message::Heartbeat(_)) => {}
            other => panic!("expected a question, found {other:?}"),
        }
    }
}

fn read(client: &Clients, calls: &mut JoinSet<Result<v1::ReadFilesResponse, Status>>) {
    let mut files = client.files.clone();
    let file = Some(v1::file_selector::File::Path("a.txt".to_owned()));
    let files_asked = vec![v1::FilePart { file: Some(v1::FileSelector { file }), range: None }];
    let request =
        v1::ReadFilesRequest { workspace_id: "w".to_owned(), files: files_asked, source: v1::Source::Active.into() };
    calls.spawn(async move { files.read_files(request).await.map(tonic::Response::into_inner) });
}

/// More calls wait for the agent than may be worked on at one time, and others are served all the same; when the agent goes,
/// all of them fail at once.
#[tokio::test]
async fn calls_that_wait_for_an_agent_hold_up_no_other() {
    let server = Server::start();
    let (mut client, mut author) = (server.connect().await, server.connect().await);
    let mut feed = agent(&mut client).await;
    let (mut calls, mut connections) = (JoinSet::new(), Vec::new());
    for _ in 0..4 {
        let connection = server.connect().await;
        for _ in 0..100 {
            read(&connection, &mut calls);
        }
        connections.push(connection);
    }
    // As many are open as one connection of the four may have.
    for _ in 0..63 {
        question(&mut feed).await;
    }
    for number in 0..10 {
        let batch = submit("w", &format!("r{number}"), vec![create_text(&format!("{number}.txt"), "x")]);
        timeout(SOON, author.submit(batch)).await.expect("in time").unwrap();
        next_event(&mut feed).await.unwrap();
    }
    assert_eq!(calls.len(), 400);
    drop(feed);
    let mut waited = 0;
    while let Some(outcome) = timeout(SOON, calls.join_next()).await.expect("in time") {
        let refused = outcome.unwrap().expect_err("nobody answered");
        // A call that had not come as far as to wait finds no agent any more.
        let waits = refused.message().contains("AGENT_LOST");
        let detail = if waits { "AGENT_LOST" } else { "NO_AGENT" };
        assert_refused::<()>(Err(refused), Code::Unavailable, "UNAVAILABLE", detail);
        waited += usize::from(waits);
    }
    assert!(waited > CALLS, "{waited} calls waited");
}

/// A caller that goes away, with its connection or without, takes its question with it.
#[tokio::test]
async fn a_call_that_is_given_up_cancels_its_question() {
    let server = Server::start();
    let mut client = server.connect().await;
    let mut feed = agent(&mut client).await;
    let caller = server.connect().await;
    let mut calls = JoinSet::new();
    read(&caller, &mut calls);
    let number = question(&mut feed).await;
    calls.shutdown().await;
    let cancelled = Message::QuestionCancelled(v1::QuestionCancelled { question_id: number });
    assert_eq!(next(&mut feed).await.unwrap().message, Some(cancelled));
}

/// The next connection of the agent is asked what comes then; what the one before was asked has failed.
#[tokio::test]
async fn a_connection_that_takes_over_fails_what_was_asked_before() {
    let server = Server::start();
    let (mut client, caller) = (server.connect().await, server.connect().await);
    let mut old = agent(&mut client).await;
    let mut calls = JoinSet::new();
    read(&caller, &mut calls);
    question(&mut old).await;
    let mut new = agent(&mut client).await;
    let failed = timeout(SOON, calls.join_next()).await.expect("at once").unwrap().unwrap();
    assert_refused(failed, Code::Unavailable, "UNAVAILABLE", "AGENT_LOST");
    assert_refused(next(&mut old).await, Code::Aborted, "LEASE_LOST", "SUPERSEDED");
    read(&caller, &mut calls);
    question(&mut new).await;
}
