//! Calls from a browser: gRPC-Web by a plain client of HTTP/1.1, against the program itself.

use std::io::{ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use prost::Message as _;
use tonic::codegen::http::{HeaderMap, HeaderName, HeaderValue};
use tonic::transport::Endpoint;
use tonic::{Code, Status};

use crate::http2::{Raw, framed, request};
use crate::process::Program;
use crate::server::{SOON, create_text, refusal, submit};

const PAGE: &str = "https://review.example";
const LIST: &str = "/aptix.v1.WorkspaceService/ListWorkspaces";

/// A server that pages of [`PAGE`] may call.
#[expect(clippy::disallowed_methods, reason = "a test's own file")]
fn start(dir: &Path) -> Program {
    let config = dir.join("server.toml");
    std::fs::write(&config, format!("[web]\norigins = [\"http://localhost:5173\", \"{PAGE}\"]\n")).unwrap();
    Program::start(&dir.join("data"), &["--config", config.to_str().unwrap()])
}

/// An answer of HTTP/1.1.
#[derive(Debug)]
struct Answer {
    code: u16,
    /// The head as it came. The server writes names in small letters.
    head: String,
    body: Vec<u8>,
}

impl Answer {
    fn header(&self, name: &str) -> Option<&str> {
        self.head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(": "))
    }

    /// The messages, and the status behind them or in the head.
    fn of_grpc(&self) -> (Vec<&[u8]>, Status) {
        let (mut messages, mut rest) = (Vec::new(), self.body.as_slice());
        let mut status = self.head.clone();
        while let [flag, length @ ..] = rest {
            let (length, bytes) = length.split_first_chunk().unwrap();
            let (frame, after) = bytes.split_at(usize::try_from(u32::from_be_bytes(*length)).unwrap());
            match flag {
                0 => messages.push(frame),
                0x80 => status = String::from_utf8(frame.to_vec()).unwrap(),
                other => panic!("a frame of kind {other}"),
            }
            rest = after;
        }
        let fields = status.lines().filter_map(|line| line.split_once(':'));
        let fields = fields.filter(|(name, _)| name.starts_with("grpc-"));
        let header = |(name, value): (&str, &str)| -> (HeaderName, HeaderValue) {
            (name.parse().unwrap(), value.trim().parse().unwrap())
        };
        let headers: HeaderMap = fields.map(header).collect();
        (messages, Status::from_header_map(&headers).unwrap_or_else(|| panic!("no status: {self:?}")))
    }
}

/// Sends a request and reads until the server closes the connection.
fn http(address: &str, method: &str, path: &str, headers: &[(&str, &str)], body: &[u8]) -> Answer {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("{method} {path} HTTP/1.1\r\nhost: server\r\n{headers}content-length: {}\r\n\r\n", body.len());
    stream.write_all(&[head.as_bytes(), body].concat()).unwrap();
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).unwrap();
    let end = bytes.windows(4).position(|window| window == b"\r\n\r\n").expect("a head") + 4;
    let mut body = bytes.split_off(end);
    let text = String::from_utf8(bytes).unwrap();
    let code = text.split(' ').nth(1).unwrap().parse().unwrap();
    let answer = Answer { code, head: text, body: Vec::new() };
    if answer.header("transfer-encoding") == Some("chunked") {
        body = unchunked(&body);
    }
    Answer { body, ..answer }
}

fn unchunked(mut bytes: &[u8]) -> Vec<u8> {
    let mut whole = Vec::new();
    loop {
        let end = bytes.windows(2).position(|window| window == b"\r\n").unwrap();
        let length = usize::from_str_radix(std::str::from_utf8(&bytes[..end]).unwrap(), 16).unwrap();
        if length == 0 {
            return whole;
        }
        whole.extend_from_slice(&bytes[end + 2..end + 2 + length]);
        bytes = &bytes[end + 4 + length..];
    }
}

