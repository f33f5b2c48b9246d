//! gRPC-Web: pages of configured origins call the server from a browser, over HTTP/2 or HTTP/1.1, on the port of gRPC. `tonic-web`
//! translates the calls; this layer checks where a request comes from and answers what browsers ask first.

use std::pin::Pin;
use std::task::{Context, Poll};

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tonic::body::Body;
use tonic::codegen::http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, CONNECTION, CONTENT_TYPE, ORIGIN, VARY,
};
use tonic::codegen::http::{HeaderValue, Method, Request, Response, StatusCode, Version};
use tonic_web::{GrpcWebLayer, GrpcWebService};
use tower::{Layer, Service};

use super::head;
use crate::web_origins::WebOrigins;

/// Headers that a page may send with a call.
const SENT: &str = "authorization,content-type,grpc-timeout,x-grpc-web,x-user-agent";

/// Headers that a page may read of an answer.
const READ: &str = "grpc-status,grpc-message,grpc-status-details-bin";

/// Seconds for which a browser need not ask again.
const MAX_AGE: &str = "7200";

/// Lets pages of these origins call.
#[derive(Clone, Debug)]
pub struct WebLayer {
    origins: WebOrigins,
}

impl WebLayer {
    /// The layer, if there is any origin.
    #[must_use]
    pub fn of(origins: &WebOrigins) -> Option<Self> {
        (!origins.is_empty()).then(|| Self { origins: origins.clone() })
    }
}

impl<S> Layer<S> for WebLayer {
    type Service = Web<S>;

    fn layer(&self, inner: S) -> Web<S> {
        Web { origins: self.origins.clone(), inner: GrpcWebLayer::new().layer(inner) }
    }
}

/// A service that pages can call.
#[derive(Clone, Debug)]
pub struct Web<S> {
    origins: WebOrigins,
    inner: GrpcWebService<S>,
}

impl<S> Service<Request<Body>> for Web<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        Service::<Request<Body>>::poll_ready(&mut self.inner, context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_http1 = request.version() < Version::HTTP_2;
        let origin = match self.origin(&request) {
            Ok(origin) => origin,
            Err(refused) => return Box::pin(async move { Ok(finish(refused, None, is_http1)) }),
        };
        if let Some(answer) = answered_here(&request, origin.is_some()) {
            return Box::pin(async move { Ok(finish(answer, origin, is_http1)) });
        }
        let called = self.inner.call(request);
        Box::pin(async move { Ok(finish(called.await?, origin, is_http1)) })
    }
}

impl<S> Web<S> {
    /// The origin of the page that a request comes from; `None` if it comes from no browser.
    fn origin(&self, request: &Request<Body>) -> Result<Option<HeaderValue>, Response<Body>> {
        let mut named = request.headers().get_all(ORIGIN).iter();
        match (named.next(), named.next()) {
            (None, _) => Ok(None),
            (Some(origin), None) if self.origins.has(origin.as_bytes()) => Ok(Some(origin.clone())),
            _ => {
                let failure = Failure::new(Reason::PermissionDenied, "pages of this origin may not call the server")
                    .hint("the server's operator lists the origins that may: web.origins");
                Err(head::refused(StatusCode::FORBIDDEN, failure))
            }
        }
    }
}

/// The answer to a request that is no call: what a browser asks first, and what is neither gRPC-Web nor, over HTTP/2, for the
/// services to judge.
fn answered_here(request: &Request<Body>, is_of_page: bool) -> Option<Response<Body>> {
    let is_web = request.headers().get(CONTENT_TYPE).is_some_and(|content| is_grpc_web(content.as_bytes()));
    match *request.method() {
        Method::OPTIONS if is_of_page => Some(preflight()),
        Method::POST if is_web => None,
        _ if request.version() >= Version::HTTP_2 && !is_web => None,
        Method::POST => {
            let failure = Failure::new(Reason::InvalidRequest, "the content type is not application/grpc-web+proto");
            Some(head::refused(
                StatusCode::UNSUPPORTED_MEDIA_TYPE,
                failure.hint("over HTTP/1.1 call with gRPC-Web; gRPC needs HTTP/2"),
            ))
        }
        _ => {
            let failure = Failure::new(Reason::InvalidRequest, "the HTTP method is not POST");
            Some(head::refused(StatusCode::METHOD_NOT_ALLOWED, failure.hint("call with a gRPC-Web client")))
        }
    }
}

/// Whether this is one of the types of content that are translated.
fn is_grpc_web(content: &[u8]) -> bool {
    matches!(
        content,
        b"application/grpc-web"
            | b"application/grpc-web+proto"
            | b"application/grpc-web-text"
            | b"application/grpc-web-text+proto"
    )
}

/// What a browser asks before it lets a page call.
fn preflight() -> Response<Body> {
    let mut answer = Response::new(Body::empty());
    *answer.status_mut() = StatusCode::NO_CONTENT;
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
    headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, HeaderValue::from_static(SENT));
    headers.insert(ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static(MAX_AGE));
    answer
}

/// Lets the page read the answer. A connection of HTTP/1.1 has one call: only its first head is watched (`accept.rs`).
fn finish(mut answer: Response<Body>, origin: Option<HeaderValue>, is_http1: bool) -> Response<Body> {
    let headers = answer.headers_mut();
    headers.append(VARY, HeaderValue::from_static("origin"));
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
        headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static(READ));
    }
    if is_http1 {
        headers.insert(CONNECTION, HeaderValue::from_static("close"));
    }
    answer
}
