//! Records spans and exports them over OTLP, as the standard variables of the environment say (`OTEL_EXPORTER_OTLP_ENDPOINT`,
//! `OTEL_TRACES_SAMPLER`, `OTEL_SERVICE_NAME` and so on).
//!
//! A collector that is slow or away delays nothing: spans wait in a queue of bounded length, a thread of its own exports them, and
//! what the queue has no room for is dropped.

use std::sync::OnceLock;
use std::time::Duration;

use aptix_model::trace_parent::TraceParent;
use opentelemetry::trace::{
    Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt as _, TraceFlags, TraceId, TraceState,
    Tracer as _, TracerProvider as _,
};
use opentelemetry::{Context, KeyValue};
use opentelemetry_otlp::{ExporterBuildError, SpanExporter};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};

use crate::kind::Kind;

/// Where to export to; either is enough.
const ENDPOINTS: [&str; 2] = ["OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"];

/// How long the end of the process waits for the last spans to be exported.
const LAST: Duration = Duration::from_secs(1);

/// The provider of this process and its tracer. It is never dropped: dropping it would wait for the collector.
static TRACES: OnceLock<(SdkTracerProvider, SdkTracer)> = OnceLock::new();

/// Begins to record, if the environment names an endpoint.
///
/// # Errors
/// When what the environment says of the endpoint is unusable.
pub(crate) fn begin(service: &'static str) -> Result<(), ExporterBuildError> {
    let is_given = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_off = std::env::var_os("OTEL_SDK_DISABLED").is_some_and(|value| value.eq_ignore_ascii_case("true"));
    if is_off || !ENDPOINTS.into_iter().any(is_given) {
        return Ok(());
    }
    let exporter = SpanExporter::builder().with_tonic().build()?;
    let resource = Resource::builder().with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    let resource = if is_given("OTEL_SERVICE_NAME") { resource } else { resource.with_service_name(service) };
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource.build()).build();
    let tracer = provider.tracer("aptix");
    let _ = TRACES.set((provider, tracer));
    Ok(())
}

/// Exports what waits, and nothing from then on. A collector that is slow or away is left behind.
pub(crate) async fn finish() {
    let Some((provider, _)) = TRACES.get() else { return };
    let ended = tokio::task::spawn_blocking(|| provider.shutdown_with_timeout(LAST));
    if !matches!(tokio::time::timeout(LAST, ended).await, Ok(Ok(Ok(())))) {
        tracing::warn!("the collector did not take the last spans in time");
    }
}

/// A span that is recorded, unless its trace is not sampled.
#[derive(Debug)]
pub(crate) struct Recorded(opentelemetry_sdk::trace::Span);

/// Begins a span, with its place in the trace; `None` if this process records none.
pub(crate) fn record(name: &'static str, kind: Kind, parent: Option<TraceParent>) -> Option<(Recorded, TraceParent)> {
    let (_, tracer) = TRACES.get()?;
    let below = parent.map_or_else(Context::new, |parent| Context::new().with_remote_span_context(remote(parent)));
    let builder = tracer.span_builder(name).with_kind(match kind {
        Kind::Internal => SpanKind::Internal,
        Kind::Client => SpanKind::Client,
        Kind::Server => SpanKind::Server,
        Kind::Producer => SpanKind::Producer,
        Kind::Consumer => SpanKind::Consumer,
    });
    let span = tracer.build_with_context(builder, &below);
    let context = span.span_context();
    let place = TraceParent {
        trace: u128::from_be_bytes(context.trace_id().to_bytes()),
        span: u64::from_be_bytes(context.span_id().to_bytes()),
        is_sampled: context.is_sampled(),
    };
    let is_valid = context.is_valid();
    is_valid.then_some((Recorded(span), place))
}

fn remote(parent: TraceParent) -> SpanContext {
    let flags = if parent.is_sampled { TraceFlags::SAMPLED } else { TraceFlags::default() };
    let (trace, span) = (TraceId::from(parent.trace), SpanId::from(parent.span));
    SpanContext::new(trace, span, flags, true, TraceState::default())
}

impl Recorded {
    /// Notes an attribute.
    pub(crate) fn note(&mut self, key: &'static str, value: &str) {
        if self.0.is_recording() {
            self.0.set_attribute(KeyValue::new(key, value.to_owned()));
        }
    }

    /// Notes a failure.
    pub(crate) fn fail(&mut self, reason: &'static str) {
        self.0.set_status(Status::error(reason));
    }
}
