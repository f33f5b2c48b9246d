//! Every refused call says why, also where no service of the protocol comes to answer it: requests that no gRPC client sends, to
//! every method, over HTTP/2 by hand.

use aptix_model::wire::method::Method;
use tokio::net::{TcpStream, UnixStream};
use tokio::task::JoinSet;
use tonic::Code;
use tonic::codegen::http::request::Builder;

use crate::http2::{Raw, framed, request};
use crate::process::Program;
use crate::server::refusal;

/// A request that cannot be served.
struct Broken {
    what: &'static str,
    edit: fn(Builder) -> Builder,
    body: Vec<u8>,
    /// Whether its body ends.
    ends: bool,
    http: u16,
    code: Code,
    reason: &'static str,
    detail: &'static str,
}

fn broken(what: &'static str, body: Vec<u8>, (code, reason, detail): (Code, &'static str, &'static str)) -> Broken {
    Broken { what, edit: std::convert::identity, body, ends: true, http: 200, code, reason, detail }
}

const INVALID: (Code, &str, &str) = (Code::InvalidArgument, "INVALID_REQUEST", "");
const TOO_LATE: (Code, &str, &str) = (Code::DeadlineExceeded, "DEADLINE_EXCEEDED", "");
const UNKNOWN: (Code, &str, &str) = (Code::Unimplemented, "UNIMPLEMENTED", "");

fn as_json(mut head: Builder) -> Builder {
    head.headers_mut().unwrap().insert("content-type", "application/grpc+json".parse().unwrap());
    head
}

fn all() -> Vec<Broken> {
    let too_large = (Code::InvalidArgument, "TOO_LARGE", "MESSAGE");
    let brotli: fn(Builder) -> Builder = |head| head.header("grpc-encoding", "brotli");
    vec![
        broken("bytes that are no message", framed(0, 3, &[0xff; 3]), INVALID),
        broken("a message that is cut off", framed(0, 100, &[0]), INVALID),
        broken("half a length", vec![0, 0, 0], INVALID),
        broken("no message", Vec::new(), INVALID),
        broken("a flag that there is not", framed(7, 0, &[]), INVALID),
        broken("compressed by nothing", framed(1, 1, &[0]), INVALID),
        broken("more than a message may have", framed(0, (4 << 20) + 1, &[0; 100]), too_large),
        Broken { edit: brotli, ..broken("an unknown compression", framed(1, 1, &[0]), UNKNOWN) },
        Broken { edit: as_json, http: 415, ..broken("another type of content", framed(0, 0, &[]), INVALID) },
        Broken { edit: |head| head.method("PUT"), http: 405, ..broken("PUT", framed(0, 0, &[]), INVALID) },
        Broken {
            edit: |head| head.header("grpc-timeout", "30m"),
            ends: false,
            ..broken("a message that does not come in its time", Vec::new(), TOO_LATE)
        },
        Broken {
            edit: |head| head.header("grpc-timeout", "1n"),
            ends: false,
            ..broken("no time at all", Vec::new(), TOO_LATE)
        },
    ]
}

/// What a request is refused with that cannot be served, whatever method it calls.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_that_cannot_be_served_is_refused_with_a_reason_by_every_method() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let caller = Raw::over(TcpStream::connect(&server.address).await.unwrap()).await;
    // The services of operators answer nobody else.
    let owner = Raw::over(UnixStream::connect(dir.path().join("admin.sock")).await.unwrap()).await;
    let mut wrong = Vec::new();
    for case in all() {
        // What is for the other servers on the store is refused before its message is read.
        for method in Method::ALL.iter().filter(|method| **method != Method::AskAgent) {
            let raw = if method.path().contains("AdminService") { &owner } else { &caller };
            let ended = raw.call((case.edit)(request(method.path())), &case.body, case.ends).await;
            let mut found = (ended.http, refusal(&ended.status));
            // A stream of messages may begin with none; what is missing is named then.
            if case.body.is_empty() && found.1.2 == "MISSING" {
                found.1.2.clear();
            }
            let expected = (case.http, (case.code, case.reason.to_owned(), case.detail.to_owned()));
            if found != expected {
                wrong.push(format!("{}, {}: {found:?} {}", method.path(), case.what, ended.status.message()));
            }
        }
    }
    assert!(wrong.is_empty(), "{} of {}:\n{}", wrong.len(), all().len() * Method::ALL.len(), wrong.join("\n"));
}

/// Methods that do not exist, in services that do and that do not, and calls to the services beside the protocol's.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_services_say_why_as_well() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let raw = Raw::over(TcpStream::connect(&server.address).await.unwrap()).await;
    let (whole, garbage) = (framed(0, 0, &[]), framed(0, 3, &[0xff; 3]));
    let unknown_service = framed(0, 6, b"\x0a\x04none");
    for (path, body, expected) in [
        ("/aptix.v1.BatchService/Invented", &whole, UNKNOWN),
        ("/aptix.v9.BatchService/SubmitBatch", &whole, UNKNOWN),
        ("/", &whole, UNKNOWN),
        ("/grpc.health.v1.Health/Invented", &whole, UNKNOWN),
        ("/grpc.health.v1.Health/Check", &garbage, INVALID),
        ("/grpc.health.v1.Health/Check", &unknown_service, (Code::NotFound, "NOT_FOUND", "")),
        ("/grpc.health.v1.Health/Watch", &garbage, INVALID),
        ("/grpc.reflection.v1.ServerReflection/Invented", &whole, UNKNOWN),
    ] {
        let ended = raw.call(request(path), body, true).await;
        let (code, reason, detail) = refusal(&ended.status);
        assert_eq!((code, reason.as_str(), detail.as_str()), expected, "{path}: {ended:?}");
    }
    // A stream that ends is told so in its trailers.
    let late = request("/grpc.health.v1.Health/Watch").header("grpc-timeout", "100m");
    assert_eq!(refusal(&raw.call(late, &whole, true).await.status).0, Code::DeadlineExceeded);
}

/// The control of the tests above: many calls at one time on one connection that are all as they should be.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_request_by_hand_that_is_a_call_is_served() {
    let dir = tempfile::tempdir().unwrap();
    let server = Program::start(dir.path(), &[]);
    let raw = std::sync::Arc::new(Raw::over(TcpStream::connect(&server.address).await.unwrap()).await);
    let mut calls = JoinSet::new();
    for content in ["application/grpc", "application/grpc+proto", "application/grpc; charset=utf-8"] {
        let raw = std::sync::Arc::clone(&raw);
        calls.spawn(async move {
            let mut head = request("/aptix.v1.WorkspaceService/ListWorkspaces").header("grpc-timeout", "60S");
            head.headers_mut().unwrap().insert("content-type", content.parse().unwrap());
            raw.call(head, &framed(0, 0, &[]), true).await
        });
    }
    for ended in calls.join_all().await {
        assert_eq!((ended.http, ended.status.code()), (200, Code::Ok), "{ended:?}");
    }
}
