//! The bytes of calls and answers, as admission watches over them.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use aptix_model::limits::MESSAGE_BYTES;
use http_body::{Body as HttpBody, Frame};
use tokio::sync::{AcquireError, OwnedSemaphorePermit, Semaphore};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::{CancellationToken, DropGuard, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderMap;

use super::status::status;
use crate::dispatcher::refusal::{Refusal, shutting_down};

/// Bytes of a message that weighs nothing.
const LIGHT_BYTES: usize = 64 << 10;

/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

type Item = Option<Result<Frame<Bytes>, Status>>;
type Acquire = Pin<Box<dyn Future<Output = Result<OwnedSemaphorePermit, AcquireError>> + Send>>;

/// A call's message, whose last bytes are held back until there is room for what it will be in memory. A message that
/// does not come whole takes no room away.
pub(super) struct Weighed {
    inner: Body,
    prefix: Vec<u8>,
    seen: usize,
    budget: Arc<Semaphore>,
    weight: Arc<OnceLock<OwnedSemaphorePermit>>,
    waiting: Option<(Acquire, Frame<Bytes>)>,
}

impl Weighed {
    /// Takes from `budget` what the message weighs; it is given back when `weight` goes.
    pub(super) fn new(inner: Body, budget: Arc<Semaphore>, weight: Arc<OnceLock<OwnedSemaphorePermit>>) -> Self {
        Self { inner, prefix: Vec::with_capacity(PREFIX_BYTES), seen: 0, budget, weight, waiting: None }
    }

    /// The weight of the message, if these bytes complete it.
    fn completed(&mut self, bytes: &Bytes) -> Option<u32> {
        let missing = PREFIX_BYTES - self.prefix.len();
        self.prefix.extend(bytes.iter().take(missing));
        let before = self.seen;
        self.seen += bytes.len();
        let length = u32::from_be_bytes(*self.prefix.get(1..)?.first_chunk()?);
        let whole = PREFIX_BYTES + usize::try_from(length).ok()?;
        (before < whole && self.seen >= whole && whole > LIGHT_BYTES).then_some(length)
    }
}

impl HttpBody for Weighed {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        if self.waiting.is_none() {
            let frame = match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => frame,
                other => return Poll::Ready(other),
            };
            match frame.data_ref().cloned().and_then(|bytes| self.completed(&bytes)) {
                None => return Poll::Ready(Some(Ok(frame))),
                Some(weight) => {
                    let budget = Arc::clone(&self.budget);
                    self.waiting = Some((Box::pin(budget.acquire_many_owned(weight)), frame));
                }
            }
        }
        let Some((acquire, _)) = &mut self.waiting else { return Poll::Ready(None) };
        if let Ok(permit) = ready!(acquire.as_mut().poll(context)) {
            // A second message in one call is refused anyway.
            let _ = self.weight.set(permit);
        }
        Poll::Ready(self.waiting.take().map(|(_, frame)| Ok(frame)))
    }

    fn is_end_stream(&self) -> bool {
        self.waiting.is_none() && self.inner.is_end_stream()
    }
}

/// A message or an answer that is there, and what may come after it.
pub(super) struct Gathered {
    frames: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: Body,
}

impl Gathered {
    /// Waits for a call's message: all of it, or as much as shows that it is too long.
    pub(super) async fn message(mut rest: Body) -> Self {
        let mut message = BytesMut::new();
        let mut frames = VecDeque::new();
        while !is_beyond(&message) {
            match next_frame(&mut rest).await {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => message.extend_from_slice(&bytes),
                    Err(trailers) => {
                        frames.push_back(Ok(trailers));
                        break;
                    }
                },
                Some(Err(status)) => {
                    frames.push_back(Err(status));
                    break;
                }
                None => {
                    rest = Body::empty();
                    break;
                }
            }
        }
        if !message.is_empty() {
            frames.push_front(Ok(Frame::data(message.freeze())));
        }
        Self { frames, rest }
    }

    /// Encodes an answer of one message.
    pub(super) async fn answer(mut answer: Body) -> Self {
        let mut frames = VecDeque::new();
        while let Some(frame) = next_frame(&mut answer).await {
            frames.push_back(frame);
        }
        Self { frames, rest: Body::empty() }
    }

    /// The bytes of the message that is there, prefix included.
    pub(super) fn bytes(&self) -> &[u8] {
        let first = self.frames.front().and_then(|frame| frame.as_ref().ok());
        first.and_then(Frame::data_ref).map_or(&[], |bytes| bytes)
    }
}

/// Whether a message is longer than any may be, by its prefix or by what came.
fn is_beyond(message: &[u8]) -> bool {
    let announced = message.get(1..).and_then(<[u8]>::first_chunk).map_or(0, |length| u32::from_be_bytes(*length));
    usize::try_from(announced).is_ok_and(|announced| announced > MESSAGE_BYTES)
        || message.len() > PREFIX_BYTES + MESSAGE_BYTES
}

async fn next_frame(body: &mut Body) -> Item {
    poll_fn(|context| Pin::new(&mut *body).poll_frame(context)).await
}

impl HttpBody for Gathered {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        match self.frames.pop_front() {
            Some(frame) => Poll::Ready(Some(frame)),
            None => Pin::new(&mut self.rest).poll_frame(context),
        }
    }

    fn is_end_stream(&self) -> bool {
        self.frames.is_empty() && self.rest.is_end_stream()
    }
}

/// Bytes of an answer that are handed to the transport at once.
const PIECE_BYTES: usize = 64 << 10;

/// An answer that goes out in pieces, as its receiver takes them: the transport would take a whole message at once, and
/// keep it for whoever does not read.
pub(super) struct InPieces {
    inner: Body,
    rest: Bytes,
    /// Dropped when the last piece was taken.
    _until: Option<DropGuard>,
}

impl InPieces {
    pub(super) fn new(inner: Body, until: Option<DropGuard>) -> Self {
        Self { inner, rest: Bytes::new(), _until: until }
    }
}

impl HttpBody for InPieces {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        if self.rest.is_empty() {
            match ready!(Pin::new(&mut self.inner).poll_frame(context)) {
                Some(Ok(frame)) => match frame.into_data() {
                    Ok(bytes) => self.rest = bytes,
                    Err(frame) => return Poll::Ready(Some(Ok(frame))),
                },
                other => return Poll::Ready(other),
            }
        }
        let most = self.rest.len().min(PIECE_BYTES);
        Poll::Ready(Some(Ok(Frame::data(self.rest.split_to(most)))))
    }

    fn is_end_stream(&self) -> bool {
        self.rest.is_empty() && self.inner.is_end_stream()
    }
}

/// A stream of answers that ends when the server does.
pub(super) struct Ending {
    inner: Body,
    closing: Pin<Box<WaitForCancellationFutureOwned>>,
    ended: bool,
}

impl Ending {
    pub(super) fn new(inner: Body, closing: CancellationToken) -> Self {
        Self { inner, closing: Box::pin(closing.cancelled_owned()), ended: false }
    }
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        if self.ended {
            return Poll::Ready(None);
        }
        // What is there to be said comes first: an answer in flight is finished.
        if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
            return Poll::Ready(frame);
        }
        ready!(self.closing.as_mut().poll(context));
        self.ended = true;
        let mut trailers = HeaderMap::new();
        let told = status(Refusal::denied(shutting_down())).add_header(&mut trailers);
        Poll::Ready(Some(told.map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}
