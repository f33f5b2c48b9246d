//! Limits of tokens and workspaces: what a refusal says, whom it is for, and when what was used is given back.

use std::path::{Path, PathBuf};
use std::pin::Pin;
use std::process::{Command, Stdio};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use aptix_model::token::{Role, Scope};
use aptix_model::wire::v1;
use aptix_server::dispatcher::approvals::Approvals;
use aptix_server::options::Options;
use aptix_server::quota::{Allowance, QuotaRules};
use tokio::task::JoinSet;
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tower::Service;

use crate::identity::{admin, bearer, make, new, one, store_with_workspaces, with};
use crate::process::Program;
use crate::server::{Clients, Feed, SOON, Server, create_text, hello, next, refusal, submit};
use crate::until::until;

/// What a refusal says of the limit: its subject, its key, its value; and when to call again.
fn over_limit(status: &Status) -> (String, String, u64, Duration) {
    assert_eq!(refusal(status), (Code::ResourceExhausted, "OVER_LIMIT".to_owned(), String::new()), "{status:?}");
    let details = status.get_error_details();
    let metadata = &details.error_info().unwrap().metadata;
    let (key, value) = (metadata["limit"].clone(), metadata["value"].clone());
    let [violation] = &details.quota_failure().unwrap().violations[..] else { panic!("{details:?}") };
    assert_eq!(violation.description, format!("{key} is {value}"));
    let retry = details.retry_info().unwrap().retry_delay.unwrap();
    (violation.subject.clone(), key, value.parse().unwrap(), retry)
}

fn assert_over<T: std::fmt::Debug>(answer: Result<T, Status>, subject: &str, key: &str) {
    let (found, limit, ..) = over_limit(&answer.expect_err("the call is over a limit"));
    assert_eq!((found.as_str(), limit.as_str()), (subject, key));
}

async fn list(clients: &mut Clients, workspace: &str, token: &str) -> Result<(), Status> {
    let request = v1::ListBatchesRequest { workspace_id: workspace.to_owned(), ..Default::default() };
    clients.batches.list_batches(with(token, request)).await.map(drop)
}

async fn watch(
    clients: &mut Clients,
    workspace: &str,
    token: &str,
) -> Result<tonic::Streaming<v1::WatchWorkspaceResponse>, Status> {
    let request = v1::WatchWorkspaceRequest { workspace_id: workspace.to_owned(), ..Default::default() };
    Ok(clients.workspaces.watch_workspace(with(token, request)).await?.into_inner())
}

/// Calls until it passes; what is refused meanwhile is over a limit.
async fn until_passed<T>(mut call: impl AsyncFnMut() -> Result<T, Status>) -> T {
    until(async || call().await.inspect_err(|refused| drop(over_limit(refused))).ok()).await
}

/// A server program with a configuration and tokens, by name: their role and workspace.
pub(crate) struct Limited {
    pub(crate) program: Program,
    config: PathBuf,
    pub(crate) tokens: Vec<String>,
}

impl Limited {
    pub(crate) fn start(dir: &Path, text: &str, tokens: &[(&str, &str, &str)]) -> Self {
        Self::logging(dir, text, tokens, ("error", Stdio::null()))
    }

    /// One that logs this much, and where.
    pub(crate) fn logging(dir: &Path, text: &str, tokens: &[(&str, &str, &str)], (level, log): (&str, Stdio)) -> Self {
        let run = |arguments: &[&str]| {
            let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
            let output = command.args(arguments).arg("--data-dir").arg(dir.join("data")).output().unwrap();
            assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
            String::from_utf8(output.stdout).unwrap().trim().to_owned()
        };
        let make = |(name, role, workspace): &(&str, &str, &str)| {
            run(&["workspace", "create", workspace]);
            run(&["token", "create", "--workspace", workspace, "--role", role, "--name", name])
        };
        let tokens = tokens.iter().map(make).collect();
        let config = dir.join("server.toml");
        Self::write(&config, text);
        let mut command = Command::new(env!("CARGO_BIN_EXE_aptix-server"));
        command.args(["--listen", "127.0.0.1:0", "--log", level, "--config"]).arg(&config);
        command.arg("--data-dir").arg(dir.join("data")).stdout(Stdio::piped()).stderr(log);
        Self { program: Program::spawn(command), config, tokens }
    }

