//! Observes each call from its headers until its answer is handed over: for the metrics, and for the access log.

use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use aptix_model::id::{BatchId, TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::wire::method::Method;
use http_body::{Body as HttpBody, Frame, SizeHint};
use tokio_util::bytes::Bytes;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tonic_types::StatusExt as _;
use tracing::Level;

use super::bare_status::{self, Made};
use super::body::Item;
use super::head;
use crate::identity::Principal;
use crate::metrics::{self, Entered, Metric};

/// The target of the access log.
const ACCESS: &str = "aptix_server::access";

/// What becomes known of a call while it is worked on, for the access log.
#[derive(Clone, Debug, Default)]
pub(super) struct CallFacts(Arc<Mutex<Facts>>);

#[derive(Debug, Default)]
struct Facts {
    token: Option<TokenName>,
    workspace: Option<WorkspaceId>,
    batch: Option<BatchId>,
}

impl CallFacts {
    fn lock(&self) -> MutexGuard<'_, Facts> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes who calls.
    pub(super) fn note_caller(&self, caller: &Principal) {
        self.lock().token = caller.name().cloned();
    }

    /// Notes the workspace that the call's message names, if that is a valid id.
    pub(super) fn note_workspace(&self, workspace: Option<WorkspaceId>) {
        self.lock().workspace = workspace;
    }
}

/// An answer that is about this batch.
pub(super) fn about<T>(batch_id: Option<String>, answer: T) -> tonic::Response<T> {
    let mut answer = tonic::Response::new(answer);
    if let Some(batch) = batch_id.and_then(|id| id.parse::<BatchId>().ok()) {
        answer.extensions_mut().insert(batch);
    }
    answer
}

/// A call that has not ended. Dropped before its code is known, it was given up by its caller.
pub(super) struct ObservedCall {
    method: &'static str,
    /// Whether it may go on for as long as the server runs, so that its duration is no latency.
    is_long_lived: bool,
    began: Instant,
    /// How long its caller waits.
    timeout: Option<Duration>,
    received: Arc<AtomicU64>,
    sent: u64,
    ended: Option<(Code, Option<Status>)>,
    /// Absent unless the access log is written.
    facts: Option<CallFacts>,
    _in_flight: Entered<1>,
}

impl ObservedCall {
    /// Begins to observe a call.
    pub(super) fn begin(is_long_lived: bool, mut request: Request<Body>) -> (Self, Request<Body>) {
        let method = label(request.uri().path());
        let received = Arc::<AtomicU64>::default();
        let facts = tracing::enabled!(target: ACCESS, Level::DEBUG).then(CallFacts::default);
        if let Some(facts) = facts.clone() {
            request.extensions_mut().insert(facts);
        }
        let call = Self {
            method,
            is_long_lived,
            began: Instant::now(),
            timeout: head::timeout(request.headers()),
            received: Arc::clone(&received),
            sent: 0,
            ended: None,
            facts,
            _in_flight: Metric::CallsInFlight.enter([method]),
        };
        (call, request.map(|inner| Body::new(CountedBody { inner, received })))
    }

    /// Observes its answer. A status without a reason is given one.
    pub(super) fn answer(mut self, mut answer: Response<Body>) -> Response<Body> {
        bare_status::complete(answer.headers_mut(), Made::BeforeWork);
        // A refusal has its code in its headers, and no trailers.
        self.end(answer.headers());
        if let (Some(facts), Some(batch)) = (&self.facts, answer.extensions().get::<BatchId>()) {
            facts.lock().batch = Some(*batch);
        }
        answer.map(|inner| Body::new(ObservedAnswer { inner, call: Some(self) }))
    }

    /// Takes the code from headers or trailers, if they have one.
    fn end(&mut self, headers: &HeaderMap) {
        if let Some(code) = headers.get(Status::GRPC_STATUS) {
            let code = Code::from_bytes(code.as_bytes());
            let status = (code != Code::Ok).then(|| Status::from_header_map(headers)).flatten();
            self.ended = Some((code, status));
        }
    }
}

impl ObservedCall {
    /// Writes the call's line in the access log.
    fn log(&self, code: Code, took: Duration) {
        let Some(facts) = &self.facts else { return };
        let facts = facts.lock();
        tracing::debug!(
            target: ACCESS,
            Method = self.method,
            Code = word(code),
            TokenName = facts.token.as_ref().map(display),
            WorkspaceId = facts.workspace.as_ref().map(display),
            BatchId = facts.batch.as_ref().map(display),
            ReceivedBytes = self.received.load(Ordering::Relaxed),
            SentBytes = self.sent,
            DurationMs = u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
        );
    }
}

impl Drop for ObservedCall {
    fn drop(&mut self) {
        let took = self.began.elapsed();
        let given_up = || match self.timeout {
            Some(timeout) if took >= timeout => Code::DeadlineExceeded,
            _ => Code::Cancelled,
        };
        let (code, status) = self.ended.take().unwrap_or_else(|| (given_up(), None));
        Metric::Calls.add(&[self.method, word(code)], 1.0);
        Metric::ReceivedBytes.add(&[self.method], metrics::number(self.received.load(Ordering::Relaxed)));
        Metric::SentBytes.add(&[self.method], metrics::number(self.sent));
        if !self.is_long_lived {
            Metric::CallSeconds.took(&[self.method], took);
        }
        self.log(code, took);
        if let Some(status) = status {
            let info = status.get_details_error_info();
            let reason = info.and_then(|info| Reason::from_code(&info.reason)).map_or("OTHER", Reason::code);
            Metric::Refusals.add(&[reason], 1.0);
        }
    }
}

/// The body of a call, whose bytes are counted.
struct CountedBody {
    inner: Body,
    received: Arc<AtomicU64>,
}

impl HttpBody for CountedBody {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        let frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        self.received.fetch_add(length(frame.as_ref()), Ordering::Relaxed);
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

/// The body of an answer. The call has ended with its trailers, its error, or its last frame.
struct ObservedAnswer {
    inner: Body,
    call: Option<ObservedCall>,
}

impl HttpBody for ObservedAnswer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        let mut frame = ready!(Pin::new(&mut self.inner).poll_frame(context));
        if let Some(trailers) = frame.as_mut().and_then(|frame| frame.as_mut().ok()?.trailers_mut()) {
            bare_status::complete(trailers, Made::AfterWork);
        }
        if let Some(call) = &mut self.call {
            call.sent += length(frame.as_ref());
            match &frame {
                Some(Ok(frame)) => {
                    if let Some(trailers) = frame.trailers_ref() {
                        call.end(trailers);
                    }
                }
                Some(Err(status)) => call.ended = Some((status.code(), Some(status.clone()))),
                None => call.ended = call.ended.take().or(Some((Code::Unknown, None))),
            }
            if call.ended.is_some() && frame.as_ref().is_none_or(|frame| !matches!(frame, Ok(frame) if frame.is_data()))
            {
                self.call = None;
            }
        }
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.inner.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.inner.size_hint()
    }
}

