//! Spans of the work on a batch: its trace is passed from the caller through the server to the agent and back.
//!
//! With the feature `otel`, a program that called [`begin`] records its spans and exports them over OTLP. Without the feature, or
//! without an endpoint in the environment, nothing is recorded, and a [`Span`] passes on the trace that it is given.

#[cfg(feature = "otel")]
mod export;
mod kind;
mod span;

pub use self::kind::Kind;
pub use self::span::Span;

/// The attribute of a span with the id of the batch.
pub const BATCH: &str = "aptix.batch_id";

/// Whether spans can be recorded: the feature `otel`.
pub const CAN_RECORD: bool = cfg!(feature = "otel");

/// Exports the spans of this process from now on, as a service of this name, if the environment names an endpoint. To be called
/// once, in a Tokio runtime that runs until [`finish`] is done.
#[cfg(feature = "otel")]
pub fn begin(service: &'static str) {
    if let Err(error) = export::begin(service) {
        tracing::warn!(%error, "no spans are exported");
    }
}

/// Exports what was recorded, as far as the collector takes it within a second.
#[cfg(feature = "otel")]
pub async fn finish() {
    export::finish().await;
}

/// Does nothing: this program was built without the feature `otel`.
#[cfg(not(feature = "otel"))]
pub const fn begin(_service: &'static str) {}

/// Does nothing: this program was built without the feature `otel`.
#[cfg(not(feature = "otel"))]
pub async fn finish() {}
