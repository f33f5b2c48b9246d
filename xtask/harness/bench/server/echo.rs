//! The least that a call takes: a server, in a process of its own, that decodes each message and answers with the same.

use std::convert::Infallible;
use std::future::{Ready, ready};
use std::process::Command;
use std::task::{Context, Poll};

use anyhow::Result;
use aptix_model::wire::v1;
use tokio::net::TcpListener;
use tokio_stream::wrappers::TcpListenerStream;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, Service, http};
use tonic::server::{Grpc, NamedService, UnaryService};
use tonic::transport::{Channel, Server};
use tonic::{Request, Response, Status};
use tonic_prost::ProstCodec;

use crate::process::Running;

/// The only method there is.
const METHOD: &str = "/bench.Echo/Echo";

/// Messages go both ways as they are: the same type decodes and encodes them.
type Codec = ProstCodec<v1::SubmitBatchRequest, v1::SubmitBatchRequest>;

#[derive(Clone)]
struct Echo;

impl NamedService for Echo {
    const NAME: &'static str = "bench.Echo";
}

impl UnaryService<v1::SubmitBatchRequest> for Echo {
    type Response = v1::SubmitBatchRequest;
    type Future = Ready<Result<Response<Self::Response>, Status>>;

    fn call(&mut self, request: Request<v1::SubmitBatchRequest>) -> Self::Future {
        ready(Ok(Response::new(request.into_inner())))
    }
}

impl Service<http::Request<Body>> for Echo {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<Self::Response, Infallible>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        Box::pin(async { Ok(Grpc::new(Codec::default()).unary(Self, request).await) })
    }
}

/// Serves until it is killed.
///
/// # Errors
/// When it cannot listen.
pub(crate) async fn serve() -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("listening on {}", listener.local_addr()?);
    let incoming = tokio_stream::StreamExt::map(TcpListenerStream::new(listener), |stream| {
        stream.and_then(|stream| stream.set_nodelay(true).map(|()| stream))
    });
    Ok(Server::builder().add_service(Echo).serve_with_incoming(incoming).await?)
}

/// Starts this program as such a server.
pub(crate) fn start() -> Result<Running> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("echo");
    Running::listen(command)
}

/// Sends a message and takes it back.
pub(crate) async fn call(channel: Channel, request: v1::SubmitBatchRequest) -> Result<()> {
    let mut client = tonic::client::Grpc::new(channel);
    client.ready().await?;
    client.unary(Request::new(request), http::uri::PathAndQuery::from_static(METHOD), Codec::default()).await?;
    Ok(())
}
