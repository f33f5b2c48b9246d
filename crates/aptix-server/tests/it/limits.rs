//! What the server bounds, and that it goes on serving whoever passes a bound.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_server::dispatcher::Settings;
use aptix_server::serve::Options;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use tonic_reflection::pb::v1::server_reflection_client::ServerReflectionClient;
use tonic_reflection::pb::v1::{ServerReflectionRequest, server_reflection_request, server_reflection_response};

use crate::server::{Server, assert_refused, create_text, line_patch, next, part_start, submit};

/// A message over 4 MiB is refused, and the connection lives.
#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_the_connection_lives() {
    let server = Server::start();
    let mut client = server.connect().await;
    let files = (0..5).map(|number| create_text(&format!("f{number}"), &"x".repeat(1 << 20))).collect();
    let status = client.submit(submit("w", "r1", files)).await.unwrap_err();
    assert_eq!(status.code(), Code::OutOfRange);
    client.submit(submit("w", "r2", vec![create_text("a", "")])).await.unwrap();
}

/// A batch that would pass the limit once it has its ids is refused before it is stored; one below comes back whole.
#[tokio::test]
async fn a_stored_batch_always_fits_into_a_message() {
    let server = Server::start();
    let mut client = server.connect().await;
    let many = |count: i64| {
        let mut file = line_patch("app/a.txt");
        if let Some(v1::file_patch::Action::LinePatch(patch)) = &mut file.action {
            let insert = |line| v1::InsertLines { after_line: line, new_lines: vec!["x".to_owned()] };
            patch.changes = (0..count)
                .map(|line| v1::Change {
                    operation: Some(v1::change::Operation::Insert(insert(line))),
                    ..v1::Change::default()
                })
                .collect();
        }
        vec![file]
    };
    let answer = client.submit(submit("w", "r1", many(90_000))).await;
    assert_refused(answer, Code::InvalidArgument, "TOO_LARGE", "DOCUMENT");
    let batch = client.submit(submit("w", "r2", many(60_000))).await.unwrap();
    assert_eq!(client.get("w", &batch.batch_id).await.unwrap(), batch);
}

/// A page of a list ends before it passes the limit of a message.
#[tokio::test]
async fn a_page_fits_into_a_message() {
    let server = Server::start();
    let mut client = server.connect().await;
    for number in 0..100 {
        let mut request = submit("w", &format!("r{number}"), vec![create_text("a", "")]);
        request.edit.as_mut().unwrap().label = "x".repeat(60 << 10);
        client.submit(request).await.unwrap();
    }
    let mut request =
        v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 1000, page_token: String::new() };
    let mut seen = 0;
    loop {
        let page = client.batches.list_batches(request.clone()).await.unwrap().into_inner();
        seen += page.batches.len();
        if page.next_page_token.is_empty() {
            break;
        }
        request.page_token = page.next_page_token;
    }
    assert_eq!(seen, 100);
}

/// No more streams of events are open at one time than the server allows.
#[tokio::test]
async fn streams_are_bounded() {
    let dispatch = Settings { streams: 2, ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let _held = (client.lease("a", "agent", 0).await.unwrap(), client.lease("b", "agent", 0).await.unwrap());
    let third = client.lease("c", "agent", 0).await.map(drop);
    assert_refused(third, Code::ResourceExhausted, "RESOURCE_EXHAUSTED", "");
    client.submit(submit("c", "r", vec![create_text("a", "")])).await.unwrap();
}

/// A call that finds no place within two seconds is turned away.
#[tokio::test]
async fn calls_are_bounded() {
    let server = Server::with(Options { calls: 1, ..Options::default() });
    let (mut busy, mut client) = (server.connect().await, server.connect().await);
    // An upload without an end keeps the only place.
    let (parts, stream) = mpsc::channel(4);
    let blob = v1::BlobRef { sha256: crate::server::sha256(b"x"), size_bytes: 1 };
    parts.send(part_start("w", blob)).await.unwrap();
    let upload = busy.files.upload_blob(ReceiverStream::new(stream));
    let submitted = client.submit(submit("w", "r", vec![create_text("a", "")]));
    tokio::select! {
        ended = upload => panic!("the upload is still going on: {ended:?}"),
        answer = submitted => assert_refused(answer, Code::ResourceExhausted, "RESOURCE_EXHAUSTED", ""),
    }
    drop(parts);
}

/// A call whose message never comes is ended at its deadline.
#[tokio::test]
async fn a_call_has_a_deadline() {
    let server = Server::with(Options { call_deadline: Duration::from_millis(50), ..Options::default() });
    let client = server.connect().await;
    let (sender, stream) = mpsc::channel::<v1::SubmitBatchRequest>(1);
    let mut calls = tonic::client::Grpc::new(client.channel.clone());
    calls.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static("/aptix.v1.BatchService/SubmitBatch");
    let codec = tonic_prost::ProstCodec::<v1::SubmitBatchRequest, v1::SubmitBatchResponse>::default();
    let request = tonic::Request::new(ReceiverStream::new(stream));
    let status = calls.client_streaming(request, path, codec).await.unwrap_err();
    assert_eq!(status.code(), Code::DeadlineExceeded, "{status:?}");
    drop(sender);
}

/// Headers over the limit are refused.
#[tokio::test]
async fn headers_are_bounded() {
    let server = Server::start();
    let mut client = server.connect().await;
    let ask = |value: String| {
        let asked = v1::FindMissingBlobsRequest { workspace_id: "w".to_owned(), sha256: Vec::new() };
        let mut request = tonic::Request::new(asked);
        request.metadata_mut().insert("x-large", value.parse().unwrap());
        request
    };
    client.files.find_missing_blobs(ask("x".repeat(8 << 10))).await.unwrap();
    assert!(client.files.find_missing_blobs(ask("x".repeat(64 << 10))).await.is_err());
    client.files.find_missing_blobs(ask(String::new())).await.unwrap();
}

async fn health(channel: Channel, service: &str) -> Result<ServingStatus, tonic::Status> {
    let request = HealthCheckRequest { service: service.to_owned() };
    Ok(HealthClient::new(channel).check(request).await?.into_inner().status())
}

/// Health and reflection answer.
#[tokio::test]
async fn health_and_reflection_answer() {
    let server = Server::start();
    let client = server.connect().await;
    for service in ["", "aptix.v1.BatchService", "aptix.v1.AgentService", "aptix.v1.FileService"] {
        assert_eq!(health(client.channel.clone(), service).await.unwrap(), ServingStatus::Serving, "{service}");
    }
    let ask = ServerReflectionRequest {
        host: String::new(),
        message_request: Some(server_reflection_request::MessageRequest::ListServices(String::new())),
    };
    let mut reflection = ServerReflectionClient::new(client.channel.clone());
    let mut answers = reflection.server_reflection_info(tokio_stream::iter([ask])).await.unwrap().into_inner();
    let Some(server_reflection_response::MessageResponse::ListServicesResponse(list)) =
        next(&mut answers).await.unwrap().message_response
    else {
        panic!("reflection lists the services")
    };
    let names: Vec<_> = list.service.iter().map(|service| service.name.as_str()).collect();
    for service in ["aptix.v1.BatchService", "aptix.v1.AgentService", "aptix.v1.FileService", "grpc.health.v1.Health"] {
        assert!(names.contains(&service), "{service} in {names:?}");
    }
}
