//! The server's limits, and that it keeps serving a client that exceeds one.

use std::time::Duration;

use aptix_model::wire::v1;
use aptix_server::caller::Share;
use aptix_server::dispatcher::Settings;
use aptix_server::options::Options;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Code;
use tonic::transport::Channel;
use tonic_health::pb::health_client::HealthClient;
use tonic_health::pb::{HealthCheckRequest, health_check_response::ServingStatus};
use tonic_types::StatusExt;

use crate::until::until;

use crate::server::{
    SOON, Server, applied, assert_refused, create_text, edit_of, fields, line_patch, next, next_event, part_start,
    refusal, submit,
};

/// A deadline that tests wait for.
const QUIET: Duration = Duration::from_secs(2);

/// A message over 4 MiB is refused, and the connection lives.
#[tokio::test]
async fn a_message_over_the_limit_is_refused_and_the_connection_lives() {
    let server = Server::start();
    let mut client = server.connect().await;
    let files = (0..5).map(|number| create_text(&format!("f{number}"), &"x".repeat(1 << 20))).collect();
    assert_refused(client.submit(submit("w", "r1", files)).await, Code::InvalidArgument, "TOO_LARGE", "MESSAGE");
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
        edit_of(&mut request).label = "x".repeat(60 << 10);
        client.submit(request).await.unwrap();
    }
    let mut request =
        v1::ListBatchesRequest { workspace_id: "w".to_owned(), page_size: 1000, ..v1::ListBatchesRequest::default() };
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

/// As large as an edit may be, most of it in texts.
fn large_files() -> Vec<v1::FilePatch> {
    let file = |number| {
        let (label, key) = ("x".repeat(64 << 10), format!("{number}{}", "x".repeat(64_000)));
        v1::FilePatch { label, key, ..create_text(&format!("f{number}"), "") }
    };
    (0..31).map(file).collect()
}

/// A report on these files, as large as it may be.
fn large_report() -> v1::Report {
    let names: Vec<_> = (0..31).map(|number| format!("f{number}")).collect();
    let mut report = applied(&names.iter().map(|name| ("app", name.as_str(), b"".as_slice())).collect::<Vec<_>>());
    let warning = v1::Warning { code: "LONG".to_owned(), message: "x".repeat(64 << 10), line: None };
    report.files.iter_mut().for_each(|file| file.warnings = vec![warning.clone()]);
    report.diff = "x".repeat(1 << 20);
    report
}

fn failed(failures: Vec<v1::Failure>) -> v1::Report {
    v1::Report { outcome: v1::Outcome::Failed.into(), failures, ..v1::Report::default() }
}

fn failure(bytes: usize) -> v1::Failure {
    v1::Failure { reason: "SHA_MISMATCH".to_owned(), message: "x".repeat(bytes), ..v1::Failure::default() }
}

