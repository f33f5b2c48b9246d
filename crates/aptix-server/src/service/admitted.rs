//! The service in front of all others: it takes a call's message, admits the call, and bounds its answer.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::reason::Reason;
use aptix_model::wire::method::Method;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::body::Body;
use tonic::codegen::http::{HeaderMap, Request, Response};
use tonic::{Code, Status};
use tower::{Layer, Service};

use super::admission::Admission;
use super::bare_status;
use super::body::{Ending, Gathered};
use super::checked::{check, identify, long_lived};
use super::entries;
use super::head::{self, Deadline, Over};
use super::inflow::{Messages, RefusedMessage};
use super::observed::{CallFacts, ObservedCall};
use super::outflow::Answer;
use super::received::Received;
use super::scope;
use super::status::status;
use crate::caller::{Caller, Peer};
use crate::dispatcher::refusal::{Refusal, shutting_down};
use crate::identity::{Principal, unauthenticated};
use crate::quota::{CallQuota, Limit};
use crate::ticket::{Asker, StreamHeld, TicketBox};

/// How a call is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message, one answer.
    Unary,
    /// A stream of bytes, of which its service has a bounded number.
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
            "/aptix.v1.FileService/DownloadBlob" | "/aptix.v1.AdminService/Backup" => Self::Download,
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
        let is_long_lived = Kind::of(request.uri().path()).is_long_lived();
        let deadline = Deadline::of(request.headers());
        let (call, request) = ObservedCall::begin(is_long_lived, request);
        Box::pin(async move {
            let answer = deadline.bound(admit(admission, inner, request, deadline)).await;
            Ok(call.answer(answer.unwrap_or_else(|Over| Ok(status(Refusal::denied(head::over())).into_http()))?))
        })
    }
}

/// Answers a call that is admitted. Its caller's time also bounds what the answer sends later.
async fn admit<S>(
    admission: Admission,
    inner: S,
    mut request: Request<Body>,
    deadline: Deadline,
) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    if let Err(refused) = head::check(&request) {
        return Ok(refused);
    }
    let kind = Kind::of(request.uri().path());
    let counted = !matches!(kind, Kind::Health | Kind::HealthStream);
    let (peer, caller) = match begin(&admission, counted, &mut request) {
        Ok(begun) => begun,
        Err(refused) => return Ok(refused.into_http()),
    };
    if kind == Kind::Upload {
        return upload(&admission, (&peer, &caller), inner, request).await;
    }
    let method = request.uri().clone();
    let long_lived = match kind.is_long_lived().then(|| long_lived(&admission, &peer)).transpose() {
        Ok(place) => place,
        Err(refused) => return Ok(status(refused).into_http()),
    };
    let ticket = TicketBox::default();
    request.extensions_mut().insert(Asker { peer: peer.clone(), ticket: Arc::clone(&ticket) });
    request.extensions_mut().insert(deadline);
    let request = request
        .map(|body| Body::new(Received::new(body, admission.clone(), peer.clone(), counted, Arc::clone(&ticket))));
    let stream = long_lived.as_ref().map(|stream| Arc::clone(&stream.in_workspace));
    let answer = answer(&admission, (kind, stream), (&peer, &caller), inner, request);
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
            Body::new(Ending::after_what_is_there(body, admission.closing.clone().cancelled_owned(), shutting_down))
        } else {
            body
        };
        let body = match kind {
            Kind::Unary => body,
            _ => Body::new(Ending::at_once(body, caller.ended().cancelled_owned(), unauthenticated)),
        };
        let body = match deadline.sleep() {
            Some(over) if kind != Kind::Unary => Body::new(Ending::at_once(body, over, head::over)),
            _ => body,
        };
        Body::new(Answer::new(body, &admission.outflow, peer, (in_use, long_lived)))
    }))
}

/// Who makes a call, over which connection, and whether their token lets them make one more.
fn begin(admission: &Admission, needs_token: bool, request: &mut Request<Body>) -> Result<(Peer, Principal), Status> {
    let peer = match request.extensions().get::<Peer>() {
        Some(peer) => peer.clone(),
        None => admission.peers.meet(Caller::Local, CancellationToken::new()),
    };
    let caller = identify((&admission.registry, &admission.fleet), needs_token, &peer, request).map_err(
        |(refused, caller)| {
            admission.refused_calls.log(&peer, caller.as_ref(), request.uri().path(), &refused);
            status(Refusal::denied(refused))
        },
    )?;
    if let Some(facts) = request.extensions().get::<CallFacts>() {
        facts.note_caller(&caller);
    }
    let quota = match &caller {
        Principal::Owner | Principal::Member => CallQuota::default(),
        Principal::Anyone(_) | Principal::Holder(_) => admission.quotas.of_call(caller.name()),
    };
    let peer = match caller.number() {
        Some(token) => admission.peers.with_token(peer, token),
        None => peer,
    };
    let peer = Peer { quota, ..peer };
    request.extensions_mut().insert(caller.clone());
    request.extensions_mut().insert(peer.clone());
    peer.quota.call().map_err(status)?;
    Ok((peer, caller))
}

