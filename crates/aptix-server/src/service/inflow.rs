//! The messages that an agent sends over its connection, one at a time: each is watched for silence and counted while it is
//! incomplete, and passed on once it is whole, its lists are no longer than any may be, and there is room for its weight.

use std::pin::Pin;
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll, ready};

use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::reason::Reason;
use http_body::{Body as HttpBody, Frame};
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::{Instant, Sleep, sleep};
use tokio_util::bytes::{Buf, Bytes, BytesMut};
use tokio_util::sync::WaitForCancellationFutureOwned;
use tonic::Status;
use tonic::body::Body;

use super::admission::Admission;
use super::body::{Item, LIGHT_BYTES, PREFIX_BYTES, announced};
use super::entries;
use super::status::status;
use crate::caller::Peer;
use crate::dispatcher::refusal::{Refusal, crowded};
use crate::room::Place;

type Weigh = Pin<Box<dyn Future<Output = Vec<OwnedSemaphorePermit>> + Send>>;

/// A connection's bytes, as messages.
pub(super) struct Messages {
    inner: Body,
    admission: Admission,
    peer: Peer,
    /// What was received and not passed on.
    received: BytesMut,
    incomplete: Option<Incomplete>,
    /// A message that is whole, and waits until there is room for it.
    heavy: Option<(Weigh, Bytes)>,
    /// What the message that was passed on last takes.
    weight: Vec<OwnedSemaphorePermit>,
    refused: RefusedMessage,
}

/// The message of which a part has come.
struct Incomplete {
    /// Over when nothing came for too long.
    silence: Pin<Box<Sleep>>,
    /// What it takes in memory, if that is worth counting.
    place: Option<(Place, Pin<Box<WaitForCancellationFutureOwned>>)>,
}

/// Why a message was refused. The status that goes through the decoder does not carry all of it.
#[derive(Clone, Debug, Default)]
pub(super) struct RefusedMessage(Arc<OnceLock<Refusal>>);

impl RefusedMessage {
    /// The reason, if a message was refused.
    pub(super) fn get(&self) -> Option<Refusal> {
        self.0.get().cloned()
    }

    fn set(&self, refusal: Refusal) -> Status {
        status(self.0.get_or_init(|| refusal).clone())
    }
}

impl Messages {
    /// The messages in these bytes. Why one is refused is noted in `refused`.
    pub(super) fn new(inner: Body, admission: Admission, peer: Peer, refused: RefusedMessage) -> Self {
        let (received, weight) = (BytesMut::new(), Vec::new());
        Self { inner, admission, peer, received, incomplete: None, heavy: None, weight, refused }
    }

    /// Takes the next message off what was received, if it is whole; one that is too long goes as it is, for the decoder to refuse.
    fn whole(&mut self) -> Option<Bytes> {
        let length = announced(&self.received)?;
        let whole = PREFIX_BYTES.saturating_add(length);
        let taken = if length > MESSAGE_BYTES { self.received.len() } else { whole };
        if self.received.len() < taken {
            return None;
        }
        self.incomplete = None;
        let message = self.received.copy_to_bytes(taken);
        if self.received.is_empty() {
            // A large message leaves no large buffer behind.
            self.received = BytesMut::new();
        }
        Some(message)
    }

    /// Notes bytes that came.
    fn receive(&mut self, bytes: &Bytes) -> Result<(), Refusal> {
        self.received.extend_from_slice(bytes);
        let until = Instant::now() + self.admission.options.request_idle;
        let silence = || Box::pin(sleep(self.admission.options.request_idle));
        let incomplete = self.incomplete.get_or_insert_with(|| Incomplete { silence: silence(), place: None });
        incomplete.silence.as_mut().reset(until);
        let length = announced(&self.received).unwrap_or_default();
        match &incomplete.place {
            Some((place, _)) => place.moved(),
            None if length > LIGHT_BYTES && length <= MESSAGE_BYTES => {
                let place = self.admission.partial(&self.peer, length)?;
                let cut = Box::pin(place.cut.clone().cancelled_owned());
                incomplete.place = Some((place, cut));
            }
            None => {}
        }
        Ok(())
    }

    /// Why the message that is incomplete is not waited for any more.
    fn overdue(&mut self, context: &mut Context<'_>) -> Option<Refusal> {
        let incomplete = self.incomplete.as_mut()?;
        if let Some((_, cut)) = &mut incomplete.place
            && cut.as_mut().poll(context).is_ready()
        {
            return Some(Refusal::denied(crowded("incomplete messages")));
        }
        incomplete.silence.as_mut().poll(context).is_ready().then(|| {
            let seconds = self.admission.options.request_idle.as_secs();
            let message = format!("no bytes of a message that has begun came for {seconds} seconds");
            Refusal::denied(Failure::new(Reason::DeadlineExceeded, message).hint("connect again"))
        })
    }
}

impl HttpBody for Messages {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        let note = self.refused.clone();
        let refused = |refusal| Poll::Ready(Some(Err(note.set(refusal))));
        // The message before was decoded and handled.
        self.weight.clear();
        loop {
            if let Some((weigh, _)) = &mut self.heavy {
                self.weight = ready!(weigh.as_mut().poll(context));
                return Poll::Ready(self.heavy.take().map(|(_, message)| Ok(Frame::data(message))));
            }
            if let Some(message) = self.whole() {
                if let Err(failure) = entries::check_sent(&message) {
                    return refused(failure.into());
                }
                if message.len() <= LIGHT_BYTES {
                    return Poll::Ready(Some(Ok(Frame::data(message))));
                }
                let (admission, peer, length) = (self.admission.clone(), self.peer.clone(), message.len());
                self.heavy = Some((Box::pin(async move { admission.weigh(&peer, length).await }), message));
                continue;
            }
            match Pin::new(&mut self.inner).poll_frame(context) {
                Poll::Ready(Some(Ok(frame))) => match frame.into_data() {
                    Ok(bytes) => {
                        if let Err(refusal) = self.receive(&bytes) {
                            return refused(refusal);
                        }
                    }
                    Err(trailers) => return Poll::Ready(Some(Ok(trailers))),
                },
                // What is left is the beginning of a message: the decoder refuses it.
                Poll::Ready(None) if !self.received.is_empty() => {
                    self.incomplete = None;
                    let rest = std::mem::take(&mut self.received);
                    return Poll::Ready(Some(Ok(Frame::data(rest.freeze()))));
                }
                Poll::Ready(other) => return Poll::Ready(other),
                Poll::Pending => return self.overdue(context).map_or(Poll::Pending, refused),
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.heavy.is_none() && self.received.is_empty() && self.inner.is_end_stream()
    }
}
