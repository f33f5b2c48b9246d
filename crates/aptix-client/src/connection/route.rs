//! How bytes reach a server: over TCP, or over what a program that embeds the agent connects itself.

use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite};
use tonic::codegen::Service;
use tonic::transport::{Channel, Endpoint, Error, Uri};

/// A connected byte stream.
pub trait Wire: AsyncRead + AsyncWrite + Send + Unpin {}

impl<T: AsyncRead + AsyncWrite + Send + Unpin> Wire for T {}

/// A byte stream, once it is connected.
pub type Dialled = Pin<Box<dyn Future<Output = io::Result<Box<dyn Wire>>> + Send>>;

/// Connects byte streams to one server, which [`Server::url`](super::Server::url) then only names.
pub trait Dial: fmt::Debug + Send + Sync {
    /// Connects another stream. The future may be dropped before it is done.
    fn dial(&self) -> Dialled;
}

/// How bytes reach a server.
#[derive(Clone, Debug, Default)]
pub enum Route {
    /// Over TCP, to the host and port of its address.
    #[default]
    Tcp,
    /// Over the streams that this connects.
    Dialled(Arc<dyn Dial>),
}

impl Route {
    /// Opens a channel to the server of an endpoint.
    pub(super) async fn connect(&self, endpoint: &Endpoint) -> Result<Channel, Error> {
        match self {
            Self::Tcp => endpoint.connect().await,
            Self::Dialled(dial) => endpoint.connect_with_connector(Dialler(Arc::clone(dial))).await,
        }
    }
}

/// Connects as tonic asks for it.
struct Dialler(Arc<dyn Dial>);

impl Service<Uri> for Dialler {
    type Response = TokioIo<Box<dyn Wire>>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Box<dyn Wire>>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let dialled = self.0.dial();
        Box::pin(async move { Ok(TokioIo::new(dialled.await?)) })
    }
}