    #[expect(clippy::disallowed_methods, reason = "a configuration in the test's own directory")]
    fn write(config: &Path, text: &str) {
        std::fs::write(config, text).unwrap();
    }

    /// Changes the configuration while the server runs.
    pub(crate) fn reload(&self, text: &str) {
        Self::write(&self.config, text);
        self.program.signal("-HUP");
    }

    pub(crate) async fn connect(&self) -> Clients {
        let endpoint = tonic::transport::Endpoint::new(format!("http://{}", self.program.address)).unwrap();
        Clients::over(endpoint.connect().await.unwrap())
    }
}

/// So many calls at once, over two connections in turn; answers those that were refused.
async fn burst(server: &Limited, (workspace, token): (&str, &str), calls: usize) -> Vec<Status> {
    let clients = [server.connect().await, server.connect().await];
    let mut sent = JoinSet::new();
    for number in 0..calls {
        let (mut clients, workspace, token) = (clients[number % 2].clone(), workspace.to_owned(), token.to_owned());
        sent.spawn(async move { list(&mut clients, &workspace, &token).await });
    }
    sent.join_all().await.into_iter().filter_map(Result::err).collect()
}

/// A token that calls too often, over several connections, is refused with the limit and the time to wait, and after it passes;
/// another token goes on. A workspace may have limits of its own, and the limits change without a restart.
#[tokio::test(flavor = "multi_thread")]
async fn a_noisy_token_is_refused_with_details_while_another_goes_on() {
    const RATES: &str = "calls_per_second_per_token = 2\n[workspaces.slow]\ncalls_per_second_per_workspace = 1\n";
    let dir = tempfile::tempdir().unwrap();
    let tokens = [("noisy", "reader", "a"), ("quiet", "reader", "b"), ("two", "reader", "slow")];
    let server = Limited::start(dir.path(), RATES, &tokens);
    let [noisy, quiet, slow] = &server.tokens[..] else { panic!("three tokens") };
    let began = Instant::now();
    let refused = burst(&server, ("a", noisy), 64).await;
    let most = 2 * (2 + usize::try_from(began.elapsed().as_secs()).unwrap());
    assert!(refused.len() + most >= 64, "{} of 64 were refused", refused.len());
    let mut waits = Vec::new();
    for status in &refused {
        let (subject, limit, value, retry) = over_limit(status);
        assert_eq!((subject.as_str(), limit.as_str(), value), ("token:noisy", "calls_per_second_per_token", 2));
        assert!(retry <= Duration::from_secs(1), "{retry:?}");
        assert!(status.message().contains("hint: "), "{}", status.message());
        waits.push(retry);
    }
    // Those who are refused together come back one after the other.
    waits.sort_unstable();
    waits.dedup();
    assert!(waits.len() > refused.len() / 2, "{waits:?}");
    let clients = server.connect().await;
    until_passed(|| async { list(&mut clients.clone(), "b", quiet).await }).await;
    until_passed(|| async { list(&mut clients.clone(), "a", noisy).await }).await;
    let refused = burst(&server, ("slow", slow), 64).await;
    let of_workspace = refused.iter().map(over_limit).filter(|(subject, ..)| subject == "workspace:slow");
    assert!(of_workspace.count() > 0, "{refused:?}");

    server.reload("calls_per_second_per_token = 100000\n");
    let began = Instant::now();
    while !burst(&server, ("a", noisy), 64).await.is_empty() || !burst(&server, ("slow", slow), 64).await.is_empty() {
        assert!(began.elapsed() < SOON, "the limits have not changed");
    }
}

