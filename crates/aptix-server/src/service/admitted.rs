//! The service in front of all others: it takes a call's message, admits the call, and bounds its answer.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::wire::method::Method;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

use super::admission::Admission;
use super::body::{Ending, Gathered};
use super::entries;
use super::inflow::{Messages, RefusedMessage};
use super::outflow::Answer;
use super::received::Received;
use super::scope;
use super::status::status;
use crate::caller::{Caller, Peer};
use crate::dispatcher::refusal::{Refusal, full, shutting_down};
use crate::identity::{Principal, Registry, unauthenticated};
use crate::ticket::{Asker, TicketBox};

/// How a call is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message, one answer.
    Unary,
    /// A stream of bytes, of which the dispatcher has a bounded number.
    Download,
    /// A stream of answers without an end: it keeps its place among the calls until they begin.
    Stream,
    /// An agent's connection: a stream of answers that begins once its first message has come whole.
    Link,
    /// An upload, of which the dispatcher has a bounded number too, and which has deadlines of its own.
    Upload,
    /// Whether the server is well is answered however busy it is.
    Health,
    /// The same, as a stream.
    HealthStream,
    /// Another service that may stream for as long as the server runs.
    Foreign,
}

impl Kind {
    fn of(path: &str) -> Self {
        match path {
            "/aptix.v1.FileService/UploadBlob" => Self::Upload,
            "/aptix.v1.FileService/DownloadBlob" => Self::Download,
            "/aptix.v1.AgentService/Serve" => Self::Link,
            "/aptix.v1.BatchService/WatchBatch" | "/aptix.v1.WorkspaceService/WatchWorkspace" => Self::Stream,
            "/grpc.health.v1.Health/Watch" => Self::HealthStream,
            _ if path.starts_with("/grpc.health.") => Self::Health,
            _ if path.starts_with("/aptix.v1.") => Self::Unary,
            _ => Self::Foreign,
        }
    }

    /// Whether it may go on for as long as the server runs.
    const fn is_long_lived(self) -> bool {
        matches!(self, Self::Link | Self::Stream | Self::HealthStream | Self::Foreign)
    }
}

impl<S> Layer<S> for Admission {
    type Service = Admitted<S>;

    fn layer(&self, inner: S) -> Admitted<S> {
        Admitted { admission: self.clone(), inner }
    }
}

/// A service that is reached through admission.
#[derive(Clone, Debug)]
pub struct Admitted<S> {
    admission: Admission,
    inner: S,
}

impl<S> Service<Request<Body>> for Admitted<S>
where
    S: Service<Request<Body>, Response = Response<Body>> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let admission = self.admission.clone();
        // The one that was polled ready answers; its copy waits for the next call.
        let copy = self.inner.clone();
        let inner = std::mem::replace(&mut self.inner, copy);
        Box::pin(admit(admission, inner, request))
    }
}

async fn admit<S>(admission: Admission, mut inner: S, mut request: Request<Body>) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    let kind = Kind::of(request.uri().path());
    let peer = match request.extensions().get::<Peer>() {
        Some(peer) => peer.clone(),
        None => {
            let peer = admission.peers.meet(Caller::Local, CancellationToken::new());
            request.extensions_mut().insert(peer.clone());
            peer
        }
    };
    let caller = match identify(&admission.registry, kind, peer.caller, &request) {
        Ok(caller) => caller,
        Err(refused) => return Ok(status(Refusal::denied(refused)).into_http()),
    };
    request.extensions_mut().insert(caller.clone());
    let method = request.uri().clone();
    if kind == Kind::Upload {
        let uploaded = admission.work(&peer, &method, async move { inner.call(request).await });
        return tokio::select! {
            biased;
            () = caller.ended().cancelled_owned() => Ok(status(Refusal::denied(unauthenticated())).into_http()),
            uploaded = uploaded => uploaded,
        };
    }
    let long_lived = match kind.is_long_lived().then(|| admission.long_lived.take(&peer, 1)).transpose() {
        Ok(place) => place,
        Err(found) => return Ok(status(Refusal::denied(full("long-lived calls", found))).into_http()),
    };
    let ticket = TicketBox::default();
    let counted = !matches!(kind, Kind::Health | Kind::HealthStream);
    request.extensions_mut().insert(Asker { peer: peer.clone(), ticket: Arc::clone(&ticket) });
    let request = request
        .map(|body| Body::new(Received::new(body, admission.clone(), peer.clone(), counted, Arc::clone(&ticket))));
    let answer = answer(&admission, kind, (&peer, &caller), inner, request);
    let Ok(answer) = timeout(admission.options.call_deadline, answer).await else {
        tracing::debug!(connection = peer.connection.0, method = method.path(), "call exceeded its deadline");
        return Ok(admission.too_late());
    };
    // The answer is made: others may be worked on.
    let ticket = ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
    let in_use = ticket.and_then(|ticket| ticket.in_use).unwrap_or_else(|| peer.activity.enter());
    let ends = matches!(kind, Kind::Health | Kind::HealthStream | Kind::Foreign);
    Ok(answer?.map(|body| {
        let body = if ends {
            Body::new(Ending::after_what_is_there(body, admission.closing.clone(), shutting_down))
        } else {
            body
        };
        let body =
            if kind == Kind::Unary { body } else { Body::new(Ending::at_once(body, caller.ended(), unauthenticated)) };
        Body::new(Answer::new(body, &admission.outflow, peer, (in_use, long_lived)))
    }))
}

