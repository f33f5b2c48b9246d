//! Questions to the agent that serves a workspace: asked, answered, cancelled, and failed with its connection.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use aptix_model::presence::{Presence, QuestionKind};
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::{Answer, Ask};
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::dispatcher::feed::{Delivery, Hello};
use aptix_server::dispatcher::lease::secret_digest;
use aptix_server::dispatcher::questions::{Answered, Asked, OPEN};
use aptix_server::dispatcher::refusal::Refusal;
use aptix_server::dispatcher::stream::{FeedEnd, Items, Start};
use aptix_server::dispatcher::submit::Submission;
use aptix_server::dispatcher::{Dispatcher, Settings};
use aptix_server::quota::CallQuota;
use aptix_server::store::memory::MemoryStore;
use aptix_server::ticket::Asker;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout};
use tokio_stream::StreamExt;
use tokio_stream::wrappers::ReceiverStream;

use crate::server::{SOON, edit_of, line_patch, submit};

type Outcome = Result<Answer, Refusal>;

/// An agent's connection to a server without a network.
struct Agent {
    sent: Items<Delivery>,
    answers: mpsc::Sender<Result<Answered, Refusal>>,
    secret: [u8; 32],
}

fn server() -> Arc<Dispatcher> {
    let settings = Settings { heartbeat: Duration::from_secs(3600), ..Settings::default() };
    Dispatcher::new(Arc::new(MemoryStore::default()), settings, Approvals::default())
}

impl Agent {
    async fn connect(server: &Arc<Dispatcher>) -> Self {
        Self::with(server, &["read", "search"], None).await
    }

    async fn with(server: &Arc<Dispatcher>, features: &[&str], held: Option<&[u8]>) -> Self {
        let features = features.iter().map(|&feature| feature.to_owned()).collect();
        let hello = Hello {
            workspace: "w".parse().unwrap(),
            agent: "agent".parse().unwrap(),
            from: Start::Revision(aptix_model::id::Revision(0)),
            held: held.and_then(secret_digest),
            presence: Presence { version: "0.0.1".to_owned(), roots: vec!["app".to_owned()], mode: None, features },
        };
        let (answers, answered) = mpsc::channel(1);
        let mut sent = server.serve(hello, ReceiverStream::new(answered), std::convert::identity).await.unwrap();
        let Some(Ok(Delivery::Lease(_, secret))) = sent.next().await else { panic!("the lease comes first") };
        Self { sent, answers, secret: *secret.bytes() }
    }

    async fn next(&mut self) -> Delivery {
        timeout(SOON, self.sent.next()).await.expect("a message comes in time").expect("it goes on").unwrap()
    }

    /// The number of the next question, and its path.
    async fn question(&mut self) -> (u64, String) {
        match self.next().await {
            Delivery::Asked(Asked::Question(number, left, ask)) => {
                assert!(left > Duration::ZERO);
                (number, path(&ask))
            }
            other => panic!("expected a question, found {other:?}"),
        }
    }

    async fn answer(&self, number: u64, text: &str) {
        self.answers.send(Ok(Answered(number, answer(text)))).await.unwrap();
    }

    /// Why the connection ended.
    async fn end(mut self) -> FeedEnd {
        loop {
            if let Err(end) = timeout(SOON, self.sent.next()).await.unwrap().expect("it says why") {
                return end;
            }
        }
    }
}

fn read(path: &str) -> Ask {
    let file = Some(v1::file_selector::File::Path(path.to_owned()));
    let part = v1::FilePart { file: Some(v1::FileSelector { file }), ..v1::FilePart::default() };
    Ask(v1::question::Ask::ReadFiles(v1::ReadFilesRequest { files: vec![part], ..v1::ReadFilesRequest::default() }))
}

fn path(ask: &Ask) -> String {
    let v1::question::Ask::ReadFiles(read) = &ask.0 else { panic!("{ask:?}") };
    match read.files[0].file.clone().unwrap().file.unwrap() {
        v1::file_selector::File::Path(path) => path,
        other => panic!("{other:?}"),
    }
}

/// An answer that is recognised by its text.
fn answer(text: &str) -> Answer {
    let failure = v1::Failure { reason: "NOT_FOUND".to_owned(), message: text.to_owned(), ..v1::Failure::default() };
    let result = Some(v1::file_result::Result::Failure(failure));
    let results = vec![v1::FileResult { result }];
    Answer(v1::answer::Answer::ReadFiles(v1::ReadFilesResponse { results }))
}

/// Asks in a task of its own.
fn ask(server: &Arc<Dispatcher>, asker: u64, ask: Ask, calls: &mut JoinSet<Outcome>) {
    ask_within(server, asker, ask, Duration::from_secs(3600), calls);
}