/// Streams are counted over all connections of a token, and over all tokens of a workspace; a token that ends gives back what it had,
/// and the one that takes its place begins with nothing used.
#[tokio::test]
async fn streams_of_tokens_and_workspaces_are_bounded_until_they_end() {
    let (store, registry) = store_with_workspaces().await;
    let mut tokens = Vec::new();
    for name in ["first", "second", "third"] {
        tokens.push(make(&registry, new(name, Role::Reader, one("own"), None)).await);
    }
    let operator = make(&registry, new("operator", Role::Operator, Scope::All, None)).await;
    let all = make(&registry, new("all", Role::Reader, Scope::All, None)).await;
    let rules = QuotaRules {
        token: Allowance { streams: 1, ..Allowance::default() },
        workspace: Allowance { streams: 2, ..Allowance::default() },
        workspaces: [("other".parse().unwrap(), Allowance { streams: 1, ..Allowance::default() })].into(),
    };
    let server = Server::asking(store, Options::default(), (Approvals::default(), rules));
    let (mut client, mut again) = (server.connect().await, server.connect().await);
    let mut of_first = watch(&mut client, "own", &tokens[0]).await.unwrap();
    for client in [&mut client, &mut again] {
        assert_over(watch(client, "own", &tokens[0]).await, "token:first", "streams_per_token");
    }
    let _of_second = watch(&mut again, "own", &tokens[1]).await.unwrap();
    assert_over(watch(&mut again, "own", &tokens[2]).await, "workspace:own", "streams_per_workspace");
    // A stream that its workspace refuses is none of its token's.
    let _of_all = watch(&mut again, "other", &all).await.unwrap();
    let metric = "aptix_quota_refusals_total{limit=\"streams_per_workspace\"} ";
    assert!(aptix_server::metrics::text().contains(metric));

    let revoke = v1::RevokeTokenRequest { name: "first".to_owned() };
    admin(&client).revoke_token(with(&operator, revoke)).await.unwrap();
    while let Ok(Some(_)) = tokio::time::timeout(SOON, of_first.message()).await.expect("the stream ends") {}
    until_passed(|| async { watch(&mut again.clone(), "own", &tokens[2]).await }).await;
    // One that takes the place of the revoked one: a name is not used twice.
    let (name, role, workspace_id) = ("renewed".to_owned(), v1::Role::Reader.into(), "other".to_owned());
    let renewed = v1::CreateTokenRequest { name, role, workspace_id, ..Default::default() };
    let renewed = admin(&client).create_token(with(&operator, renewed)).await.unwrap().into_inner();
    assert_over(watch(&mut client, "other", &renewed.secret).await, "workspace:other", "streams_per_workspace");
}

/// A question that its agent has not answered, by a call of this size.
async fn ask(mut clients: Clients, workspace: &str, path: String) -> Result<(), Status> {
    let file = v1::FileSelector { file: Some(v1::file_selector::File::DocPath(format!("app/{path}"))) };
    let request = v1::ReadFileRequest { workspace_id: workspace.to_owned(), file: Some(file), ..Default::default() };
    clients.files.read_file(request).await.map(drop)
}

/// An agent that reads files, and has not answered.
async fn agent_of(clients: &mut Clients, workspace: &str) -> Feed {
    let features = vec!["read".to_owned()];
    clients.serve(v1::Hello { features, version: "1.2.3".to_owned(), ..hello(workspace, "agent") }).await.unwrap().1
}

async fn question(feed: &mut Feed) -> u64 {
    loop {
        if let Some(v1::serve_response::Message::Question(question)) = next(&mut feed.stream).await.unwrap().message {
            return question.question_id;
        }
    }
}

