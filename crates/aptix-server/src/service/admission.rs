//! What every call passes first: a bounded number of calls at one time, in all and for each caller and connection, a bounded
//! weight of large messages, a deadline for each, and turns on the processors that are fair between connections. A call takes its place when its message has come whole, and gives it
//! back when its answer is made: callers that neither send nor read hold up nobody.

use std::pin::Pin;
use std::sync::{Arc, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response, Uri};
use tower::{Layer, Service};
use tracing::instrument::WithSubscriber;

use super::body::{Ending, Gathered, LIGHT_BYTES, Received, Ticket, TicketBox};
use super::entries;
use super::outflow::{Answer, Outflow};
use super::status::{status, too_late};
use crate::caller::{self, Caller, Peer, Peers, Share};
use crate::cpu_pool::CpuPool;
use crate::dispatcher::refusal::{Refusal, broken_off, exhausted, full};
use crate::room::{Place, Room};
use crate::waited::Waited;

/// How long a call waits for its turn before it is turned away.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of large messages that are decoded and worked on at one time: in memory a message takes many times its size.
const LARGE_BYTES: usize = 2 * caller::WEIGHT;

/// Bytes of large messages that have not come whole yet.
const PARTIAL_BYTES: Share = Share { total: 128 << 20, caller: 96 << 20, connection: 64 << 20 };

/// How a call is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message, one answer.
    Unary,
    /// A stream of bytes, of which the dispatcher has a bounded number.
    Download,
    /// A stream of answers without an end: it keeps its place among the calls until they begin.
    Stream,
    /// An upload, of which the dispatcher has a bounded number too, and which has deadlines of its own.
    Upload,
    /// Whether the server is well is answered however busy it is.
    Health,
    /// The same, for as long as somebody wants to know.
    HealthStream,
    /// Another service that may stream for as long as the server runs.
    Foreign,
}

impl Kind {
    fn of(path: &str) -> Self {
        match path {
            "/aptix.v1.FileService/UploadBlob" => Self::Upload,
            "/aptix.v1.FileService/DownloadBlob" => Self::Download,
            "/aptix.v1.BatchService/WatchBatch" | "/aptix.v1.AgentService/WatchBatches" => Self::Stream,
            "/grpc.health.v1.Health/Watch" => Self::HealthStream,
            _ if path.starts_with("/grpc.health.") => Self::Health,
            _ if path.starts_with("/aptix.v1.") => Self::Unary,
            _ => Self::Foreign,
        }
    }

    /// Whether it may go on for as long as the server runs.
    const fn is_long_lived(self) -> bool {
        matches!(self, Self::Stream | Self::HealthStream | Self::Foreign)
    }
}

/// What admission holds calls to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Calls that are worked on at one time.
    pub calls: Share,
    /// Until a call's answer must have begun.
    pub deadline: Duration,
    /// Between two pieces of a call's message.
    pub silence: Duration,
    /// Long-lived calls.
    pub long_lived: Share,
    /// An incomplete message that makes no progress for this long gives way when there are too many.
    pub patience: Duration,
    /// An answer of which nothing was taken for this long is cut off.
    pub slow_after: Duration,
}

/// Admits calls.
#[derive(Clone, Debug)]
pub struct Admission {
    limits: Limits,
    slots: Arc<Semaphore>,
    /// What large messages may weigh together, in bytes.
    weight: Arc<Semaphore>,
    /// Where calls are decoded, worked on and answered.
    pool: CpuPool,
    partial: Arc<Room>,
    long_lived: Arc<Room>,
    outflow: Arc<Outflow>,
    /// Peers of connections that do not say whose they are.
    peers: Arc<Peers>,
    closing: CancellationToken,
}

impl Admission {
    /// Admits calls within these limits. Once `closing` is cancelled, the streams of other services end.
    #[must_use]
    pub fn new(limits: Limits, closing: CancellationToken) -> Self {
        Self {
            limits,
            slots: Arc::new(Semaphore::new(limits.calls.total)),
            weight: Arc::new(Semaphore::new(LARGE_BYTES)),
            pool: CpuPool::new(),
            partial: Room::new(PARTIAL_BYTES, limits.patience),
            long_lived: Room::new(limits.long_lived, Duration::MAX),
            outflow: Outflow::new(limits.patience, limits.slow_after),
            peers: Arc::new(Peers::new(limits.calls)),
            closing,
        }
    }

    /// Cuts off answers that nobody takes, for as long as it is polled.
    pub async fn watch_answers(&self) -> std::convert::Infallible {
        self.outflow.watch().await
    }

    /// How long a message may stop coming.
    pub(super) const fn silence(&self) -> Duration {
        self.limits.silence
    }

    /// Room for a large message that has not come whole.
    pub(super) fn partial(&self, peer: &Peer, bytes: usize) -> Result<Place, Status> {
        self.partial
            .take(peer, bytes)
            .map_err(|found| status(Refusal::denied(full("bytes of incomplete messages", found))))
    }

