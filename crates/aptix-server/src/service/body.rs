//! The bytes of calls, as admission watches over them, and streams that end with the server.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, ready};

use aptix_model::limits::MESSAGE_BYTES;
use http_body::{Body as HttpBody, Frame};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderMap;

use super::admission::Admission;
use super::status::{status, too_late};
use crate::caller::{InUse, Peer};
use crate::dispatcher::refusal::{Refusal, crowded, shutting_down};
use crate::room::Place;

/// Bytes of a message that weighs nothing.
pub(super) const LIGHT_BYTES: usize = 64 << 10;

/// What stands before a message: whether it is compressed, and its length.
const PREFIX_BYTES: usize = 5;

type Item = Option<Result<Frame<Bytes>, Status>>;
type Acquire = Pin<Box<dyn Future<Output = Result<Ticket, Status>> + Send>>;

/// What a call holds once its message has come whole.
#[derive(Default)]
pub(super) struct Ticket {
    /// Its places among the calls that are worked on, and the weight of its message.
    pub(super) permits: Vec<OwnedSemaphorePermit>,
    /// Its connection is not idle meanwhile.
    pub(super) in_use: Option<InUse>,
}

/// Where a call's ticket is put.
pub(super) type TicketBox = Arc<Mutex<Option<Ticket>>>;

/// A call's bytes. The last ones of its first message are held back until the call is admitted, so that a call whose message
/// does not come whole takes nothing away from others. A message that stops coming ends the call.
pub(super) struct Received {
    inner: Body,
    prefix: Vec<u8>,
    seen: usize,
    admission: Admission,
    peer: Peer,
    /// Whether the call takes a place among those that are worked on.
    counted: bool,
    ticket: TicketBox,
    /// Over when nothing came for too long; absent once the first message came whole.
    silence: Option<Pin<Box<Sleep>>>,
    /// What the message takes in memory while it is incomplete, if that is worth counting.
    partial: Option<(Place, Pin<Box<WaitForCancellationFutureOwned>>)>,
    waiting: Option<(Acquire, Frame<Bytes>)>,
}

impl Received {
    pub(super) fn new(inner: Body, admission: Admission, peer: Peer, counted: bool, ticket: TicketBox) -> Self {
        let silence = Some(Box::pin(sleep(admission.silence())));
        let prefix = Vec::with_capacity(PREFIX_BYTES);
        Self { inner, prefix, seen: 0, admission, peer, counted, ticket, silence, partial: None, waiting: None }
    }

    /// Counts bytes that came; answers the length of the first message if they complete it.
    fn count(&mut self, bytes: &Bytes) -> Result<Option<usize>, Status> {
        let missing = PREFIX_BYTES - self.prefix.len();
        self.prefix.extend(bytes.iter().take(missing));
        let before = self.seen;
        self.seen += bytes.len();
        let Some(length) = self.prefix.get(1..).and_then(|length| length.first_chunk()) else { return Ok(None) };
        let length = usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX);
        let whole = length.saturating_add(PREFIX_BYTES);
        if before < whole && self.seen >= whole {
            return Ok(Some(length));
        }
        match &self.partial {
            Some((place, _)) => place.moved(),
            // A message over the limit is refused by the decoder before anything of it is kept.
            None if before < whole && length > LIGHT_BYTES && length <= MESSAGE_BYTES => {
                let place = self.admission.partial(&self.peer, length)?;
                let cut = Box::pin(place.cut().clone().cancelled_owned());
                self.partial = Some((place, cut));
            }
            None => {}
        }
        Ok(None)
    }

    /// Whether the message has been waited for long enough.
    fn overdue(&mut self, context: &mut Context<'_>) -> Option<Status> {
        if let Some((_, cut)) = &mut self.partial
            && cut.as_mut().poll(context).is_ready()
        {
            return Some(status(Refusal::denied(crowded("incomplete messages"))));
        }
        let silence = self.silence.as_mut()?;
        ready_now(silence.as_mut().poll(context)).then(|| {
            too_late(&format!("no bytes of the message came for {} seconds", self.admission.silence().as_secs()))
        })
    }

    fn accept(&mut self, ticket: Ticket) {
        (self.silence, self.partial) = (None, None);
        *self.ticket.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket);
    }
}

const fn ready_now(poll: Poll<()>) -> bool {
    matches!(poll, Poll::Ready(()))
}

impl HttpBody for Received {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        if self.waiting.is_none() {
            let frame = match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => frame,
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending => {
                    return self.overdue(context).map_or(Poll::Pending, |late| Poll::Ready(Some(Err(late))));
                }
            };
            if self.silence.is_none() {
                return Poll::Ready(Some(Ok(frame)));
            }
            let until = Instant::now() + self.admission.silence();
            if let Some(silence) = &mut self.silence {
                silence.as_mut().reset(until);
            }
            let completed = match frame.data_ref().cloned().map(|bytes| self.count(&bytes)).transpose() {
                Ok(completed) => completed.flatten(),
                Err(refused) => return Poll::Ready(Some(Err(refused))),
            };
            let Some(length) = completed else { return Poll::Ready(Some(Ok(frame))) };
            let counted = self.counted;
            if let Some(ticket) = self.admission.at_once(&self.peer, length, counted) {
                self.accept(ticket);
                return Poll::Ready(Some(Ok(frame)));
            }
            let (admission, peer, partial) = (self.admission.clone(), self.peer.clone(), self.partial.take());
            let turn = async move {
                let admitted = admission.turn(&peer, length).await;
                drop(partial);
                admitted
            };
            // While it waits the message is whole, and does not give way any more.
            self.waiting = Some((Box::pin(turn), frame));
        }
        let Some((turn, _)) = &mut self.waiting else { return Poll::Ready(None) };
        match ready!(turn.as_mut().poll(context)) {
            Ok(ticket) => self.accept(ticket),
            Err(refused) => {
                self.waiting = None;
                return Poll::Ready(Some(Err(refused)));
            }
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