/// Answers a question with a failure of this length.
async fn answer(feed: &Feed, question_id: u64, length: usize) {
    let failure = v1::Failure { reason: "NOT_FOUND".to_owned(), message: "x".repeat(length), ..Default::default() };
    let answer = v1::Answer { question_id, answer: Some(v1::answer::Answer::Failure(failure)) };
    let message = Some(v1::serve_request::Message::Answer(answer));
    feed.sender.send(v1::ServeRequest { message }).await.unwrap();
}

/// Questions and bytes of a workspace are held from its calls until they are answered; other workspaces go on. What an agent sends
/// over its connection is not counted: it is asked for.
#[tokio::test]
async fn questions_and_bytes_of_a_workspace_are_bounded_until_they_are_answered() {
    for (allowed, key) in [
        (Allowance { questions: 1, ..Allowance::default() }, "questions_per_workspace"),
        (Allowance { bytes_in_flight: 150, ..Allowance::default() }, "bytes_in_flight_per_workspace"),
    ] {
        let rules = QuotaRules { workspace: allowed, ..QuotaRules::default() };
        let store = std::sync::Arc::new(aptix_server::store::memory::MemoryStore::default());
        let server = Server::asking(store, Options::default(), (Approvals::default(), rules));
        let (mut client, other) = (server.connect().await, server.connect().await);
        let mut feed = agent_of(&mut client, "w").await;
        let mut elsewhere = agent_of(&mut client, "elsewhere").await;
        let name = "n".repeat(80);
        let mut calls = JoinSet::new();
        calls.spawn(ask(client.clone(), "w", name.clone()));
        let asked = question(&mut feed).await;
        assert_over(ask(other.clone(), "w", name.clone()).await, "workspace:w", key);
        calls.spawn(ask(other.clone(), "elsewhere", name.clone()));
        let asked_elsewhere = question(&mut elsewhere).await;
        answer(&feed, asked, 1000).await;
        assert_eq!(calls.join_next().await.unwrap().unwrap().unwrap_err().code(), Code::NotFound);
        calls.spawn(ask(other.clone(), "w", name.clone()));
        let asked = question(&mut feed).await;
        answer(&feed, asked, 1).await;
        answer(&elsewhere, asked_elsewhere, 1).await;
        for refused in calls.join_all().await {
            assert_eq!(refused.unwrap_err().code(), Code::NotFound);
        }
    }
}

/// Begins a submit with a message of 4 MiB, of which only the length comes; it goes on until the answer is dropped.
async fn announce(clients: &Clients, token: &str) -> Result<(), Status> {
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/aptix.v1.BatchService/SubmitBatch");
    let prefix = [&[0][..], &(4_u32 << 20).to_be_bytes()].concat();
    let mut request = tonic::codegen::http::Request::post(format!("http://server{path}"));
    request = request.header("content-type", "application/grpc").header("authorization", &bearer(token)[0]);
    let request = request.body(tonic::body::Body::new(Begun(Some(prefix)))).unwrap();
    let mut channel = clients.channel.clone();
    std::future::poll_fn(|context| Service::<_>::poll_ready(&mut channel, context)).await.unwrap();
    let answer = channel.call(request).await.unwrap();
    Status::from_header_map(answer.headers()).filter(|status| status.code() != Code::Ok).map_or(Ok(()), Err)
}

/// A body that begins, and has no end.
struct Begun(Option<Vec<u8>>);

impl http_body::Body for Begun {
    type Data = tokio_util::bytes::Bytes;
    type Error = Status;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<http_body::Frame<Self::Data>, Status>>> {
        self.0.take().map_or(Poll::Pending, |begun| Poll::Ready(Some(Ok(http_body::Frame::data(begun.into())))))
    }
}

