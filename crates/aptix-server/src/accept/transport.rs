//! What a connection's calls are read from: the connection as it came, or TLS over it.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::FallibleAccept;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::WaitForCancellationFutureOwned;

use super::failed_handshakes::{Cause, FailedHandshakes};
use crate::caller::Peer;
use crate::room::Place;
use crate::tls::{Tls, names};

/// A connection, secured or not. A handshake is done by whoever reads or writes first: it delays no other connection.
pub(super) enum Transport<C> {
    Plain(C),
    Handshake(Box<Handshake<C>>),
    Secure(Box<TlsStream<C>>),
}

/// A handshake under way.
pub(super) struct Handshake<C> {
    accept: FallibleAccept<C>,
    /// Ready once it has to make room for another one.
    gave_way: Pin<Box<WaitForCancellationFutureOwned>>,
    peer: Peer,
    failures: Arc<FailedHandshakes>,
    _place: Place,
}

impl<C> Handshake<C> {
    fn fail(&self, cause: Cause, error: io::Error) -> io::Error {
        self.failures.count(self.peer.caller, cause, &error);
        error
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> Transport<C> {
    /// Secures a connection. The place is held until the handshake is done; then the names of the client's certificate are known.
    pub(super) fn secured(
        connection: C,
        tls: &Arc<Tls>,
        peer: Peer,
        failures: Arc<FailedHandshakes>,
        place: Place,
    ) -> Self {
        let gave_way = Box::pin(place.cut.clone().cancelled_owned());
        let accept = tls.acceptor().accept(connection).into_fallible();
        Self::Handshake(Box::new(Handshake { accept, gave_way, peer, failures, _place: place }))
    }

    /// The error of a connection that has not said what it wants, and may not any more.
    pub(super) fn ended(&self, why: io::ErrorKind) -> io::Error {
        match self {
            Self::Handshake(handshake) if why == io::ErrorKind::TimedOut => handshake.fail(Cause::TimedOut, why.into()),
            Self::Plain(_) | Self::Handshake(_) | Self::Secure(_) => why.into(),
        }
    }

    /// Goes on with the handshake, if there is one.
    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        if let Self::Handshake(handshake) = self {
            if handshake.gave_way.as_mut().poll(context).is_ready() {
                return Poll::Ready(Err(handshake.fail(Cause::GaveWay, io::ErrorKind::ConnectionAborted.into())));
            }
            let secure = ready!(Pin::new(&mut handshake.accept).poll(context));
            let secure = secure.map_err(|(error, connection)| {
                handshake.failures.part(connection);
                handshake.fail(Cause::of(&error), error)
            })?;
            if let Some([certificate, ..]) = secure.get_ref().1.peer_certificates() {
                // Set here alone, once.
                let _ = handshake.peer.names.set(names::names(certificate));
            }
            *self = Self::Secure(Box::new(secure));
        }
        Poll::Ready(Ok(()))
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Transport<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?;
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Secure(stream) => Pin::new(stream).poll_read(context, buffer),
            Self::Handshake(_) => Poll::Pending,
        }
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Transport<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(context))?;
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Secure(stream) => Pin::new(stream).poll_write(context, bytes),
            Self::Handshake(_) => Poll::Pending,
        }
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        ready!(self.poll_ready(context))?;
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Secure(stream) => Pin::new(stream).poll_write_vectored(context, parts),
            Self::Handshake(_) => Poll::Pending,
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Self::Plain(stream) => stream.is_write_vectored(),
            Self::Handshake(_) | Self::Secure(_) => true,
        }
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_ready(context))?;
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_flush(context),
            Self::Secure(stream) => Pin::new(stream).poll_flush(context),
            Self::Handshake(_) => Poll::Pending,
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Self::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Self::Secure(stream) => Pin::new(stream).poll_shutdown(context),
            // Nothing was said that would have to be ended.
            Self::Handshake(_) => Poll::Ready(Ok(())),
        }
    }
}