/// A call as a page makes it.
fn call(address: &str, path: &str, more: &[(&str, &str)], message: &[u8]) -> Answer {
    let headers = [("content-type", "application/grpc-web+proto"), ("x-grpc-web", "1"), ("origin", PAGE)];
    http(address, "POST", path, &[&headers, more].concat(), &framed(0, message.len(), message))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_page_calls_and_watches() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let endpoint = Endpoint::new(format!("http://{}", server.address)).unwrap();
    let mut batches = BatchServiceClient::new(endpoint.connect().await.unwrap());
    let stored = batches.submit_batch(submit("w", "r", vec![create_text("a", "")])).await.unwrap().into_inner();

    let listed = call(&server.address, LIST, &[], &[]);
    assert_eq!((listed.code, listed.header("access-control-allow-origin")), (200, Some(PAGE)), "{listed:?}");
    assert_eq!((listed.header("connection"), listed.header("vary")), (Some("close"), Some("origin")));
    assert_eq!(listed.header("content-type"), Some("application/grpc-web+proto"));
    let (messages, status) = listed.of_grpc();
    assert_eq!((messages.len(), status.code()), (1, Code::Ok));
    let list = v1::ListWorkspacesResponse::decode(messages[0]).unwrap();
    assert_eq!(list.workspaces[0].workspace_id, "w");

    // A stream, which its caller's time ends.
    let watch = v1::WatchWorkspaceRequest { workspace_id: "w".to_owned(), ..v1::WatchWorkspaceRequest::default() };
    let timed = [("grpc-timeout", "2S")];
    let path = "/aptix.v1.WorkspaceService/WatchWorkspace";
    let watched = call(&server.address, path, &timed, &watch.encode_to_vec());
    let (messages, ended) = watched.of_grpc();
    assert_eq!(refusal(&ended), (Code::DeadlineExceeded, "DEADLINE_EXCEEDED".to_owned(), String::new()));
    let id = stored.batch.unwrap().batch_id;
    let told = |message: &&[u8]| message.windows(id.len()).any(|window| window == id.as_bytes());
    assert!(messages.iter().any(told), "{} messages", messages.len());

    // What is refused says why, before a service is reached and behind.
    let broken = call(&server.address, LIST, &[], &[0xff; 3]).of_grpc().1;
    assert_eq!(refusal(&broken).1, "INVALID_REQUEST");
    let get = v1::GetWorkspaceRequest { workspace_id: "none".to_owned() }.encode_to_vec();
    let unknown = call(&server.address, "/aptix.v1.WorkspaceService/GetWorkspace", &[], &get).of_grpc().1;
    assert_eq!(refusal(&unknown).1, "NOT_FOUND");

    // The same in Base64, as pages without binary answers send it.
    let text =
        [("content-type", "application/grpc-web-text"), ("accept", "application/grpc-web-text"), ("origin", PAGE)];
    let answer = http(&server.address, "POST", LIST, &text, b"AAAAAAA=");
    assert_eq!((answer.code, answer.header("content-type")), (200, Some("application/grpc-web-text+proto")));
}

#[test]
fn a_page_needs_a_token_as_everybody_does() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let made = Command::new(env!("CARGO_BIN_EXE_aptix-server"))
        .args(["token", "create", "--workspace", "*", "--role", "reviewer", "--name", "page", "--data-dir"])
        .arg(dir.path().join("data"))
        .output()
        .unwrap();
    let authorization = format!("Bearer {}", String::from_utf8(made.stdout).unwrap().trim());
    assert_eq!(refusal(&call(&server.address, LIST, &[], &[]).of_grpc().1).0, Code::Unauthenticated);
    let answer = call(&server.address, LIST, &[("authorization", &authorization)], &[]);
    assert_eq!(answer.of_grpc().1.code(), Code::Ok);
}

