//! Accepts connections: a bounded number of them, of which the idle give way to newcomers, and a deadline for
//! the first bytes. When the system has no more connections to give, the server waits instead of asking again and again.

use std::collections::VecDeque;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Instant, Sleep, sleep};
use tokio_stream::Stream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::transport::server::Connected;

use crate::caller::{Caller, Peer, Peers};
use crate::room::{Place, Room};

/// How long a new connection may take to send the preface of HTTP/2.
const PREFACE_TIME: Duration = Duration::from_secs(10);

/// Bytes of the preface.
const PREFACE_BYTES: usize = 24;

/// How long the server waits after a connection could not be taken, and before it looks for room again.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Connections that wait for room at one time, in all and of one caller.
const WAITING: usize = 8;
const WAITING_OF_CALLER: usize = 4;

/// How long a connection waits for room before it is closed.
const WAIT: Duration = Duration::from_secs(3);

/// The connections that come in, as many as there is room for. One that finds no room waits a while for another to become
/// idle, and is closed if none does; those of other callers pass it meanwhile.
pub(crate) struct Incoming<I, C> {
    incoming: Pin<Box<I>>,
    room: Arc<Room>,
    peers: Peers,
    waiting: VecDeque<Waiting<C>>,
    /// When to look for room again, and when to accept again after a failure.
    again: Pin<Box<Sleep>>,
    failed: Option<Pin<Box<Sleep>>>,
    failing: bool,
}

struct Waiting<C> {
    connection: C,
    peer: Peer,
    until: Instant,
}

impl<I, C: Connected> Incoming<I, C> {
    pub(crate) fn new(incoming: I, room: Arc<Room>, peers: Peers) -> Self {
        let again = Box::pin(sleep(BACK_OFF));
        Self {
            incoming: Box::pin(incoming),
            room,
            peers,
            waiting: VecDeque::new(),
            again,
            failed: None,
            failing: false,
        }
    }

    fn admit(&self, waiting: Waiting<C>) -> Result<Admitted<C>, Waiting<C>> {
        let Ok(place) = self.room.take_connection(&waiting.peer) else { return Err(waiting) };
        let Waiting { connection, peer, .. } = waiting;
        let cut = Box::pin(peer.cut.clone().cancelled_owned());
        Ok(Admitted { connection, peer, silence: Some(Silence::new()), cut, _place: place })
    }

    /// The first of those that wait for which there is room now.
    fn admit_waiting(&mut self) -> Option<Admitted<C>> {
        for _ in 0..self.waiting.len() {
            let waiting = self.waiting.pop_front()?;
            match self.admit(waiting) {
                Ok(admitted) => return Some(admitted),
                Err(waiting) if Instant::now() < waiting.until => self.waiting.push_back(waiting),
                Err(closed) => {
                    tracing::warn!(caller = ?closed.peer.caller, "a connection is closed: there is no room for it");
                }
            }
        }
        None
    }

    fn arrive(&mut self, connection: C) -> Option<Admitted<C>> {
        let peer = self.peers.meet(Caller::of(&connection.connect_info()), CancellationToken::new());
        let until = Instant::now() + WAIT;
        match self.admit(Waiting { connection, peer, until }) {
            Ok(admitted) => return Some(admitted),
            Err(waiting) => {
                let caller = waiting.peer.caller;
                let mut of_caller = self.waiting.iter().enumerate().filter(|(_, other)| other.peer.caller == caller);
                let oldest = of_caller.next().map(|(index, _)| index);
                // Who came in a burst before gives way to who comes after it.
                if of_caller.count() + 1 >= WAITING_OF_CALLER
                    && let Some(oldest) = oldest
                {
                    tracing::debug!(?caller, "a connection is closed: its caller has others that wait");
                    self.waiting.remove(oldest);
                }
                self.waiting.push_back(waiting);
            }
        }
        None
    }

