//! Accepts connections: a bounded number of them, of which the idle give way to newcomers, and a deadline for
//! the first bytes. When the system has no more connections to give, the server waits instead of asking again and again.

mod failed_handshakes;
mod opening;
mod transport;

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

use self::failed_handshakes::FailedHandshakes;
use self::opening::Opening;
use self::transport::Transport;
use crate::caller::{Caller, Peer, Peers, Share};
use crate::listen;
use crate::room::{Place, Room};

/// How long a new connection may take to send the preface of HTTP/2, or the whole head of a request of HTTP/1.1, after the handshake
/// of TLS where there is one.
const PREFACE_TIME: Duration = Duration::from_secs(10);

/// How long the server waits after a connection could not be taken, and before it looks for room again.
const BACK_OFF: Duration = Duration::from_millis(50);

/// Connections that wait for room at one time, in all and of one caller.
const WAITING: usize = 8;
const WAITING_OF_CALLER: usize = 4;

/// Handshakes of TLS at one time. Each may hold a message of 64 KiB that is not complete.
const HANDSHAKES: Share = Share { connection: 1, ..Share::of(1024) };

/// How long a handshake may take when there are too many.
const HANDSHAKE_PATIENCE: Duration = Duration::from_secs(1);

/// How long a connection waits for room before it is closed.
const WAIT: Duration = Duration::from_secs(3);

/// The connections that come in, as many as there is room for. One that finds no room waits a while for another to become
/// idle, and is closed if none does; those of other callers pass it meanwhile.
pub(crate) struct Incoming<I, C> {
    incoming: Pin<Box<I>>,
    room: Arc<Room>,
    /// Of handshakes.
    handshakes: Arc<Room>,
    failures: Arc<FailedHandshakes>,
    peers: Peers,
    waiting: VecDeque<Waiting<C>>,
    /// When to look for room again, and when to accept again after a failure.
    again: Pin<Box<Sleep>>,
    /// Cancelled once the server ends: connections that have not sent their preface by then are closed.
    stopped: CancellationToken,
    failed: Option<Pin<Box<Sleep>>>,
    failing: bool,
}

struct Waiting<C> {
    connection: C,
    peer: Peer,
    until: Instant,
}

impl<I, C: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static> Incoming<I, C> {
    pub(crate) fn new(incoming: I, room: Arc<Room>, peers: Peers, stopped: CancellationToken) -> Self {
        let again = Box::pin(sleep(BACK_OFF));
        Self {
            incoming: Box::pin(incoming),
            room,
            handshakes: Room::new(HANDSHAKES, HANDSHAKE_PATIENCE),
            failures: Arc::default(),
            peers,
            waiting: VecDeque::new(),
            again,
            stopped,
            failed: None,
            failing: false,
        }
    }