#[test]
fn pages_of_other_origins_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let kind = ("content-type", "application/grpc-web+proto");
    let asks = [("access-control-request-method", "POST"), ("access-control-request-headers", "authorization")];
    for origin in ["https://evil.example", "https://review.example.evil.example", "http://review.example", "null", ""] {
        for method in ["POST", "OPTIONS"] {
            let headers = [&[kind, ("origin", origin)], asks.as_slice()].concat();
            let refused = http(&server.address, method, LIST, &headers, &framed(0, 0, &[]));
            assert_eq!(refused.code, 403, "{origin}: {refused:?}");
            assert_eq!(refusal(&refused.of_grpc().1).1, "PERMISSION_DENIED");
            assert!(!refused.head.contains("access-control"), "{refused:?}");
        }
    }
    let both = http(&server.address, "POST", LIST, &[kind, ("origin", PAGE), ("origin", PAGE)], &framed(0, 0, &[]));
    assert_eq!(both.code, 403, "two origins");
    let asked = http(&server.address, "OPTIONS", LIST, &[&[("origin", PAGE)], asks.as_slice()].concat(), &[]);
    assert_eq!((asked.code, asked.header("access-control-allow-origin")), (204, Some(PAGE)), "{asked:?}");
    assert_eq!(asked.header("access-control-allow-methods"), Some("POST"));
    assert!(asked.header("access-control-allow-headers").unwrap().contains("authorization"));
    // What is no call of a page is told so; a program that is no browser names no origin.
    for (method, headers, code) in [
        ("GET", [("origin", PAGE)].as_slice(), 405),
        ("OPTIONS", &[], 405),
        ("POST", &[("content-type", "application/json"), ("origin", PAGE)], 415),
        ("POST", &[("content-type", "application/grpc")], 415),
        ("POST", &[kind], 200),
    ] {
        let answer = http(&server.address, method, LIST, headers, &framed(0, 0, &[]));
        assert_eq!(answer.code, code, "{method} {headers:?}: {answer:?}");
    }
}

/// Without the key there is no HTTP/1.1 and no answer to a page.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_the_key_nothing_is_served_to_pages() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let mut stream = TcpStream::connect(&server.address).unwrap();
    stream.set_read_timeout(Some(SOON)).unwrap();
    stream.write_all(format!("OPTIONS {LIST} HTTP/1.1\r\nhost: a\r\norigin: {PAGE}\r\n\r\n").as_bytes()).unwrap();
    let mut answer = Vec::new();
    let _ = stream.read_to_end(&mut answer);
    assert!(!answer.starts_with(b"HTTP/1.1"), "{answer:?}");
    let raw = Raw::over(tokio::net::TcpStream::connect(&server.address).await.unwrap()).await;
    let mut head = request(LIST).header("origin", PAGE);
    head.headers_mut().unwrap().insert("content-type", "application/grpc-web+proto".parse().unwrap());
    let ended = raw.call(head, &framed(0, 0, &[]), true).await;
    assert_eq!((ended.http, refusal(&ended.status).1.as_str()), (415, "INVALID_REQUEST"));
}

/// A head that comes a byte at a time is waited for ten seconds, and one that is too long is not waited for.
#[test]
fn a_head_is_bounded_in_time_and_in_size() {
    let dir = tempfile::tempdir().unwrap();
    let server = start(dir.path());
    let begun = Instant::now();
    let mut slow = TcpStream::connect(&server.address).unwrap();
    let mut long = TcpStream::connect(&server.address).unwrap();
    slow.set_read_timeout(Some(Duration::from_millis(100))).unwrap();
    long.set_read_timeout(Some(SOON)).unwrap();
    slow.write_all(b"POST / HTTP/1.1\r\nslow: ").unwrap();
    let line = format!("long: {}\r\n", "x".repeat(1 << 10));
    let _ = long.write_all(format!("POST / HTTP/1.1\r\n{}", line.repeat(20)).as_bytes());
    let _ = long.read(&mut [0]);
    let silent = slow.read(&mut [0]).map_err(|error| error.kind());
    assert_eq!(silent, Err(ErrorKind::WouldBlock), "the slow one began before, and is still waited for");
    // Each byte is sent once the server was listened to for a while.
    while !matches!(slow.read(&mut [0]), Ok(0)) {
        if slow.write_all(b"x").is_err_and(|error| error.kind() != ErrorKind::WouldBlock) {
            break;
        }
        assert!(begun.elapsed() < SOON, "the head is still waited for");
    }
    assert!(begun.elapsed() >= Duration::from_secs(9), "{:?}", begun.elapsed());
    assert_eq!(call(&server.address, LIST, &[], &[]).of_grpc().1.code(), Code::Ok);
}