/// Waits for the message as the kind of the call demands, and has the call answered.
async fn answer<S>(
    admission: &Admission,
    kind: Kind,
    (peer, caller): (&Peer, &Principal),
    mut inner: S,
    request: Request<Body>,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    let method = request.uri().clone();
    let (registry, caller, called) =
        (Arc::clone(&admission.registry), caller.clone(), Method::from_path(method.path()));
    let admitted = move |message: &[u8]| registry.check(&caller).and_then(|()| scope::check(&caller, called, message));
    match kind {
        Kind::Unary => {
            let (head, body) = request.into_parts();
            let message = Gathered::message(body).await;
            let began = Instant::now();
            let work = async move {
                let path = head.uri.path().to_owned();
                if let Err(failure) = admitted(message.first()) {
                    return Ok(status(Refusal::denied(failure)).into_http());
                }
                let checked = message.check_length().and_then(|()| entries::check(&path, message.bytes()));
                if let Err(failure) = checked {
                    log_bad_shape(&path, began.elapsed(), &failure);
                    return Ok(status(failure).into_http());
                }
                let (head, body) = inner.call(Request::from_parts(head, Body::new(message))).await?.into_parts();
                if has_code(&head.headers, Code::Unimplemented) {
                    return Ok(no_such_method(&path).into_http());
                }
                if is_undecoded(&head.headers) {
                    let failure = Failure::new(Reason::InvalidRequest, "the bytes are no message of this method");
                    log_bad_shape(&path, began.elapsed(), &failure);
                }
                Ok(Response::from_parts(head, Body::new(Gathered::answer(body).await)))
            };
            admission.work(peer, &method, work).await
        }
        Kind::Link => {
            let (mut head, body) = request.into_parts();
            let message = Gathered::first_message(body).await;
            if let Err(failure) = admitted(message.first()) {
                return Ok(status(Refusal::denied(failure)).into_http());
            }
            let body = Body::new(message);
            let refused = RefusedMessage::default();
            head.extensions.insert(refused.clone());
            let messages = Messages::new(body, admission.clone(), peer.clone(), refused);
            let request = Request::from_parts(head, Body::new(messages));
            admission.work(peer, &method, async move { inner.call(request).await }).await
        }
        Kind::Stream | Kind::Download => {
            let (head, body) = request.into_parts();
            let message = Gathered::message(body).await;
            if let Err(failure) = admitted(message.first()) {
                return Ok(status(Refusal::denied(failure)).into_http());
            }
            let request = Request::from_parts(head, Body::new(message));
            admission.work(peer, &method, async move { inner.call(request).await }).await
        }
        // Their messages are small, and no work is done for them.
        Kind::Health | Kind::HealthStream | Kind::Foreign | Kind::Upload => inner.call(request).await,
    }
}

/// Who makes a call, if they may make it. Calls about the server's health need no token.
fn identify(registry: &Registry, kind: Kind, caller: Caller, request: &Request<Body>) -> Result<Principal, Failure> {
    if matches!(kind, Kind::Health | Kind::HealthStream) {
        return Ok(Principal::Anyone(CancellationToken::new()));
    }
    let caller = registry.authenticate(caller, request.headers())?;
    caller.check_method(Method::from_path(request.uri().path()))?;
    Ok(caller)
}

/// Whether the answer says that the call's message could not be decoded: every other refusal has details.
fn is_undecoded(headers: &HeaderMap) -> bool {
    !has_code(headers, Code::Ok) && !headers.contains_key(Status::GRPC_STATUS_DETAILS)
}

/// Whether the answer ends with this code already in its headers; an answer that goes on has none there.
fn has_code(headers: &HeaderMap, code: Code) -> bool {
    headers.get(Status::GRPC_STATUS).map_or(Code::Ok, |found| Code::from_bytes(found.as_bytes())) == code
}

/// The refusal of a method that this version does not have, for callers of an earlier or a later one.
fn no_such_method(path: &str) -> Status {
    let version = env!("CARGO_PKG_VERSION");
    Status::unimplemented(format!(
        "aptix-server {version} has no method {path}\nhint: run a client of version {version}, or update the older of the two"
    ))
}

/// Logs a call that is refused before its message is decoded. What it is about is not known.
fn log_bad_shape(path: &str, elapsed: Duration, failure: &Failure) {
    let method = path.rsplit('/').next().unwrap_or(path);
    let trace = Trace { tool: Some(method.to_owned()), ..Trace::new(Via::Server) };
    trace.log(elapsed, Event::CallRefused(std::slice::from_ref(failure)));
}
