//! The message of a call as it arrives: watched for silence, counted while incomplete, and admitted once it is whole.

use std::pin::Pin;
use std::sync::PoisonError;
use std::task::{Context, Poll, ready};

use aptix_model::limits::MESSAGE_BYTES;
use http_body::{Body as HttpBody, Frame};
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::bytes::Bytes;
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::Status;
use tonic::body::Body;

use super::admission::Admission;
use super::body::{Item, LIGHT_BYTES, PREFIX_BYTES};
use super::status::{status, too_late};
use crate::caller::Peer;
use crate::dispatcher::refusal::{Refusal, crowded};
use crate::quota::{Held, Limit};
use crate::room::Place;
use crate::ticket::{Ticket, TicketBox};

type Acquire = Pin<Box<dyn Future<Output = Result<Ticket, Status>> + Send>>;

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
    /// The message's bytes, as the caller's token is held to them; absent until its length is known.
    bytes: Option<Held>,
}

impl Received {
    pub(super) fn new(inner: Body, admission: Admission, peer: Peer, counted: bool, ticket: TicketBox) -> Self {
        let silence = Some(Box::pin(sleep(admission.options.request_idle)));
        let prefix = Vec::with_capacity(PREFIX_BYTES);
        Self {
            inner,
            prefix,
            seen: 0,
            admission,
            peer,
            counted,
            ticket,
            silence,
            partial: None,
            waiting: None,
            bytes: None,
        }
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
        // A message over the limit is refused by the decoder before anything of it is kept.
        if before < PREFIX_BYTES && self.counted && length <= MESSAGE_BYTES {
            self.bytes = self.peer.quota.take(Limit::BytesInFlight, length).map_err(status)?;
        }
        if before < whole && self.seen >= whole {
            return Ok(Some(length));
        }
        match &self.partial {
            Some((place, _)) => place.moved(),
            None if before < whole && length > LIGHT_BYTES && length <= MESSAGE_BYTES => {
                let place = self.admission.partial(&self.peer, length).map_err(status)?;
                let cut = Box::pin(place.cut.clone().cancelled_owned());
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
        silence.as_mut().poll(context).is_ready().then(|| {
            too_late(&format!(
                "no bytes of the message came for {} seconds",
                self.admission.options.request_idle.as_secs()
            ))
        })
    }

    fn accept(&mut self, mut ticket: Ticket) {
        ticket.bytes.extend(self.bytes.take());
        (self.silence, self.partial) = (None, None);
        *self.ticket.lock().unwrap_or_else(PoisonError::into_inner) = Some(ticket);
    }
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
            let until = Instant::now() + self.admission.options.request_idle;
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
