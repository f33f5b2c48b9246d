//! What every connection passes first: a bounded number of them, and a deadline for the first bytes. When the system has
//! no more connections to give, the server waits instead of asking again and again.

use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tokio_stream::{Stream, StreamExt};
use tonic::transport::server::Connected;

use crate::turns::Caller;

/// How long a new connection may take to say that it speaks HTTP/2.
const PREFACE_TIME: Duration = Duration::from_secs(10);

/// Bytes with which it says so.
const PREFACE_BYTES: usize = 24;

/// How long the server waits after a connection could not be taken.
const BACK_OFF: Duration = Duration::from_millis(100);

/// The connections that come in, at most `limit` at one time.
pub(crate) fn admitted<C, E>(
    incoming: impl Stream<Item = Result<C, E>> + Send,
    limit: usize,
) -> impl Stream<Item = io::Result<Admitted<C>>> + Send
where
    C: Send,
    E: Into<Box<dyn std::error::Error + Send + Sync>> + Send,
{
    let places = Arc::new(Semaphore::new(limit));
    let failing = Arc::new(AtomicBool::new(false));
    let taken = Arc::new(AtomicU64::new(0));
    let admitted = incoming.then(move |connection| {
        let (places, failing, taken) = (Arc::clone(&places), Arc::clone(&failing), Arc::clone(&taken));
        async move {
            match connection {
                Ok(connection) => {
                    failing.store(false, Ordering::Relaxed);
                    let place = places.acquire_owned().await.ok()?;
                    let caller = Caller(taken.fetch_add(1, Ordering::Relaxed));
                    Some(Ok(Admitted { connection, caller, silence: Some(Silence::new()), _place: place }))
                }
                Err(error) => {
                    if !failing.swap(true, Ordering::Relaxed) {
                        let cause = error.into();
                        tracing::error!(cause, "connections cannot be taken; is the limit of open files too low?");
                    }
                    sleep(BACK_OFF).await;
                    None
                }
            }
        }
    });
    admitted.filter_map(|connection| connection)
}

/// A connection that has its place.
pub(crate) struct Admitted<C> {
    connection: C,
    /// Whoever it belongs to: without names, every connection is a caller of its own.
    caller: Caller,
    /// Present until the preface came.
    silence: Option<Silence>,
    _place: OwnedSemaphorePermit,
}

struct Silence {
    came: usize,
    over: Pin<Box<Sleep>>,
}

impl Silence {
    fn new() -> Self {
        Self { came: 0, over: Box::pin(sleep(PREFACE_TIME)) }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Admitted<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.connection).poll_read(context, buffer);
        let Some(silence) = &mut self.silence else { return read };
        silence.came += buffer.filled().len() - before;
        if silence.came >= PREFACE_BYTES {
            self.silence = None;
        } else if read.is_pending() && silence.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Admitted<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.connection).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

impl<C: Connected> Connected for Admitted<C> {
    type ConnectInfo = Caller;

    fn connect_info(&self) -> Caller {
        self.caller
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, duplex};

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_is_dropped_and_one_that_speaks_is_kept() {
        for (said, kept) in [(0, false), (23, false), (24, true)] {
            let (mut ours, theirs) = duplex(64);
            let mut connections = std::pin::pin!(admitted(tokio_stream::iter([Ok::<_, io::Error>(theirs)]), 1));
            let mut connection = connections.next().await.unwrap().unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut ours, &vec![b'x'; said]).await.unwrap();
            let mut bytes = vec![0; said];
            connection.read_exact(&mut bytes).await.unwrap();
            let next = tokio::time::timeout(2 * PREFACE_TIME, connection.read_u8()).await;
            assert_eq!(next.is_err(), kept, "after {said} bytes: {next:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_to_accept_is_waited_out_and_places_are_bounded() {
        let failures = (0..10).map(|_| Err(io::Error::other("too many open files")));
        let incoming = failures.chain([Ok(duplex(1).0), Ok(duplex(1).0)]);
        let mut connections = std::pin::pin!(admitted(tokio_stream::iter(incoming), 1));
        let begun = tokio::time::Instant::now();
        let first = connections.next().await.unwrap().unwrap();
        assert!(begun.elapsed() >= 10 * BACK_OFF);
        assert!(tokio::time::timeout(Duration::from_secs(60), connections.next()).await.is_err());
        drop(first);
        assert!(connections.next().await.unwrap().is_ok());
    }
}
