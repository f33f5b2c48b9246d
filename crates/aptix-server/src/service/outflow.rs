//! The bytes of answers that wait to be taken. An answer goes out in pieces, one at a time, as its receiver takes them; what
//! is left of it is bounded over all answers, and one of which nothing is taken for too long is cut off.

use std::collections::HashMap;
use std::convert::Infallible;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Sleep, interval, sleep};
use tokio_util::bytes::Bytes;
use tonic::Status;
use tonic::body::Body;

use super::body::Item;
use super::status::status;
use crate::caller::{Activity, ConnectionId, InUse, Peer};
use crate::dispatcher::refusal::{Refusal, crowded};
use crate::dispatcher::stream::FeedEnd;
use crate::ticket::LongLived;

/// Bytes of an answer that are handed to the transport at once. No divisor of a usual window: a piece that meets a closed
/// window has begun to go out, so that its stream can still be cut off.
const PIECE_BYTES: usize = 65_521;

/// Bytes of an answer that is not counted: no more than its call takes besides.
const UNCOUNTED_BYTES: usize = 4 << 10;

/// Bytes of answers that wait to be taken, over all callers.
const WAITING_BYTES: usize = 64 << 20;

/// Bytes that the transport has of the slow answers of one connection, above which it is closed for the sake of others.
const CLOGGED_BYTES: usize = 1 << 20;

/// Bytes of answers that wait for room among these.
const CROWDED_BYTES: usize = 32 << 20;

/// How often an answer asks for room, and how long.
const ASK_AGAIN: Duration = Duration::from_millis(50);
const ASK_FOR: Duration = Duration::from_secs(5);

/// All answers on their way.
#[derive(Debug)]
pub(super) struct Outflow {
    /// An answer that makes no progress for this long gives way to others.
    patience: Duration,
    slow_after: Duration,
    answers: Mutex<Answers>,
}

#[derive(Debug, Default)]
struct Answers {
    next: u64,
    known: HashMap<u64, (Arc<Sending>, usize)>,
    waiting_bytes: usize,
    /// Answers that wait for room, with their bytes.
    crowded: HashMap<u64, (Arc<Sending>, usize)>,
}

impl Answers {
    fn of<'a>(&'a self, peer: &'a Peer) -> impl Iterator<Item = &'a Arc<Sending>> {
        let known = self.known.values().map(|(sending, _)| sending);
        known.filter(|sending| sending.peer.connection == peer.connection)
    }

    /// Whether the transport has much of answers of which this connection takes nothing.
    fn is_clogged(&self, peer: &Peer, patience: Duration) -> bool {
        let slow = self.of(peer).filter(|sending| sending.activity.idle() >= patience);
        slow.map(|sending| sending.lock().unsent).sum::<usize>() > CLOGGED_BYTES
    }

    /// Counts the answers of a connection that is closed no more; answers their bytes.
    fn let_go(&mut self, peer: &Peer) -> usize {
        let known = self.known.values_mut().filter(|(sending, _)| sending.peer.connection == peer.connection);
        let freed = known.map(|(_, weight)| std::mem::take(weight)).sum();
        self.waiting_bytes = self.waiting_bytes.saturating_sub(freed);
        freed
    }

    /// Whose answers wait for room with the most bytes, and how many.
    fn most_crowded(&self) -> Option<(usize, ConnectionId)> {
        let mut bytes = HashMap::<ConnectionId, usize>::new();
        for (sending, waiting) in self.crowded.values() {
            *bytes.entry(sending.peer.connection).or_default() += waiting;
        }
        bytes.into_iter().map(|(connection, bytes)| (bytes, connection)).max()
    }
}