fn ask_within(server: &Arc<Dispatcher>, asker: u64, ask: Ask, time: Duration, calls: &mut JoinSet<Outcome>) {
    let server = Arc::clone(server);
    let deadline = Instant::now() + time;
    calls.spawn(async move { server.ask(&"w".parse().unwrap(), &Asker::unconnected(asker), ask, deadline).await });
}

async fn joined(calls: &mut JoinSet<Outcome>) -> Outcome {
    timeout(SOON, calls.join_next()).await.expect("it is answered in time").unwrap().unwrap()
}

#[track_caller]
fn assert_failed(outcome: Outcome, reason: Reason, detail: Option<Detail>) {
    let refusal = outcome.expect_err("it fails");
    let [failure] = refusal.failures() else { panic!("{refusal:?}") };
    assert_eq!((failure.reason, failure.detail), (reason, detail), "{failure}");
}

#[tokio::test]
async fn a_question_is_asked_and_answered() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    for text in ["one", "two"] {
        ask(&server, 1, read(text), &mut calls);
        let (number, path) = agent.question().await;
        agent.answer(number, &path).await;
        assert_eq!(joined(&mut calls).await, Ok(answer(text)));
    }
    ask(&server, 1, read("three"), &mut calls);
    let (number, _) = agent.question().await;
    let why = aptix_model::failure::Failure::new(Reason::PolicyDenied, "reads are closed");
    agent.answers.send(Ok(Answered(number, Answer::failed(why)))).await.unwrap();
    assert_failed(joined(&mut calls).await, Reason::PolicyDenied, None);
}

#[tokio::test]
async fn nothing_is_asked_where_no_agent_answers() {
    let server = server();
    let mut calls = JoinSet::new();
    ask(&server, 1, read("a"), &mut calls);
    assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::NoAgent));
    assert!(server.serving(&"w".parse().unwrap()).await.unwrap().is_none());
    let mut old = Agent::with(&server, &["stat"], None).await;
    ask(&server, 1, read("a"), &mut calls);
    assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::NoAgent));
    let presence = server.serving(&"w".parse().unwrap()).await.unwrap().unwrap().presence;
    assert!(presence.answers(QuestionKind::Stat) && !presence.answers(QuestionKind::Read));
    assert!(timeout(Duration::from_millis(1), old.sent.next()).await.is_err(), "it was not asked");
}

/// The agent hears that the caller has gone; an answer that was on its way is dropped, a second one is not.
#[tokio::test]
async fn a_caller_that_goes_cancels_its_question() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    ask(&server, 1, read("a"), &mut calls);
    let (number, _) = agent.question().await;
    calls.shutdown().await;
    assert_eq!(agent.next().await, Delivery::Asked(Asked::Cancelled(number)));
    agent.answer(number, "late").await;
    ask(&server, 1, read("b"), &mut calls);
    let (open, _) = agent.question().await;
    assert!(open > number);
    agent.answer(number, "twice").await;
    assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::AgentLost));
    assert_unknown(agent.end().await);
}

#[track_caller]
fn assert_unknown(end: FeedEnd) {
    let FeedEnd::Refused(refusal) = end else { panic!("{end:?}") };
    assert_eq!(refusal.failures()[0].detail, Some(Detail::UnknownQuestion));
}

#[tokio::test]
async fn an_agent_that_answers_what_was_not_asked_is_cut_off() {
    for twice in [true, false] {
        let server = server();
        let mut agent = Agent::connect(&server).await;
        let mut calls = JoinSet::new();
        ask(&server, 1, read("a"), &mut calls);
        let (number, _) = agent.question().await;
        if twice {
            agent.answer(number, "once").await;
            assert_eq!(joined(&mut calls).await, Ok(answer("once")));
            ask(&server, 1, read("b"), &mut calls);
            agent.question().await;
            agent.answer(number, "twice").await;
        } else {
            agent.answer(number + 1, "another").await;
        }
        assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::AgentLost));
        assert_unknown(agent.end().await);
    }
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    ask(&server, 1, read("a"), &mut calls);
    let (number, _) = agent.question().await;
    let other = Answer(v1::answer::Answer::SearchFiles(v1::SearchFilesResponse::default()));
    agent.answers.send(Ok(Answered(number, other))).await.unwrap();
    assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::AgentLost));
    assert!(matches!(agent.end().await, FeedEnd::Refused(_)));
}