fn length(frame: Option<&Result<Frame<Bytes>, Status>>) -> u64 {
    let data = frame.and_then(|frame| frame.as_ref().ok()?.data_ref());
    data.map_or(0, |bytes| bytes.len() as u64)
}

/// What a method is called in metrics: its service and its own name; the same for all that are not of the protocol.
fn label(path: &str) -> &'static str {
    let ours = Method::from_path(path).and_then(|method| method.path().strip_prefix("/aptix.v1."));
    ours.unwrap_or(match path {
        "/grpc.health.v1.Health/Check" => "Health/Check",
        "/grpc.health.v1.Health/Watch" => "Health/Watch",
        _ => "other",
    })
}

/// The name of a code in the protocol.
const fn word(code: Code) -> &'static str {
    match code {
        Code::Ok => "OK",
        Code::Cancelled => "CANCELLED",
        Code::Unknown => "UNKNOWN",
        Code::InvalidArgument => "INVALID_ARGUMENT",
        Code::DeadlineExceeded => "DEADLINE_EXCEEDED",
        Code::NotFound => "NOT_FOUND",
        Code::AlreadyExists => "ALREADY_EXISTS",
        Code::PermissionDenied => "PERMISSION_DENIED",
        Code::ResourceExhausted => "RESOURCE_EXHAUSTED",
        Code::FailedPrecondition => "FAILED_PRECONDITION",
        Code::Aborted => "ABORTED",
        Code::OutOfRange => "OUT_OF_RANGE",
        Code::Unimplemented => "UNIMPLEMENTED",
        Code::Internal => "INTERNAL",
        Code::Unavailable => "UNAVAILABLE",
        Code::DataLoss => "DATA_LOSS",
        Code::Unauthenticated => "UNAUTHENTICATED",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_label_comes_from_a_caller() {
        assert_eq!(label("/aptix.v1.BatchService/SubmitBatch"), "BatchService/SubmitBatch");
        assert_eq!(label("/aptix.v1.BatchService/Invented"), "other");
        assert_eq!(label("/grpc.health.v1.Health/Check"), "Health/Check");
    }
}