/// Whatever a report holds, its batch stays readable: alone, by a part's id, in the list, and in the feed. What no report
/// may hold is refused.
#[tokio::test]
async fn no_report_makes_its_batch_unreadable() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (epoch, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    client.upload("w", b"").await.unwrap();
    let mut batches = Vec::new();
    for number in 0..3 {
        batches.push(client.submit(submit("w", &format!("r{number}"), large_files())).await.unwrap());
    }
    let excerpt = |lines: usize| v1::Excerpt { start_line: 1, end_line: 1, text: "x\n".repeat(lines - 1) + "x" };
    let quoting = |nearest: Vec<v1::Excerpt>| failed(vec![v1::Failure { nearest, ..failure(1) }]);
    let whole = large_report();
    let mut loud = whole.clone();
    loud.files[0].warnings[0].message.push('x');
    let mut chatty = whole.clone();
    chatty.files[0].warnings = vec![v1::Warning::default(); 101];
    for (report, field) in [
        (failed(vec![failure(1); 1001]), "report.failures"),
        (failed(vec![failure((64 << 10) + 1)]), "report.failures[0].message"),
        (failed(vec![failure(64 << 10); 33]), "report.failures"),
        (quoting(vec![excerpt(1); 4]), "report.failures[0].nearest"),
        (quoting(vec![excerpt(21)]), "report.failures[0].nearest[0].text"),
        (loud, "report.files[0].warnings[0].message"),
        (chatty, "report.files[0].warnings"),
    ] {
        let status = client.report("w", &batches[0].batch_id, epoch, report).await.unwrap_err();
        assert_eq!(fields(&status), [field]);
        assert_eq!(refusal(&status), (Code::InvalidArgument, "TOO_LARGE".to_owned(), "TEXT".to_owned()));
    }
    let reports = [failed(vec![failure(2000); 1000]), quoting(vec![excerpt(20); 3]), whole];
    for (batch, report) in batches.iter().zip(reports) {
        let outcome = report.outcome;
        for _ in 0..2 {
            client.report("w", &batch.batch_id, epoch, report.clone()).await.unwrap();
        }
        let read = client.get("w", &batch.batch_id).await.unwrap();
        assert_eq!(read.report.unwrap().outcome, outcome);
        let id = batch.edit.as_ref().unwrap().files[0].file_patch_id.clone();
        let part = v1::GetChangeRequest { workspace_id: "w".to_owned(), id };
        client.batches.get_change(part).await.unwrap();
    }
    let mut request = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    for expected in batches.iter().rev() {
        let page = client.batches.list_batches(request.clone()).await.unwrap().into_inner();
        assert_eq!(page.batches[0].batch_id, expected.batch_id);
        request.page_token = page.next_page_token;
    }
    for revision in 1..=6 {
        assert_eq!(next_event(&mut feed).await.unwrap().revision, revision);
    }
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

/// A call of this method whose messages the test sends by hand, and whose answer it takes by hand.
async fn by_hand<Q, A>(
    channel: &Channel,
    method: &'static str,
    messages: impl tokio_stream::Stream<Item = Q> + Send + 'static,
) -> Result<tonic::Streaming<A>, tonic::Status>
where
    Q: prost::Message + Send + Sync + 'static,
    A: prost::Message + Default + Send + Sync + 'static,
{
    let mut calls = tonic::client::Grpc::new(channel.clone());
    calls.ready().await.unwrap();
    let path = tonic::codegen::http::uri::PathAndQuery::from_static(method);
    let codec = tonic_prost::ProstCodec::<Q, A>::default();
    Ok(calls.streaming(tonic::Request::new(messages), path, codec).await?.into_inner())
}

/// A call whose message is still to come takes no place away from others, and is ended when nothing comes of it.
#[tokio::test]
async fn a_half_open_call_takes_no_place() {
    let server = Server::with(Options { calls: Share::of(1), request_idle: QUIET, ..Options::default() });
    let (busy, mut client) = (server.connect().await, server.connect().await);
    let (sender, stream) = mpsc::channel::<v1::SubmitBatchRequest>(1);
    let method = "/aptix.v1.BatchService/SubmitBatch";
    let half_open = by_hand::<_, v1::SubmitBatchResponse>(&busy.channel, method, ReceiverStream::new(stream));
    let others = async {
        client.submit(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
        assert_eq!(health(client.channel.clone(), "").await.unwrap(), ServingStatus::Serving);
        client.upload("w", b"content").await.unwrap();
    };
    let (ended, ()) = tokio::join!(half_open, others);
    assert_eq!(ended.map(drop).unwrap_err().code(), Code::DeadlineExceeded);
    drop(sender);
}

/// An unread answer holds no place that others need.
#[tokio::test]
async fn an_answer_that_is_not_taken_takes_no_place() {
    let server = Server::with(Options { calls: Share::of(1), ..Options::default() });
    let (slow, mut client) = (server.connect().await, server.connect().await);
    let files = (0..3).map(|number| create_text(&format!("f{number}"), &"x".repeat(1 << 20))).collect();
    let batch = client.submit(submit("w", "r", files)).await.unwrap();
    let which = Some(v1::get_batch_request::Batch::BatchId(batch.batch_id.clone()));
    let request = v1::GetBatchRequest { workspace_id: "w".to_owned(), batch: which, view: v1::BatchView::Full.into() };
    let method = "/aptix.v1.BatchService/GetBatch";
    let mut untaken = Vec::new();
    for _ in 0..3 {
        let messages = tokio_stream::iter([request.clone()]);
        untaken.push(by_hand::<_, v1::GetBatchResponse>(&slow.channel, method, messages).await.unwrap());
        client.get("w", &batch.batch_id).await.unwrap();
    }
    for mut answer in untaken {
        assert_eq!(answer.message().await.unwrap().unwrap().batch.unwrap().batch_id, batch.batch_id);
    }
}

/// Streams carry small batches whole and large ones without their large content, marked as omitted; so do lists.
#[tokio::test]
async fn what_an_answer_leaves_out_is_said() {
    let server = Server::start();
    let mut client = server.connect().await;
    let (_, mut feed) = client.lease("w", "agent", 0).await.unwrap();
    for (request, bytes, omitted) in [("small", 1000, false), ("large", 100_000, true)] {
        let sent = client.submit(submit("w", request, vec![create_text("a", &"x".repeat(bytes))])).await.unwrap();
        assert!(!sent.content_omitted);
        let watch = v1::WatchBatchRequest {
            workspace_id: "w".to_owned(),
            batch_id: sent.batch_id.clone(),
            view: v1::BatchView::Full.into(),
            ..v1::WatchBatchRequest::default()
        };
        let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
        let state = next(&mut states).await.unwrap().batch.unwrap();
        let event = next_event(&mut feed).await.unwrap().batch.unwrap();
        for state in [state, event] {
            assert_eq!((state.content_omitted, &state.batch_id), (omitted, &sent.batch_id));
            assert_eq!(state.edit.as_ref().unwrap().files[0].action.is_none(), omitted);
        }
        assert_eq!(client.get("w", &sent.batch_id).await.unwrap(), sent);
        let cancel = v1::CancelBatchRequest {
            workspace_id: "w".to_owned(),
            batch_id: sent.batch_id.clone(),
            ..Default::default()
        };
        client.batches.cancel_batch(cancel).await.unwrap();
        let ended = next(&mut states).await.unwrap().batch.unwrap();
        assert!(ended.content_omitted && ended.edit.unwrap().files[0].action.is_none(), "the state was sent before");
        assert!(next_event(&mut feed).await.unwrap().batch.unwrap().content_omitted);
    }
    let request = v1::ListBatchesRequest { workspace_id: "w".to_owned(), ..v1::ListBatchesRequest::default() };
    let listed = client.batches.list_batches(request).await.unwrap().into_inner().batches;
    assert!(listed.iter().all(|batch| batch.content_omitted));
}

/// A watcher of one batch gets heartbeats while nothing happens.
#[tokio::test]
async fn a_watched_batch_has_heartbeats() {
    let dispatch = Settings { heartbeat: Duration::from_millis(20), ..Settings::default() };
    let server = Server::with(Options { dispatch, ..Options::default() });
    let mut client = server.connect().await;
    let batch = client.submit(submit("w", "r", vec![create_text("a", "text")])).await.unwrap();
    let watch = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id.clone(),
        view: v1::BatchView::Full.into(),
        ..v1::WatchBatchRequest::default()
    };
    let mut states = client.batches.watch_batch(watch).await.unwrap().into_inner();
    assert!(!next(&mut states).await.unwrap().heartbeat);
    for _ in 0..3 {
        let message = next(&mut states).await.unwrap();
        let state = message.batch.unwrap();
        assert!(message.heartbeat && state.content_omitted);
        assert_eq!((&state.batch_id, state.state(), state.revision), (&batch.batch_id, batch.state(), 1));
    }
}

/// Of the long-lived calls one connection has its share; the next is refused with advice, and other calls go on.
#[tokio::test]
async fn long_lived_calls_leave_room_for_others() {
    let server = Server::start();
    let (mut client, mut other) = (server.connect().await, server.connect().await);
    let batch = client.submit(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    let request = v1::WatchBatchRequest {
        workspace_id: "w".to_owned(),
        batch_id: batch.batch_id.clone(),
        view: v1::BatchView::Full.into(),
        ..v1::WatchBatchRequest::default()
    };
    let mut watches = Vec::new();
    for _ in 0..64 {
        let mut watch = client.batches.watch_batch(request.clone()).await.unwrap().into_inner();
        next(&mut watch).await.unwrap();
        watches.push(watch);
    }
    let refused = client.batches.watch_batch(request.clone()).await.unwrap_err();
    assert!(refused.message().contains("open another connection"), "{refused:?}");
    assert!(refused.get_error_details().retry_info().is_some());
    assert_refused::<()>(Err(refused), Code::ResourceExhausted, "RESOURCE_EXHAUSTED", "");
    client.get("w", &batch.batch_id).await.unwrap();
    other.batches.watch_batch(request.clone()).await.unwrap();
    watches.pop();
    // A stream that ends leaves its place.
    until(async || client.batches.watch_batch(request.clone()).await.ok()).await;
}

/// Large messages wait for each other and are all answered; an incomplete one does not block others.
#[tokio::test]
async fn large_messages_take_turns() {
    let server = Server::start();
    let (busy, mut client) = (server.connect().await, server.connect().await);
    let large = |request: &str| {
        let files = (0..3).map(|number| create_text(&format!("f{number}"), &"x".repeat(1 << 20)));
        submit("w", request, files.collect())
    };
    let mut tasks = tokio::task::JoinSet::new();
    for number in 0..12 {
        let (mut client, request) = (client.clone(), large(&format!("r{number}")));
        tasks.spawn(async move { client.submit(request).await.unwrap() });
    }
    assert_eq!(tasks.join_all().await.len(), 12);
    let (sender, stream) = mpsc::channel::<v1::SubmitBatchRequest>(1);
    let method = "/aptix.v1.BatchService/SubmitBatch";
    let open = by_hand::<_, v1::SubmitBatchResponse>(&busy.channel, method, ReceiverStream::new(stream));
    tokio::select! {
        ended = open => panic!("the call is still going on: {:?}", ended.map(drop)),
        answer = client.submit(large("last")) => drop(answer.unwrap()),
    }
    drop(sender);
}

/// Uploads that say nothing take up places among the transfers, and no others.
#[tokio::test]
async fn silent_uploads_hold_up_transfers_alone() {
    let dispatch = Settings { transfers: Share::of(1), patience: SOON, ..Settings::default() };
    let server = Server::with(Options { dispatch, calls: Share::of(1), ..Options::default() });
    let (mut silent, mut client) = (server.connect().await, server.connect().await);
    let (parts, stream) = mpsc::channel(1);
    let others = async {
        // Its place is taken before it says anything.
        until(async || client.upload("w", b"content").await.err()).await;
        client.submit(submit("w", "r", vec![create_text("a", "")])).await.unwrap();
    };
    tokio::select! {
        ended = silent.files.upload_blob(ReceiverStream::new(stream)) => panic!("it is still going on: {ended:?}"),
        () = others => {}
    }
    drop(parts);
}

/// Told to stop, the server says that it is not healthy, ends the streams that would never end, lets a download finish,
/// and does not wait for the rest.
#[tokio::test]
async fn nothing_that_is_idle_holds_up_the_end() {
    let mut server = Server::start();
    let mut client = server.connect().await;
    let bytes = vec![7; 12 << 20];
    let blob = client.upload("w", &bytes).await.unwrap();
    let request = v1::DownloadBlobRequest { workspace_id: "w".to_owned(), sha256: blob.sha256.clone() };
    let mut download = client.files.download_blob(request).await.unwrap().into_inner();
    let mut watched = Vec::new();
    for service in ["", "aptix.v1.BatchService"] {
        let request = HealthCheckRequest { service: service.to_owned() };
        let mut states = HealthClient::new(client.channel.clone()).watch(request).await.unwrap().into_inner();
        assert_eq!(next(&mut states).await.unwrap().status(), ServingStatus::Serving);
        watched.push(states);
    }
    let mut uploading = client.clone();
    let (parts, stream) = mpsc::channel(4);
    parts.send(part_start("w", v1::BlobRef { size_bytes: 9, ..blob })).await.unwrap();
    let upload = uploading.files.upload_blob(ReceiverStream::new(stream));
    let shutdown = async {
        // The upload has begun once its first message was taken.
        let _room = parts.reserve_many(4).await.unwrap();
        server.tell_to_stop();
    };
    let (answer, ()) = tokio::join!(upload, shutdown);
    assert_refused(answer.map(drop), Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
    for mut states in watched {
        assert_eq!(next(&mut states).await.unwrap().status(), ServingStatus::NotServing);
        assert_refused(next(&mut states).await, Code::Unavailable, "UNAVAILABLE", "SHUTTING_DOWN");
    }
    let mut came = 0;
    while let Some(part) = download.message().await.unwrap() {
        came += part.chunk.len();
    }
    assert_eq!(came, bytes.len());
    drop((download, client, uploading));
    // From here on time passes while nothing else is to be done, so that the server waits for nothing if none passes.
    tokio::time::pause();
    let begun = tokio::time::Instant::now();
    server.stop().await.unwrap();
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
}

/// A call whose message never comes is ended at its deadline.
#[tokio::test]
async fn a_call_has_a_deadline() {
    let server = Server::with(Options { call_deadline: Duration::from_millis(50), ..Options::default() });
    let client = server.connect().await;
    let (sender, stream) = mpsc::channel::<v1::SubmitBatchRequest>(1);
    let method = "/aptix.v1.BatchService/SubmitBatch";
    let call = by_hand::<_, v1::SubmitBatchResponse>(&client.channel, method, ReceiverStream::new(stream));
    let status = call.await.map(drop).unwrap_err();
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

/// Health and both versions of reflection answer.
#[tokio::test]
async fn health_and_reflection_answer() {
    let server = Server::start();
    let client = server.connect().await;
    for service in ["", "aptix.v1.BatchService", "aptix.v1.AgentService", "aptix.v1.FileService"] {
        assert_eq!(health(client.channel.clone(), service).await.unwrap(), ServingStatus::Serving, "{service}");
    }
    let names = [v1_services(client.channel.clone()).await, v1alpha_services(client.channel.clone()).await];
    for service in ["aptix.v1.BatchService", "aptix.v1.AgentService", "aptix.v1.FileService", "grpc.health.v1.Health"] {
        for names in &names {
            assert!(names.iter().any(|name| name == service), "{service} in {names:?}");
        }
    }
}

/// The services that gRPC reflection lists in the given version of its package.
macro_rules! listed_services {
    ($name:ident, $version:ident) => {
        async fn $name(channel: Channel) -> Vec<String> {
            use pb::server_reflection_request::MessageRequest;
            use pb::server_reflection_response::MessageResponse;
            use tonic_reflection::pb::$version as pb;

            let message_request = Some(MessageRequest::ListServices(String::new()));
            let ask = pb::ServerReflectionRequest { host: String::new(), message_request };
            let mut reflection = pb::server_reflection_client::ServerReflectionClient::new(channel);
            let mut answers = reflection.server_reflection_info(tokio_stream::iter([ask])).await.unwrap().into_inner();
            match next(&mut answers).await.unwrap().message_response {
                Some(MessageResponse::ListServicesResponse(list)) => {
                    list.service.into_iter().map(|service| service.name).collect()
                }
                other => panic!("reflection lists the services, not {other:?}"),
            }
        }
    };
}

listed_services!(v1_services, v1);
listed_services!(v1alpha_services, v1alpha);