/// The bytes of a token's message are held as soon as its length is known, over all connections, and given back when the call ends.
#[tokio::test]
async fn bytes_of_a_token_are_bounded_before_its_messages_have_come() {
    let (store, registry) = store_with_workspaces().await;
    let slow = make(&registry, new("slow", Role::Orchestrator, one("own"), None)).await;
    let other = make(&registry, new("other", Role::Orchestrator, one("own"), None)).await;
    let token = Allowance { bytes_in_flight: 4 << 20, ..Allowance::default() };
    let rules = QuotaRules { token, ..QuotaRules::default() };
    let server = Server::asking(store, Options::default(), (Approvals::default(), rules));
    let (first, second) = (server.connect().await, server.connect().await);
    let small = |token: &str, id: &str| with(token, submit("own", id, vec![create_text("a", "b\n")]));
    {
        let (mut one, mut two) = (Box::pin(announce(&first, &slow)), Box::pin(announce(&second, &slow)));
        // Whichever comes second is refused, and the other one goes on.
        let refused = tokio::select! {
            refused = &mut one => refused,
            refused = &mut two => refused,
        };
        assert_over(refused, "token:slow", "bytes_in_flight_per_token");
        let refused = second.clone().batches.submit_batch(small(&slow, "r1")).await;
        assert_over(refused, "token:slow", "bytes_in_flight_per_token");
        second.clone().batches.submit_batch(small(&other, "r2")).await.unwrap();
    }
    until_passed(|| async { second.clone().batches.submit_batch(small(&slow, "r3")).await }).await;
}

/// Batches count for a day once they are stored: those that are refused do not, and the retry of a stored one is answered, however many
/// came since. A revert counts as the batch that it stores.
#[tokio::test]
async fn batches_a_day_are_bounded_and_retries_are_not() {
    let (store, registry) = store_with_workspaces().await;
    let busy = make(&registry, new("busy", Role::Orchestrator, one("own"), None)).await;
    let other = make(&registry, new("other", Role::Orchestrator, one("own"), None)).await;
    let rules = QuotaRules {
        token: Allowance { batches_per_day: 2, ..Allowance::default() },
        workspace: Allowance { batches_per_day: 3, ..Allowance::default() },
        ..QuotaRules::default()
    };
    let server = Server::asking(store, Options::default(), (Approvals::default(), rules));
    let client = server.connect().await;
    let send = async |token: &str, id: &str, text: &str, validate_only: bool| {
        let request = submit("own", id, vec![create_text("a", text)]);
        let request = with(token, v1::SubmitBatchRequest { validate_only, ..request });
        let answer = client.clone().batches.submit_batch(request).await?.into_inner();
        Ok::<_, Status>(answer.batch.unwrap().batch_id)
    };
    let first = send(&busy, "r1", "one", false).await.unwrap();
    let reused = send(&busy, "r1", "other content", false).await.unwrap_err();
    assert_eq!(reused.code(), Code::AlreadyExists);
    assert_eq!(send(&busy, "r1", "one", false).await.unwrap(), first);
    send(&busy, "r2", "two", false).await.unwrap();
    for (id, text) in [("r3", "three"), ("r4", "four")] {
        let refused = send(&busy, id, text, false).await.unwrap_err();
        let (subject, limit, value, retry) = over_limit(&refused);
        assert_eq!((subject.as_str(), limit.as_str(), value), ("token:busy", "batches_per_day_per_token", 2));
        assert!(retry > Duration::from_secs(11 * 3600), "{retry:?}");
    }
    assert_eq!(send(&busy, "r1", "one", false).await.unwrap(), first);
    send(&busy, "r3", "three", true).await.unwrap();
    send(&other, "r3", "three", false).await.unwrap();
    assert_over(send(&other, "r4", "four", false).await, "workspace:own", "batches_per_day_per_workspace");
    let arguments = serde_json::json!({ "path": "b.txt", "content": "text" }).to_string().into_bytes().into();
    let (workspace_id, tool) = ("own".to_owned(), "workspace_create_file".to_owned());
    let call = v1::CallToolRequest { workspace_id, tool, arguments, request_id: "r5".to_owned(), ..Default::default() };
    let called = client.clone().tools.call_tool(with(&other, call)).await.map(drop);
    assert_over(called, "workspace:own", "batches_per_day_per_workspace");
}
