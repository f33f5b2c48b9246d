//! What is kept of a call with the batch that it stores: whose token it had, and the trace that it belongs to.

use aptix_model::record::Sent;
use aptix_model::trace_parent::TraceParent;
use aptix_telemetry::{BATCH, Kind, Span};
use tonic::metadata::MetadataMap;
use tonic::{Request, Status};

use crate::dispatcher::refusal::Refusal;
use crate::identity::Principal;

/// The header that places a call in a trace (W3C Trace Context).
const TRACEPARENT: &str = "traceparent";

/// Begins the span of a call of this method, below that which its caller names, and says what is kept of the call.
///
/// # Errors
/// When it did not come through admission.
pub(super) fn begin<T>(method: &'static str, request: &Request<T>) -> Result<(Span, Sent), Status> {
    let by = Principal::of(request)?.signature();
    let span = Span::begin(method, Kind::Server, parent(request.metadata()));
    let traceparent = span.context();
    Ok((span, Sent { by, traceparent }))
}

/// Notes in the span of a call which batch it is about, or why it was refused.
pub(super) fn end(mut span: Span, outcome: Result<&str, &Refusal>) {
    match outcome {
        Ok("") => {}
        Ok(batch) => span.note(BATCH, batch),
        Err(refusal) => span.fail(refusal.failures().first().map_or("", |failure| failure.reason.code())),
    }
}

/// The span that the caller names; `None` if it names none, several, or a malformed one.
pub(super) fn parent(metadata: &MetadataMap) -> Option<TraceParent> {
    let mut named = metadata.get_all(TRACEPARENT).iter();
    let parent = TraceParent::from_bytes(named.next()?.as_bytes())?;
    named.next().is_none().then_some(parent)
}
