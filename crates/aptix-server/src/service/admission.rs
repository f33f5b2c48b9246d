//! What every call passes first: a bounded number of calls at one time, a bounded weight of large messages, a deadline
//! for each, and turns on the processors that are fair between connections.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};
use tracing::instrument::WithSubscriber;

use super::body::{Ending, Gathered, InPieces, Weighed};
use super::entries;
use super::status::{status, too_late};
use crate::cpu_pool::CpuPool;
use crate::dispatcher::refusal::{Refusal, broken_off, exhausted};
use crate::turns::Caller;

/// How long a call waits for its turn before it is turned away.
const PATIENCE: Duration = Duration::from_secs(2);

/// Bytes of large messages that are decoded and worked on at one time: in memory a message takes many times its size.
const LARGE_BYTES: usize = 16 << 20;

/// How a call is admitted.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// One message, one answer: it keeps its place until the answer has gone out.
    Unary,
    /// A stream of answers, of which the dispatcher has a bounded number: it keeps its place until they begin.
    Stream,
    /// An upload, of which the dispatcher has a bounded number too, and which has deadlines of its own.
    Upload,
    /// Whether the server is well is answered however busy it is.
    Health,
    /// Another service that may stream for as long as the server runs.
    Foreign,
}

impl Kind {
    fn of(path: &str) -> Self {
        match path {
            "/aptix.v1.FileService/UploadBlob" => Self::Upload,
            "/aptix.v1.FileService/DownloadBlob"
            | "/aptix.v1.BatchService/WatchBatch"
            | "/aptix.v1.AgentService/WatchBatches" => Self::Stream,
            _ if path.starts_with("/grpc.health.") => Self::Health,
            _ if path.starts_with("/aptix.v1.") => Self::Unary,
            _ => Self::Foreign,
        }
    }
}

/// Admits calls.
#[derive(Clone, Debug)]
pub struct Admission {
    slots: Arc<Semaphore>,
    limit: usize,
    deadline: Duration,
    /// What large messages may weigh together, in bytes.
    weight: Arc<Semaphore>,
    /// Where calls are decoded, worked on and answered.
    pool: CpuPool,
    closing: CancellationToken,
    /// Gives places back.
    returning: TaskTracker,
}

impl Admission {
    /// Admits so many calls at one time, and gives each this long until its answer begins. Once `closing` is cancelled,
    /// the streams of other services end.
    #[must_use]
    pub fn new(limit: usize, deadline: Duration, closing: CancellationToken) -> Self {
        Self {
            slots: Arc::new(Semaphore::new(limit)),
            limit,
            deadline,
            weight: Arc::new(Semaphore::new(LARGE_BYTES)),
            pool: CpuPool::new(),
            closing,
            returning: TaskTracker::new(),
        }
    }

    async fn slot(&self) -> Result<OwnedSemaphorePermit, Response<Body>> {
        match timeout(PATIENCE, Arc::clone(&self.slots).acquire_owned()).await {
            Ok(Ok(slot)) => Ok(slot),
            _ => Err(status(Refusal::denied(exhausted("calls", self.limit))).into_http()),
        }
    }

    /// Does a call's work in the caller's turns.
    async fn work<E: Send + 'static>(
        &self,
        caller: Caller,
        work: impl Future<Output = Result<Response<Body>, E>> + Send + 'static,
    ) -> Result<Response<Body>, E> {
        self.pool.run(caller, work.with_current_subscriber()).await.unwrap_or_else(|error| {
            tracing::error!(%error, "a call broke off");
            Ok(status(Refusal::denied(broken_off())).into_http())
        })
    }

    /// The answer, with the call's place until all of it was taken: but no longer than another deadline, so that whoever
    /// takes nothing does not keep others out.
    fn held(&self, answer: Response<Body>, place: impl Send + 'static) -> Response<Body> {
        let taken = CancellationToken::new();
        let (deadline, all) = (self.deadline, taken.clone());
        self.returning.spawn(async move {
            let _ = timeout(deadline, all.cancelled()).await;
            drop(place);
        });
        answer.map(|body| Body::new(InPieces::new(body, Some(taken.drop_guard()))))
    }

    fn ending(&self, answer: Response<Body>) -> Response<Body> {
        answer.map(|body| Body::new(Ending::new(body, self.closing.clone())))
    }

    fn too_late(&self) -> Response<Body> {
        too_late(&format!("the call had no answer after {} seconds", self.deadline.as_secs())).into_http()
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

async fn admit<S>(admission: Admission, mut inner: S, request: Request<Body>) -> Result<Response<Body>, S::Error>
where
    S: Service<Request<Body>, Response = Response<Body>> + Send + 'static,
    S::Future: Send,
    S::Error: Send + 'static,
{
    let kind = Kind::of(request.uri().path());
    let caller = request.extensions().get().copied().unwrap_or(Caller(0));
    let slot = match kind {
        Kind::Upload => return admission.work(caller, async move { inner.call(request).await }).await,
        Kind::Health => None,
        Kind::Unary | Kind::Stream | Kind::Foreign => match admission.slot().await {
            Ok(slot) => Some(slot),
            Err(refused) => return Ok(refused),
        },
    };
    let weight = Arc::new(OnceLock::new());
    let answer = async {
        match kind {
            Kind::Unary => {
                let (head, body) = request.into_parts();
                let body = Body::new(Weighed::new(body, Arc::clone(&admission.weight), weight.clone()));
                let message = Gathered::message(body).await;
                let work = async move {
                    if let Err(refused) = entries::check(head.uri.path(), message.bytes()) {
                        return Ok(refused.into_http());
                    }
                    let (head, body) = inner.call(Request::from_parts(head, Body::new(message))).await?.into_parts();
                    Ok(Response::from_parts(head, Body::new(Gathered::answer(body).await)))
                };
                admission.work(caller, work).await
            }
            Kind::Stream => {
                let (head, body) = request.into_parts();
                let request = Request::from_parts(head, Body::new(Gathered::message(body).await));
                admission.work(caller, async move { inner.call(request).await }).await
            }
            // Their messages are small, and none of them is worked on.
            Kind::Health | Kind::Foreign | Kind::Upload => inner.call(request).await,
        }
    };
    let Ok(answer) = timeout(admission.deadline, answer).await else {
        return Ok(admission.too_late());
    };
    let answer = answer?;
    Ok(match kind {
        Kind::Unary => admission.held(answer, (slot, weight)),
        Kind::Health | Kind::Foreign => admission.ending(answer),
        Kind::Stream => answer.map(|body| Body::new(InPieces::new(body, None))),
        Kind::Upload => answer,
    })
}
