//! What every call passes first: a bounded number of calls at one time, and a deadline for each.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::sync::Semaphore;
use tokio::time::timeout;
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

use super::status::{status, too_late};
use crate::dispatcher::refusal::{Refusal, exhausted};

/// An upload has its own deadlines: its length depends on its size.
const UNTIMED: &str = "/aptix.v1.FileService/UploadBlob";

/// How long a call waits for its turn before it is turned away.
const PATIENCE: Duration = Duration::from_secs(2);

/// Admits calls.
#[derive(Clone, Debug)]
pub struct Admission {
    slots: Arc<Semaphore>,
    limit: usize,
    deadline: Duration,
}

impl Admission {
    /// Admits so many calls at one time, and gives each this long until its answer begins.
    #[must_use]
    pub fn new(limit: usize, deadline: Duration) -> Self {
        Self { slots: Arc::new(Semaphore::new(limit)), limit, deadline }
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
        let mut inner = std::mem::replace(&mut self.inner, copy);
        Box::pin(async move {
            let Ok(Ok(_slot)) = timeout(PATIENCE, admission.slots.acquire_owned()).await else {
                return Ok(status(Refusal::denied(exhausted("calls", admission.limit))).into_http());
            };
            if request.uri().path() == UNTIMED {
                return inner.call(request).await;
            }
            match timeout(admission.deadline, inner.call(request)).await {
                Ok(response) => response,
                Err(_) => {
                    let seconds = admission.deadline.as_secs();
                    Ok(too_late(&format!("the call had no answer after {seconds} seconds")).into_http())
                }
            }
        })
    }
}