    fn fail(&mut self, cause: &(dyn std::error::Error + 'static)) {
        if !std::mem::replace(&mut self.failing, true) {
            tracing::error!(cause, "connections cannot be taken; is the limit of open files too low?");
        }
        self.failed = Some(Box::pin(sleep(BACK_OFF)));
    }
}

impl<I, C, E> Stream for Incoming<I, C>
where
    I: Stream<Item = Result<C, E>>,
    C: Connected + Unpin,
    E: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Item = io::Result<Admitted<C>>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let this = &mut *self;
        loop {
            if let Some(admitted) = this.admit_waiting() {
                return Poll::Ready(Some(Ok(admitted)));
            }
            if !this.waiting.is_empty() && this.again.as_mut().poll(context).is_ready() {
                this.again.as_mut().reset(Instant::now() + BACK_OFF);
                continue;
            }
            if this.waiting.len() >= WAITING {
                return Poll::Pending;
            }
            if let Some(failed) = &mut this.failed {
                ready!(failed.as_mut().poll(context));
                this.failed = None;
            }
            match this.incoming.as_mut().poll_next(context) {
                Poll::Ready(Some(Ok(connection))) => {
                    this.failing = false;
                    if let Some(admitted) = this.arrive(connection) {
                        return Poll::Ready(Some(Ok(admitted)));
                    }
                }
                Poll::Ready(Some(Err(error))) => this.fail(&*error.into()),
                Poll::Ready(None) if this.waiting.is_empty() => return Poll::Ready(None),
                Poll::Ready(None) | Poll::Pending => return Poll::Pending,
            }
        }
    }
}

/// A connection that has its place.
pub(crate) struct Admitted<C> {
    connection: C,
    peer: Peer,
    /// Present until the preface came.
    silence: Option<Silence>,
    /// Ready once the connection is to be closed.
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: Place,
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

impl<C> Admitted<C> {
    /// Fails once the connection is to be closed, whether it waits to read or to write.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl<C: AsyncRead + Unpin> AsyncRead for Admitted<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.connection).poll_read(context, buffer);
        let came = buffer.filled().len() - before;
        if came > 0 {
            self.peer.activity.moved();
        }
        let Some(silence) = &mut self.silence else { return read };
        silence.came += came;
        if silence.came >= PREFACE_BYTES {
            self.silence = None;
            self.peer.activity.spoke();
        } else if read.is_pending() && silence.over.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        read
    }
}

impl<C: AsyncWrite + Unpin> AsyncWrite for Admitted<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.connection).poll_write(context, bytes)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.connection).poll_write_vectored(context, parts)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.connection).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.connection).poll_shutdown(context)
    }
}

impl<C: Connected> Connected for Admitted<C> {
    type ConnectInfo = Peer;

    fn connect_info(&self) -> Peer {
        self.peer.clone()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::Share;
    use tokio::io::{AsyncReadExt, duplex};
    use tokio_stream::StreamExt;

    fn room(total: usize) -> Arc<Room> {
        Room::new(Share { total, caller: total, connection: total }, Duration::from_secs(1))
    }

    fn peers() -> Peers {
        Peers::new(Share::of(4))
    }

    #[tokio::test(start_paused = true)]
    async fn a_connection_that_says_nothing_is_dropped_and_one_that_speaks_is_kept() {
        for (said, kept) in [(0, false), (23, false), (24, true)] {
            let (mut ours, theirs) = duplex(64);
            let mut connections =
                std::pin::pin!(Incoming::new(tokio_stream::iter([Ok::<_, io::Error>(theirs)]), room(1), peers()));
            let mut connection = connections.next().await.unwrap().unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut ours, &vec![b'x'; said]).await.unwrap();
            let mut bytes = vec![0; said];
            connection.read_exact(&mut bytes).await.unwrap();
            let next = tokio::time::timeout(2 * PREFACE_TIME, connection.read_u8()).await;
            assert_eq!(next.is_err(), kept, "after {said} bytes: {next:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_to_accept_is_waited_out_and_an_idle_connection_gives_way() {
        let failures = (0..10).map(|_| Err(io::Error::other("too many open files")));
        let ours: Vec<_> = (0..3).map(|_| duplex(1)).collect();
        let (mut _theirs, ours): (Vec<_>, Vec<_>) = ours.into_iter().unzip();
        let incoming = failures.chain(ours.into_iter().map(Ok));
        let mut connections = std::pin::pin!(Incoming::new(tokio_stream::iter(incoming), room(1), peers()));
        let begun = tokio::time::Instant::now();
        let mut first = connections.next().await.unwrap().unwrap();
        assert!(begun.elapsed() >= 10 * BACK_OFF);
        let mut second = connections.next().await.unwrap().unwrap();
        assert_eq!(first.read_u8().await.unwrap_err().kind(), io::ErrorKind::ConnectionAborted);
        let _in_use = second.peer.activity.enter();
        // The third finds no room, and the sender of connections has no more.
        assert!(connections.next().await.is_none());
        assert!(tokio::time::timeout(Duration::from_millis(1), second.read_u8()).await.is_err(), "it is in use");
    }
}
