//! One batch in one trace: real processes export their spans to a collector of the test, and the trace goes on after a restart.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use aptix_model::wire::v1;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use opentelemetry_proto::tonic::collector::trace::v1::trace_service_server::{TraceService, TraceServiceServer};
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::any_value::Value;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::{Request, Response, Status};

use crate::processes::{Machine, Running, Server, connected, create_request, eventually};
use crate::skip::skip;

const TRACE: &str = "4bf92f3577b34da6a3ce929d0e0e4736";
const CALLER: &str = "00f067aa0ba902b7";

/// A span as it came, with the name of its service.
#[derive(Clone, Debug)]
struct Found {
    service: String,
    name: String,
    trace: String,
    id: String,
    parent: String,
    attributes: Vec<(String, String)>,
}

type Spans = Arc<Mutex<Vec<Found>>>;

/// Takes what is exported, or keeps every exporter waiting.
struct Collector {
    spans: Spans,
    is_stuck: bool,
}

#[tonic::async_trait]
impl TraceService for Collector {
    async fn export(
        &self,
        request: Request<ExportTraceServiceRequest>,
    ) -> Result<Response<ExportTraceServiceResponse>, Status> {
        if self.is_stuck {
            return std::future::pending().await;
        }
        for resource in request.into_inner().resource_spans {
            let attributes = resource.resource.unwrap_or_default().attributes;
            let service = attributes.into_iter().map(text).find(|(key, _)| key == "service.name").unwrap().1;
            let spans = resource.scope_spans.into_iter().flat_map(|scope| scope.spans);
            self.spans.lock().unwrap().extend(spans.map(|span| Found {
                service: service.clone(),
                name: span.name,
                trace: hex(&span.trace_id),
                id: hex(&span.span_id),
                parent: hex(&span.parent_span_id),
                attributes: span.attributes.into_iter().map(text).collect(),
            }));
        }
        Ok(Response::new(ExportTraceServiceResponse::default()))
    }
}

fn text(attribute: opentelemetry_proto::tonic::common::v1::KeyValue) -> (String, String) {
    let value = match attribute.value.and_then(|value| value.value) {
        Some(Value::StringValue(text)) => text,
        other => format!("{other:?}"),
    };
    (attribute.key, value)
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A collector that listens, for as long as the runtime lives.
fn collector(is_stuck: bool) -> (Runtime, String, Spans) {
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build().unwrap();
    let spans = Spans::default();
    let service = TraceServiceServer::new(Collector { spans: Arc::clone(&spans), is_stuck });
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let server = tonic::transport::Server::builder().add_service(service);
    runtime.spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
    (runtime, url, spans)
}

fn server(machine: &Machine, url: &str) -> Server {
    machine.server_that(|command| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url).env("OTEL_BSP_SCHEDULE_DELAY", "10");
    })
}

fn agent(machine: &Machine, server: &Server, url: &str) -> Running {
    machine.agent_in(server, "auto", |command| {
        command.env("OTEL_EXPORTER_OTLP_ENDPOINT", url).env("OTEL_BSP_SCHEDULE_DELAY", "10");
    })
}

/// Submits a batch under this `traceparent`.
fn submit(server: &Server, request: &str, text: &str, traceparent: &str) -> v1::Batch {
    let (runtime, channel) = connected(server);
    let message = v1::SubmitBatchRequest { workspace_id: "demo".to_owned(), ..create_request(request, text) };
    let mut call = Request::new(message);
    call.metadata_mut().insert("traceparent", traceparent.parse().unwrap());
    let mut batches = BatchServiceClient::new(channel);
    runtime.block_on(batches.submit_batch(call)).unwrap().into_inner().batch.unwrap()
}

/// From the caller's span down to the report, over a restart of the server; nothing of the content or the path is in it.
#[test]
fn one_batch_is_one_trace() {
    if !aptix_telemetry::CAN_RECORD {
        return skip("the programs are built without the feature otel");
    }
    let (_collecting, url, spans) = collector(false);
    let machine = Machine::new();
    let first = server(&machine, &url);
    let batch = submit(&first, "r1", "what nobody else reads\n", &format!("00-{TRACE}-{CALLER}-01"));
    assert!(batch.traceparent.starts_with(&format!("00-{TRACE}-")) && !batch.traceparent.contains(CALLER));
    assert!(first.terminate());
    let second = server(&machine, &url);
    let mut serving = agent(&machine, &second, &url);
    eventually("the batch is applied", || machine.ask(&second, "show", &[&batch.batch_id]).0["state"] == "APPLIED");
    assert_eq!(serving.terminate(), Some(0));
    assert!(second.terminate());

    let found = spans.lock().unwrap().clone();
    let found: Vec<_> = found.into_iter().filter(|span| span.trace == TRACE).collect();
    let by_id: HashMap<_, _> = found.iter().map(|span| (span.id.as_str(), span)).collect();
    let mut lines: Vec<_> = found
        .iter()
        .map(|span| {
            let parent = by_id.get(span.parent.as_str()).map_or(span.parent.as_str(), |parent| parent.name.as_str());
            format!("{parent} > {} {}", span.service, span.name)
        })
        .collect();
    lines.sort();
    let expected = [
        "00f067aa0ba902b7 > aptix-server SubmitBatch",
        "SubmitBatch > aptix-server send",
        "SubmitBatch > aptix-server store",
        "apply > aptix-agent approve",
        "apply > aptix-agent commit",
        "apply > aptix-agent plan",
        "apply > aptix-agent report",
        "report > aptix-server ReportBatch",
        "send > aptix-agent apply",
    ];
    assert_eq!(lines, expected);
    let of_batch = |span: &&Found| span.attributes.iter().any(|(_, value)| value.contains(&batch.batch_id));
    assert_eq!(found.iter().filter(of_batch).count(), 5, "{found:#?}");
    let all = format!("{found:?}");
    assert!(!all.contains("a.txt") && !all.contains("nobody else"), "{all}");
}

/// A trace that its caller does not record is recorded by no one, and passed on all the same.
#[test]
fn a_trace_that_is_not_sampled_is_passed_on_alone() {
    let (_collecting, url, spans) = collector(false);
    let machine = Machine::new();
    let serving = server(&machine, &url);
    let mut working = agent(&machine, &serving, &url);
    let batch = submit(&serving, "r1", "text\n", &format!("00-{TRACE}-{CALLER}-00"));
    let passed = &batch.traceparent;
    assert!(passed.starts_with(&format!("00-{TRACE}-")) && passed.ends_with("-00"), "{passed}");
    eventually("the batch is applied", || machine.ask(&serving, "show", &[&batch.batch_id]).0["state"] == "APPLIED");
    assert_eq!(working.terminate(), Some(0));
    assert!(serving.terminate());
    assert!(spans.lock().unwrap().iter().all(|span| span.trace != TRACE));
}

/// A collector that never answers, and one that is not there, delay neither a batch nor the end of a program.
#[test]
fn a_collector_that_is_stuck_or_away_is_left_behind() {
    let (stuck, url, _) = collector(true);
    for url in [url.as_str(), "http://127.0.0.1:1"] {
        let machine = Machine::new();
        let serving = server(&machine, url);
        let mut working = agent(&machine, &serving, url);
        let batch = submit(&serving, "r1", "text\n", &format!("00-{TRACE}-{CALLER}-01"));
        eventually("the batch is applied", || {
            machine.ask(&serving, "show", &[&batch.batch_id]).0["state"] == "APPLIED"
        });
        assert_eq!(working.terminate(), Some(0));
        assert!(serving.terminate());
    }
    stuck.shutdown_background();
}