    /// What a call with a message of this length needs, if nobody waits for it.
    pub(super) fn at_once(&self, peer: &Peer, length: usize, counted: bool) -> Option<Ticket> {
        let mut ticket = Ticket { permits: Vec::new(), in_use: Some(peer.activity().enter()) };
        if counted {
            if length > LIGHT_BYTES {
                for weight in self.weights_of(peer) {
                    ticket.permits.push(weight.try_acquire_many_owned(weight_of(length)).ok()?);
                }
            }
            for slots in self.slots_of(peer) {
                ticket.permits.push(slots.try_acquire_owned().ok()?);
            }
        }
        Some(ticket)
    }

    /// The same, as soon as it is this call's turn.
    pub(super) async fn turn(&self, peer: &Peer, length: usize) -> Result<Ticket, Status> {
        let in_use = Some(peer.activity().enter());
        let refused = |_| status(Refusal::denied(exhausted("calls", self.limits.calls.total)));
        let mut permits = Vec::new();
        if length > LIGHT_BYTES {
            for weight in self.weights_of(peer) {
                permits.push(weight.acquire_many_owned(weight_of(length)).await.map_err(refused)?);
            }
        }
        let slots = async {
            let mut slots: Vec<OwnedSemaphorePermit> = Vec::new();
            for places in self.slots_of(peer) {
                slots.push(places.acquire_owned().await?);
            }
            Ok(slots)
        };
        match timeout(PATIENCE, slots).await {
            Ok(slots) => permits.extend(slots.map_err(refused)?),
            Err(_) => return Err(status(Refusal::denied(exhausted("calls", self.limits.calls.total)))),
        }
        Ok(Ticket { permits, in_use })
    }

    /// Narrow ones first: whoever waits for its own keeps nothing from others.
    fn slots_of(&self, peer: &Peer) -> [Arc<Semaphore>; 3] {
        [peer.calls(), peer.calls_of_caller(), Arc::clone(&self.slots)]
    }

    /// A connection's own first, so that nobody else waits behind its queue.
    fn weights_of(&self, peer: &Peer) -> [Arc<Semaphore>; 2] {
        [peer.weight(), Arc::clone(&self.weight)]
    }

    /// Does a call's work in its connection's turns.
    async fn work<E: Send + 'static>(
        &self,
        peer: &Peer,
        method: &Uri,
        work: impl Future<Output = Result<Response<Body>, E>> + Send + 'static,
    ) -> Result<Response<Body>, E> {
        let (connection, work) = (peer.connection(), work.with_current_subscriber());
        let waited = Waited::begin(connection, method);
        self.pool.run(connection, waited, work).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a call broke off");
            Ok(status(Refusal::denied(broken_off())).into_http())
        })
    }

    fn too_late(&self) -> Response<Body> {
        too_late(&format!("the call had no answer after {} seconds", self.limits.deadline.as_secs())).into_http()
    }
}

fn weight_of(length: usize) -> u32 {
    u32::try_from(length.min(caller::WEIGHT)).unwrap_or(u32::MAX)
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
    let method = request.uri().clone();
    if kind == Kind::Upload {
        return admission.work(&peer, &method, async move { inner.call(request).await }).await;
    }
    let long_lived = match kind.is_long_lived().then(|| admission.long_lived.take(&peer, 1)).transpose() {
        Ok(place) => place,
        Err(found) => return Ok(status(Refusal::denied(full("long-lived calls", found))).into_http()),
    };
    let ticket = TicketBox::default();
    let counted = !matches!(kind, Kind::Health | Kind::HealthStream);
    let request = request
        .map(|body| Body::new(Received::new(body, admission.clone(), peer.clone(), counted, Arc::clone(&ticket))));
    let answer = async {
        match kind {
            Kind::Unary => {
                let (head, body) = request.into_parts();
                let message = Gathered::message(body).await;
                let work = async move {
                    if let Err(refused) = entries::check(head.uri.path(), message.bytes()) {
                        return Ok(refused.into_http());
                    }
                    let (head, body) = inner.call(Request::from_parts(head, Body::new(message))).await?.into_parts();
                    Ok(Response::from_parts(head, Body::new(Gathered::answer(body).await)))
                };
                admission.work(&peer, &method, work).await
            }
            Kind::Stream | Kind::Download => {
                let (head, body) = request.into_parts();
                let request = Request::from_parts(head, Body::new(Gathered::message(body).await));
                admission.work(&peer, &method, async move { inner.call(request).await }).await
            }
            // Their messages are small, and none of them is worked on.
            Kind::Health | Kind::HealthStream | Kind::Foreign | Kind::Upload => inner.call(request).await,
        }
    };
    let Ok(answer) = timeout(admission.limits.deadline, answer).await else {
        tracing::debug!(connection = peer.connection().0, method = method.path(), "call exceeded its deadline");
        return Ok(admission.too_late());
    };
    // The answer is made: others may be worked on.
    let ticket = ticket.lock().unwrap_or_else(PoisonError::into_inner).take();
    let in_use = ticket.and_then(|ticket| ticket.in_use).unwrap_or_else(|| peer.activity().enter());
    let ends = matches!(kind, Kind::Health | Kind::HealthStream | Kind::Foreign);
    Ok(answer?.map(|body| {
        let body = if ends { Body::new(Ending::new(body, admission.closing.clone())) } else { body };
        Body::new(Answer::new(body, &admission.outflow, peer, (in_use, long_lived)))
    }))
}