/// Has an upload taken, until its caller may not call any more.
async fn upload<S>(
    admission: &Admission,
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
    let _chunk = match peer.quota.take(Limit::BytesInFlight, CHUNK_BYTES) {
        Ok(chunk) => chunk,
        Err(over) => return Ok(status(over).into_http()),
    };
    let uploaded = admission.work(peer, (&method, None, 0), async move { inner.call(request).await });
    tokio::select! {
        biased;
        () = caller.ended().cancelled_owned() => Ok(status(Refusal::denied(unauthenticated())).into_http()),
        uploaded = uploaded => uploaded,
    }
}

/// Waits for the message as the kind of the call demands, and has the call answered.
async fn answer<S>(
    admission: &Admission,
    (kind, stream): (Kind, Option<StreamHeld>),
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
    let ticket = request.extensions().get::<Asker>().map(|asker| Arc::clone(&asker.ticket)).unwrap_or_default();
    let waited = || ticket.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map_or(0, |ticket| ticket.waited);
    let admitted = check(admission, (peer, caller), &request, stream);
    match kind {
        Kind::Unary => {
            let (head, body) = request.into_parts();
            let message = Gathered::message(body).await;
            let workspace = scope::workspace(Method::from_path(method.path()), message.first());
            let began = Instant::now();
            let work = async move {
                let path = head.uri.path().to_owned();
                if let Err(refused) = admitted(message.first()) {
                    return Ok(status(refused).into_http());
                }
                let checked = message.check_length().and_then(|()| entries::check(&path, message.bytes()));
                if let Err(failure) = checked {
                    log_bad_shape(&path, began.elapsed(), &failure);
                    return Ok(status(failure).into_http());
                }
                let (head, body) = inner.call(Request::from_parts(head, Body::new(message))).await?.into_parts();
                if Method::from_path(&path).is_none() {
                    return Ok(no_such_method(&path).into_http());
                }
                if let Some(bare) = undecoded(&head.headers) {
                    let failure = bare_status::undecoded(&bare);
                    log_bad_shape(&path, began.elapsed(), &failure);
                    return Ok(status(Refusal::denied(failure)).into_http());
                }
                Ok(Response::from_parts(head, Body::new(Gathered::answer(body).await)))
            };
            admission.work(peer, (&method, workspace, waited()), work).await
        }
        Kind::Link => {
            let (mut head, body) = request.into_parts();
            let message = Gathered::first_message(body).await;
            if let Err(refused) = admitted(message.first()) {
                return Ok(status(refused).into_http());
            }
            let body = Body::new(message);
            let refused = RefusedMessage::default();
            head.extensions.insert(refused.clone());
            let messages = Messages::new(body, admission.clone(), peer.clone(), refused);
            let request = Request::from_parts(head, Body::new(messages));
            admission.work(peer, (&method, None, waited()), async move { inner.call(request).await }).await
        }
        Kind::Stream | Kind::Download => {
            let (head, body) = request.into_parts();
            let message = Gathered::message(body).await;
            if let Err(refused) = admitted(message.first()) {
                return Ok(status(refused).into_http());
            }
            let request = Request::from_parts(head, Body::new(message));
            admission.work(peer, (&method, None, waited()), async move { inner.call(request).await }).await
        }
        // Their messages are small, and no work is done for them.
        Kind::Health | Kind::HealthStream | Kind::Foreign | Kind::Upload => inner.call(request).await,
    }
}

/// The status of a message that could not be decoded: every other refusal has details.
fn undecoded(headers: &HeaderMap) -> Option<Status> {
    if headers.contains_key(Status::GRPC_STATUS_DETAILS) {
        return None;
    }
    Status::from_header_map(headers).filter(|status| status.code() != Code::Ok)
}

/// The refusal of a method that this version does not have, for callers of an earlier or a later one.
fn no_such_method(path: &str) -> Status {
    let version = env!("CARGO_PKG_VERSION");
    let failure = Failure::new(Reason::Unimplemented, format!("aptix-server {version} has no method {path}"))
        .hint(format!("run a client of version {version}, or update the older of the two"));
    status(Refusal::denied(failure))
}

/// Logs a call that is refused before its message is decoded. What it is about is not known.
fn log_bad_shape(path: &str, elapsed: Duration, failure: &Failure) {
    let method = path.rsplit('/').next().unwrap_or(path);
    let trace = Trace { tool: Some(method.to_owned()), ..Trace::new(Via::Server) };
    trace.log(elapsed, Event::CallRefused(std::slice::from_ref(failure)));
}