impl Outflow {
    pub(super) fn new(patience: Duration, slow_after: Duration) -> Arc<Self> {
        Arc::new(Self { patience, slow_after, answers: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, Answers> {
        self.answers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks at intervals for answers that no receiver takes.
    pub(super) async fn watch(&self) -> Infallible {
        let mut ticks = interval((self.slow_after / 4).clamp(Duration::from_millis(20), Duration::from_secs(2)));
        loop {
            ticks.tick().await;
            self.sweep();
        }
    }

    /// Cuts off a stream of which nothing was taken for half as long again as a slow receiver may take, so that a reason
    /// that is still to be sent has its time; and its connection where that does not help.
    fn sweep(&self) {
        let answers = self.lock();
        for (sending, _) in answers.known.values() {
            let idle = sending.activity.idle();
            if idle < self.slow_after * 3 / 2 || !sending.is_stuck() {
                continue;
            }
            sending.cut();
            if idle >= self.slow_after * 3 && !sending.peer.cut.is_cancelled() {
                tracing::warn!(caller = ?sending.peer.caller, ?idle, "a connection is closed: it takes no answers");
                sending.peer.cut.cancel();
            }
        }
    }

    /// Lets an answer wait for room. When too many do, those of the connection that has the most give up.
    fn wait(&self, id: u64, sending: &Arc<Sending>, bytes: usize) {
        let mut answers = self.lock();
        answers.crowded.insert(id, (Arc::clone(sending), bytes));
        while answers.crowded.values().map(|(_, bytes)| bytes).sum::<usize>() > CROWDED_BYTES {
            let Some((_, most)) = answers.most_crowded() else { return };
            let last = answers.crowded.iter().filter(|(_, (sending, _))| sending.peer.connection == most);
            let Some(last) = last.map(|(id, _)| *id).max() else { return };
            if let Some((sending, _)) = answers.crowded.remove(&last) {
                sending.cut();
            }
        }
    }

    /// Makes an answer's share of what waits this large, if need be at the cost of those that make no progress.
    fn resize(&self, id: u64, bytes: usize) -> bool {
        let mut answers = self.lock();
        let answers = &mut *answers;
        answers.crowded.remove(&id);
        let Some((_, before)) = answers.known.get(&id) else { return true };
        let others = answers.waiting_bytes.saturating_sub(*before);
        let mut excess = (others + bytes).saturating_sub(WAITING_BYTES);
        while excess > 0 && bytes > 0 {
            let slow = answers.known.iter().filter(|(other, (_, weight))| **other != id && *weight > 0);
            let slow = slow.map(|(other, (sending, _))| (sending.activity.idle(), *other));
            let Some((_, other)) = slow.filter(|(idle, _)| *idle >= self.patience).max() else { return false };
            if let Some((sending, weight)) = answers.known.get_mut(&other) {
                sending.cut();
                let freed = std::mem::take(weight);
                excess = excess.saturating_sub(freed);
                answers.waiting_bytes = answers.waiting_bytes.saturating_sub(freed);
                // What the transport has of it is let go of with its connection alone.
                let peer = sending.peer.clone();
                if answers.is_clogged(&peer, self.patience) && !peer.cut.is_cancelled() {
                    tracing::debug!(caller = ?peer.caller, "a connection is closed: it takes too little of its answers");
                    peer.cut.cancel();
                    let freed = answers.let_go(&peer);
                    excess = excess.saturating_sub(freed);
                }
            }
        }
        if let Some((_, weight)) = answers.known.get_mut(&id) {
            let before = std::mem::replace(weight, bytes);
            answers.waiting_bytes = answers.waiting_bytes.saturating_sub(before) + bytes;
        }
        true
    }
}

/// What is left of one answer.
#[derive(Debug)]
struct Sending {
    peer: Peer,
    activity: Activity,
    left: Mutex<Left>,
}

#[derive(Debug, Default)]
struct Left {
    /// Of the message at hand.
    rest: Bytes,
    /// With the transport, and not sent.
    unsent: usize,
    cut: bool,
    waker: Option<Waker>,
}

impl Sending {
    fn lock(&self) -> MutexGuard<'_, Left> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_stuck(&self) -> bool {
        let left = self.lock();
        left.unsent > 0 || !left.rest.is_empty()
    }

    /// Lets go of what is left; the stream ends when it is polled next.
    fn cut(&self) {
        let mut left = self.lock();
        left.cut = true;
        left.rest = Bytes::new();
        if let Some(waker) = left.waker.take() {
            waker.wake();
        }
    }
}

/// Bytes that are with the transport; dropped once they were sent.
struct Piece {
    bytes: Bytes,
    sending: Arc<Sending>,
    known: Arc<Known>,
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.sending.activity.moved();
        let mut left = self.sending.lock();
        left.unsent = left.unsent.saturating_sub(self.bytes.len());
        let is_sent = left.unsent == 0 && left.rest.is_empty();
        let waker = left.waker.take();
        drop(left);
        if is_sent {
            self.known.outflow.resize(self.known.id, 0);
        }
        if let Some(waker) = waker {
            waker.wake();
        }
    }
}

/// An answer among those on their way: until it has ended and all of it was sent.
struct Known {
    outflow: Arc<Outflow>,
    id: u64,
}

impl Drop for Known {
    fn drop(&mut self) {
        let mut answers = self.outflow.lock();
        if let Some((_, weight)) = answers.known.remove(&self.id) {
            answers.waiting_bytes = answers.waiting_bytes.saturating_sub(weight);
        }
    }
}

/// An answer that goes out in pieces, as its receiver takes them.
pub(super) struct Answer {
    inner: Body,
    known: Arc<Known>,
    sending: Arc<Sending>,
    /// A message that waits for room, until when, and when it asks next.
    crowded: Option<(Bytes, Instant, Pin<Box<Sleep>>)>,
    ended: bool,
    _held: (InUse, Option<LongLived>),
}

impl Answer {
    pub(super) fn new(inner: Body, outflow: &Arc<Outflow>, peer: Peer, held: (InUse, Option<LongLived>)) -> Self {
        let sending = Arc::new(Sending { peer, activity: Activity::default(), left: Mutex::default() });
        let mut answers = outflow.lock();
        answers.next += 1;
        let id = answers.next;
        answers.known.insert(id, (Arc::clone(&sending), 0));
        drop(answers);
        let known = Arc::new(Known { outflow: Arc::clone(outflow), id });
        Self { inner, known, sending, crowded: None, ended: false, _held: held }
    }

    /// The next piece of the message at hand: `None` when there is none.
    fn piece(&mut self, context: &mut Context<'_>) -> Option<Poll<Item>> {
        let mut left = self.sending.lock();
        if left.cut {
            drop(left);
            self.end();
            return Some(Poll::Ready(Some(Err(status(FeedEnd::Slow)))));
        }
        left.waker = Some(context.waker().clone());
        if left.rest.is_empty() {
            return None;
        }
        if left.unsent > 0 {
            return Some(Poll::Pending);
        }
        let most = left.rest.len().min(PIECE_BYTES);
        let bytes = left.rest.split_to(most);
        left.unsent += bytes.len();
        drop(left);
        self.sending.activity.moved();
        let piece = Piece { bytes, sending: Arc::clone(&self.sending), known: Arc::clone(&self.known) };
        Some(Poll::Ready(Some(Ok(Frame::data(Bytes::from_owner(piece))))))
    }

    fn end(&mut self) {
        self.ended = true;
        self.inner = Body::empty();
        self.crowded = None;
    }

    /// Takes up a message as soon as there is room for it.
    fn take_up(&mut self, bytes: Bytes) -> Option<Bytes> {
        if bytes.len() > UNCOUNTED_BYTES && !self.known.outflow.resize(self.known.id, bytes.len()) {
            return Some(bytes);
        }
        self.sending.lock().rest = bytes;
        None
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        self.known.outflow.lock().crowded.remove(&self.known.id);
    }
}

impl HttpBody for Answer {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        loop {
            if self.ended {
                return Poll::Ready(None);
            }
            if let Some(piece) = self.piece(context) {
                return piece;
            }
            if let Some((_, _, again)) = &mut self.crowded {
                ready!(again.as_mut().poll(context));
            }
            if let Some((bytes, until, mut again)) = self.crowded.take() {
                if let Some(bytes) = self.take_up(bytes) {
                    if Instant::now() >= until {
                        self.end();
                        return Poll::Ready(Some(Err(status(Refusal::denied(crowded("answers"))))));
                    }
                    self.known.outflow.wait(self.known.id, &self.sending, bytes.len());
                    again.as_mut().reset(Instant::now() + ASK_AGAIN);
                    self.crowded = Some((bytes, until, again));
                }
                continue;
            }
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => {
                        if let Some(bytes) = self.take_up(bytes) {
                            self.known.outflow.wait(self.known.id, &self.sending, bytes.len());
                            let again = Box::pin(sleep(ASK_AGAIN));
                            self.crowded = Some((bytes, Instant::now() + ASK_FOR, again));
                        }
                    }
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        let left = self.sending.lock();
        // An answer that was cut off has yet to report it.
        let nothing_left = self.crowded.is_none() && left.rest.is_empty() && !left.cut;
        self.ended || (nothing_left && self.inner.is_end_stream())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::caller::{Caller, Peers, Share};
    use tokio_util::sync::CancellationToken;

    const PATIENCE: Duration = Duration::from_secs(1);
    const SLOW: Duration = Duration::from_secs(30);

    /// A body of one message.
    struct Message(Option<Bytes>);

    impl HttpBody for Message {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(mut self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, Status>>> {
            Poll::Ready(self.0.take().map(|bytes| Ok(Frame::data(bytes))))
        }
    }

    fn answer(outflow: &Arc<Outflow>, bytes: usize) -> (Answer, CancellationToken) {
        let cut = CancellationToken::new();
        let peer = Peers::new(Share::of(1)).meet(Caller::Local, cut.clone());
        let held = (peer.activity.enter(), None);
        (Answer::new(Body::new(Message(Some(Bytes::from(vec![7; bytes])))), outflow, peer, held), cut)
    }

    /// What the answer gives next, if it gives something now.
    async fn frame(answer: &mut Answer) -> Option<Option<Result<Bytes, Status>>> {
        let frame = std::future::poll_fn(|context| Poll::Ready(Pin::new(&mut *answer).poll_frame(context))).await;
        match frame {
            Poll::Pending => None,
            Poll::Ready(frame) => Some(frame.map(|frame| frame.map(|frame| frame.into_data().unwrap_or_default()))),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_goes_out_piece_by_piece_and_leaves_nothing() {
        let outflow = Outflow::new(PATIENCE, SLOW);
        let (mut answer, _cut) = answer(&outflow, 200_000);
        let mut came = 0;
        while came < 200_000 {
            let piece = frame(&mut answer).await.unwrap().unwrap().unwrap();
            assert!(piece.len() <= PIECE_BYTES);
            came += piece.len();
            if came < 200_000 {
                assert!(frame(&mut answer).await.is_none(), "the one before has not gone out");
            }
        }
        assert!(frame(&mut answer).await.unwrap().is_none());
        assert_eq!(outflow.lock().waiting_bytes, 0);
        drop(answer);
        assert!(outflow.lock().known.is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn an_answer_that_is_not_taken_is_cut_off_and_then_its_connection() {
        let outflow = Outflow::new(PATIENCE, SLOW);
        let (mut stuck, cut) = answer(&outflow, 200_000);
        let unsent = frame(&mut stuck).await.unwrap().unwrap().unwrap();
        let (mut quick, other) = answer(&outflow, 100_000);
        tokio::time::advance(SLOW).await;
        outflow.sweep();
        assert!(frame(&mut stuck).await.is_none(), "a slow receiver has its time");
        assert!(frame(&mut quick).await.unwrap().unwrap().is_ok());
        tokio::time::advance(SLOW).await;
        outflow.sweep();
        assert_eq!(frame(&mut stuck).await.unwrap().unwrap().unwrap_err().code(), tonic::Code::ResourceExhausted);
        assert!(!cut.is_cancelled());
        tokio::time::advance(SLOW).await;
        outflow.sweep();
        assert!(cut.is_cancelled() && !other.is_cancelled());
        drop(unsent);
    }

    #[tokio::test(start_paused = true)]
    async fn large_answers_that_make_no_progress_give_way() {
        let outflow = Outflow::new(PATIENCE, SLOW);
        let mut stuck = Vec::new();
        for _ in 0..16 {
            let (mut answer, cut) = answer(&outflow, 4 << 20);
            let piece = frame(&mut answer).await.unwrap();
            stuck.push((answer, cut, piece));
        }
        let (mut late, _cut) = answer(&outflow, 4 << 20);
        assert!(frame(&mut late).await.is_none(), "no receiver is slow yet");
        tokio::time::advance(PATIENCE).await;
        assert!(frame(&mut late).await.unwrap().unwrap().is_ok());
        let waiting = outflow.lock().waiting_bytes;
        assert!(waiting <= WAITING_BYTES, "{waiting}");
    }

    #[tokio::test(start_paused = true)]
    async fn those_who_crowd_the_most_give_up() {
        let outflow = Outflow::new(Duration::from_secs(3600), SLOW);
        let peers = Peers::new(Share::of(1));
        let greedy = peers.meet(Caller::Local, CancellationToken::new());
        let modest = peers.meet(Caller::Local, CancellationToken::new());
        let ask = |peer: &Peer| {
            let body = Body::new(Message(Some(Bytes::from(vec![7; 4 << 20]))));
            Answer::new(body, &outflow, peer.clone(), (peer.activity.enter(), None))
        };
        let (mut held, mut pieces) = (Vec::new(), Vec::new());
        for _ in 0..16 + 8 {
            let mut answer = ask(&greedy);
            pieces.push(frame(&mut answer).await);
            held.push(answer);
        }
        assert!(pieces[..16].iter().all(Option::is_some) && pieces[16..].iter().all(Option::is_none));
        let mut other = ask(&modest);
        assert!(frame(&mut other).await.is_none(), "it waits");
        assert!(frame(&mut held[23]).await.unwrap().unwrap().is_err(), "the newest of the greedy one has given up");
        assert!(frame(&mut other).await.is_none(), "it still waits");
    }
}