/// Whatever waits fails as the connection ends: asked or not yet, whether the agent goes or is superseded.
#[tokio::test]
async fn questions_fail_at_once_when_the_connection_ends() {
    let server = server();
    for superseded in [false, true] {
        let mut agent = Agent::connect(&server).await;
        let mut calls = JoinSet::new();
        for _ in 0..3 * OPEN {
            ask(&server, 1, read("a"), &mut calls);
        }
        agent.question().await;
        let next = if superseded {
            let secret = agent.secret;
            let next = Agent::with(&server, &["read"], Some(&secret)).await;
            assert_eq!(agent.end().await, FeedEnd::Superseded);
            Some(next)
        } else {
            drop(agent);
            None
        };
        while !calls.is_empty() {
            assert_failed(joined(&mut calls).await, Reason::Unavailable, Some(Detail::AgentLost));
        }
        if let Some(mut next) = next {
            ask(&server, 1, read("b"), &mut calls);
            let (number, _) = next.question().await;
            next.answer(number, "b").await;
            assert_eq!(joined(&mut calls).await, Ok(answer("b")));
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_question_ends_with_its_time() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    ask_within(&server, 1, read("a"), Duration::from_secs(5), &mut calls);
    let (number, _) = agent.question().await;
    assert_failed(joined(&mut calls).await, Reason::DeadlineExceeded, None);
    assert_eq!(agent.next().await, Delivery::Asked(Asked::Cancelled(number)));
}

#[tokio::test]
async fn a_thousand_questions_at_once_are_all_answered() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    for number in 0..1000 {
        ask(&server, number % 4, read("a"), &mut calls);
    }
    let mut open = HashSet::new();
    while !calls.is_empty() {
        // As many are open as may be before one is answered; the last place is for a caller that has none.
        while open.len() < calls.len().min(OPEN - 1) {
            assert!(open.insert(agent.question().await.0));
        }
        let number = *open.iter().next().unwrap();
        open.remove(&number);
        agent.answer(number, "a").await;
        assert_eq!(joined(&mut calls).await, Ok(answer("a")));
    }
}

/// A caller that asks for everything leaves a place to others, and each place that becomes free goes around.
#[tokio::test]
async fn no_caller_has_all_places() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    for _ in 0..500 {
        ask(&server, 1, read("greedy"), &mut calls);
    }
    let mut asked = HashMap::<String, usize>::new();
    for _ in 0..OPEN - 1 {
        let (_, path) = agent.question().await;
        *asked.entry(path).or_default() += 1;
    }
    assert_eq!(asked["greedy"], OPEN - 1);
    ask(&server, 2, read("modest"), &mut calls);
    let (number, path) = agent.question().await;
    assert_eq!(path, "modest", "the greedy caller does not have the last place");
    agent.answer(number, "modest").await;
    assert_eq!(joined(&mut calls).await, Ok(answer("modest")));
}

#[tokio::test]
async fn questions_that_wait_are_bounded_in_number_and_bytes() {
    let server = server();
    let _agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    for number in 0..1025 {
        ask(&server, number, read("a"), &mut calls);
    }
    assert_failed(joined(&mut calls).await, Reason::ResourceExhausted, None);
    calls.shutdown().await;
    for number in 0..5 {
        ask(&server, number, read(&"x".repeat(4_000_000)), &mut calls);
    }
    assert_failed(joined(&mut calls).await, Reason::ResourceExhausted, None);
    calls.shutdown().await;
}

/// An agent that answers nothing is still sent its events, and one that takes nothing is cut off.
#[tokio::test(start_paused = true)]
async fn an_agent_that_is_held_up_harms_itself_alone() {
    let server = server();
    let mut agent = Agent::connect(&server).await;
    let mut calls = JoinSet::new();
    for _ in 0..2 * OPEN {
        ask(&server, 1, read("a"), &mut calls);
    }
    for _ in 0..OPEN - 1 {
        agent.question().await;
    }
    let batch =
        aptix_model::batch::Batch::try_from(edit_of(&mut submit("w", "r", vec![line_patch("app/a")])).clone()).unwrap();
    let (workspace, request_id) = ("w".parse().unwrap(), "r".parse().unwrap());
    let (origin, sent) = (aptix_model::batch::Origin::default(), aptix_model::record::Sent::default());
    let submission = Submission { workspace, request_id, batch, origin, sent };
    server.keep(submission.into_record(server.now()), &CallQuota::default(), std::time::Instant::now()).await.unwrap();
    assert!(matches!(agent.next().await, Delivery::Event(_)));
    // Cancellations wait to be sent, and nothing is taken.
    calls.shutdown().await;
    assert!(timeout(Duration::from_secs(31), std::future::pending::<()>()).await.is_err());
    assert_eq!(agent.end().await, FeedEnd::Slow);
    assert!(server.serving(&"w".parse().unwrap()).await.unwrap().is_none());
}