    fn admit(&self, waiting: Waiting<C>) -> Result<Admitted<C>, Waiting<C>> {
        let Ok(place) = self.room.take_connection(&waiting.peer) else { return Err(waiting) };
        let connection = match listen::tls(&waiting.connection.connect_info()) {
            None => Transport::Plain(waiting.connection),
            Some(tls) => match self.handshakes.take(&waiting.peer, 1) {
                Ok(handshake) => {
                    let (peer, failures) = (waiting.peer.clone(), Arc::clone(&self.failures));
                    Transport::secured(waiting.connection, &tls, peer, failures, handshake)
                }
                Err(_) => return Err(waiting),
            },
        };
        let peer = waiting.peer;
        let cut = Box::pin(peer.cut.clone().cancelled_owned());
        Ok(Admitted { connection, peer, silence: Some(Silence::until(&self.stopped)), cut, _place: place })
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
    C: Connected + AsyncRead + AsyncWrite + Unpin + Send + 'static,
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
    connection: Transport<C>,
    peer: Peer,
    /// Present until the preface came, or the first head.
    silence: Option<Silence>,
    /// Ready once the connection is to be closed.
    cut: Pin<Box<WaitForCancellationFutureOwned>>,
    _place: Place,
}

/// A connection that has not said what it wants.
struct Silence {
    opening: Opening,
    over: Pin<Box<Sleep>>,
    stopped: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl Silence {
    fn until(stopped: &CancellationToken) -> Self {
        let over = Box::pin(sleep(PREFACE_TIME));
        Self { opening: Opening::default(), over, stopped: Box::pin(stopped.clone().cancelled_owned()) }
    }

    /// Ready once it has lasted too long, or the server ends.
    fn poll_end(&mut self, context: &mut Context<'_>) -> Poll<io::ErrorKind> {
        match self.stopped.as_mut().poll(context) {
            Poll::Ready(()) => Poll::Ready(io::ErrorKind::ConnectionAborted),
            Poll::Pending => self.over.as_mut().poll(context).map(|()| io::ErrorKind::TimedOut),
        }
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

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> Admitted<C> {
    /// What came of waiting, unless the preface has not come in time. A handshake of TLS waits in whoever reads or writes first.
    fn in_time<T>(&mut self, context: &mut Context<'_>, waited: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if let Some(silence) = self.silence.as_mut().filter(|_| waited.is_pending())
            && let Poll::Ready(why) = silence.poll_end(context)
        {
            return Poll::Ready(Err(self.connection.ended(why)));
        }
        waited
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncRead for Admitted<C> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        let before = buffer.filled().len();
        let read = Pin::new(&mut self.connection).poll_read(context, buffer);
        let came = buffer.filled().get(before..).unwrap_or_default();
        if !came.is_empty() {
            self.peer.activity.moved();
        }
        let Some(silence) = &mut self.silence else { return read };
        if silence.opening.take(came)? {
            self.silence = None;
            self.peer.activity.spoke();
        }
        self.in_time(context, read)
    }
}

impl<C: AsyncRead + AsyncWrite + Unpin + Send + 'static> AsyncWrite for Admitted<C> {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.connection).poll_write(context, bytes);
        self.in_time(context, written)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.check(context)?;
        let written = Pin::new(&mut self.connection).poll_write_vectored(context, parts);
        self.in_time(context, written)
    }

    fn is_write_vectored(&self) -> bool {
        self.connection.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        let flushed = Pin::new(&mut self.connection).poll_flush(context);
        self.in_time(context, flushed)
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
        let (preface, head) = (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".as_slice(), b"GET / HTTP/1.1\r\n\r\n".as_slice());
        for (said, kept) in
            [(&[][..], false), (&preface[..23], false), (preface, true), (&head[..17], false), (head, true)]
        {
            let (mut ours, theirs) = duplex(64);
            let mut connections = std::pin::pin!(Incoming::new(
                tokio_stream::iter([Ok::<_, io::Error>(theirs)]),
                room(1),
                peers(),
                CancellationToken::new()
            ));
            let mut connection = connections.next().await.unwrap().unwrap();
            tokio::io::AsyncWriteExt::write_all(&mut ours, said).await.unwrap();
            let mut bytes = vec![0; said.len()];
            connection.read_exact(&mut bytes).await.unwrap();
            let next = tokio::time::timeout(2 * PREFACE_TIME, connection.read_u8()).await;
            assert_eq!(next.is_err(), kept, "after {said:?}: {next:?}");
        }
    }

    /// A head that comes a byte at a time: its connection is dropped in time, and its place is free again.
    #[tokio::test(start_paused = true)]
    async fn a_slow_head_is_dropped_and_keeps_no_place() {
        let (mut ours, theirs) = duplex(64);
        let (_next, waiting) = duplex(64);
        let room = room(1);
        let incoming = tokio_stream::iter([theirs, waiting].map(Ok::<_, io::Error>));
        let mut connections =
            std::pin::pin!(Incoming::new(incoming, Arc::clone(&room), peers(), CancellationToken::new()));
        let mut connection = connections.next().await.unwrap().unwrap();
        let begun = Instant::now();
        let ended = loop {
            tokio::io::AsyncWriteExt::write_all(&mut ours, b"x").await.unwrap();
            if let Ok(Err(ended)) = tokio::time::timeout(BACK_OFF, connection.read_exact(&mut [0, 0])).await {
                break ended;
            }
        };
        assert_eq!(ended.kind(), io::ErrorKind::TimedOut);
        assert!(begun.elapsed() < PREFACE_TIME + Duration::from_secs(1), "{:?}", begun.elapsed());
        drop(connection);
        assert!(tokio::time::timeout(WAIT, connections.next()).await.unwrap().is_some(), "there is room again");
    }

    #[tokio::test(start_paused = true)]
    async fn a_failure_to_accept_is_waited_out_and_an_idle_connection_gives_way() {
        let failures = (0..10).map(|_| Err(io::Error::other("too many open files")));
        let ours: Vec<_> = (0..3).map(|_| duplex(1)).collect();
        let (mut _theirs, ours): (Vec<_>, Vec<_>) = ours.into_iter().unzip();
        let incoming = failures.chain(ours.into_iter().map(Ok));
        let mut connections =
            std::pin::pin!(Incoming::new(tokio_stream::iter(incoming), room(1), peers(), CancellationToken::new()));
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
