//! Bodies of calls and answers: gathered whole, or ended with the server.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll, ready};

use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::reason::{Detail, Reason};
use http_body::{Body as HttpBody, Frame};
use tokio_util::bytes::{Bytes, BytesMut};
use tonic::Status;
use tonic::body::Body;
use tonic::codegen::http::HeaderMap;

use super::status::status;
use crate::dispatcher::refusal::Refusal;

/// Bytes of a message that weighs nothing.
pub(super) const LIGHT_BYTES: usize = 64 << 10;

/// Precedes a message: whether it is compressed, and its length.
pub(super) const PREFIX_BYTES: usize = 5;

pub(super) type Item = Option<Result<Frame<Bytes>, Status>>;

/// A message or an answer that is there, and what may come after it.
pub(super) struct Gathered {
    frames: VecDeque<Result<Frame<Bytes>, Status>>,
    rest: Body,
}

impl Gathered {
    /// Waits for a call's message: all of it, or as much as shows that it is too long.
    pub(super) async fn message(rest: Body) -> Self {
        Self::until(rest, is_beyond).await
    }

    /// Waits for the first message of a call that sends several.
    pub(super) async fn first_message(rest: Body) -> Self {
        Self::until(rest, |bytes| is_whole(bytes) || is_beyond(bytes)).await
    }

    /// Gathers bytes until they suffice or no more come.
    async fn until(mut rest: Body, suffices: impl Fn(&[u8]) -> bool) -> Self {
        let mut message = BytesMut::new();
        let mut frames = VecDeque::new();
        while !suffices(&message) {
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

    /// Refuses a message that is longer than any may be.
    pub(super) fn check_length(&self) -> Result<(), Failure> {
        let bytes = self.bytes();
        if !is_beyond(bytes) {
            return Ok(());
        }
        let length = announced(bytes).unwrap_or_default();
        let message = format!("the message has {length} bytes, at most {MESSAGE_BYTES} are taken");
        let hint = "send less in one call, such as one file after the other";
        Err(Failure::new(Reason::TooLarge, message).detail(Detail::Message).hint(hint))
    }

    /// Encodes an answer of one message.
    pub(super) async fn answer(mut answer: Body) -> Self {
        let mut frames = VecDeque::new();
        while let Some(frame) = next_frame(&mut answer).await {
            frames.push_back(frame);
        }
        Self { frames, rest: Body::empty() }
    }

    /// The first message that is there, without its prefix; nothing if it has not come whole.
    pub(super) fn first(&self) -> &[u8] {
        let bytes = self.bytes();
        let length = announced(bytes).unwrap_or_default();
        bytes.get(PREFIX_BYTES..).and_then(|message| message.get(..length)).unwrap_or_default()
    }

    /// The bytes of the message that is there, prefix included.
    pub(super) fn bytes(&self) -> &[u8] {
        let first = self.frames.front().and_then(|frame| frame.as_ref().ok());
        first.and_then(Frame::data_ref).map_or(&[], |bytes| bytes)
    }
}

/// The length that a message's prefix states, once that has come.
pub(super) fn announced(message: &[u8]) -> Option<usize> {
    let length = message.get(1..).and_then(<[u8]>::first_chunk)?;
    usize::try_from(u32::from_be_bytes(*length)).ok()
}

/// Whether a message has come whole.
fn is_whole(message: &[u8]) -> bool {
    announced(message).is_some_and(|length| message.len() >= PREFIX_BYTES.saturating_add(length))
}

/// Whether a message is longer than any may be, by its prefix or by what came.
fn is_beyond(message: &[u8]) -> bool {
    announced(message).is_some_and(|length| length > MESSAGE_BYTES) || message.len() > PREFIX_BYTES + MESSAGE_BYTES
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

/// A stream of answers that ends when its time is over, and says why.
pub(super) struct Ending {
    inner: Body,
    closing: Pin<Box<dyn Future<Output = ()> + Send>>,
    why: fn() -> Failure,
    /// Whether what is there is sent first.
    is_patient: bool,
    ended: bool,
}

impl Ending {
    /// Ends the answers once `closing` is done and what is there has been sent.
    pub(super) fn after_what_is_there(
        inner: Body,
        closing: impl Future<Output = ()> + Send + 'static,
        why: fn() -> Failure,
    ) -> Self {
        Self { inner, closing: Box::pin(closing), why, is_patient: true, ended: false }
    }

    /// Ends the answers as soon as `closing` is done.
    pub(super) fn at_once(
        inner: Body,
        closing: impl Future<Output = ()> + Send + 'static,
        why: fn() -> Failure,
    ) -> Self {
        Self { is_patient: false, ..Self::after_what_is_there(inner, closing, why) }
    }
}

impl HttpBody for Ending {
    type Data = Bytes;
    type Error = Status;

    fn poll_frame(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Item> {
        if self.ended {
            return Poll::Ready(None);
        }
        let is_over = !self.is_patient && self.closing.as_mut().poll(context).is_ready();
        if !is_over {
            if let Poll::Ready(frame) = Pin::new(&mut self.inner).poll_frame(context) {
                return Poll::Ready(frame);
            }
            if !self.is_patient {
                return Poll::Pending;
            }
            ready!(self.closing.as_mut().poll(context));
        }
        self.ended = true;
        self.inner = Body::empty();
        let mut trailers = HeaderMap::new();
        let ended = status(Refusal::denied((self.why)())).add_header(&mut trailers);
        Poll::Ready(Some(ended.map(|()| Frame::trailers(trailers))))
    }

    fn is_end_stream(&self) -> bool {
        self.ended || self.inner.is_end_stream()
    }
}

#[cfg(test)]
mod tests {
    use tokio_util::sync::CancellationToken;

    use super::*;

    /// Answers without an end.
    struct Endless;

    impl HttpBody for Endless {
        type Data = Bytes;
        type Error = Status;

        fn poll_frame(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<Item> {
            Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"x")))))
        }
    }

    #[tokio::test]
    async fn answers_that_never_pause_end_at_once() {
        let closing = CancellationToken::new();
        let mut body = Body::new(Ending::at_once(
            Body::new(Endless),
            closing.clone().cancelled_owned(),
            crate::identity::unauthenticated,
        ));
        for _ in 0..3 {
            assert!(next_frame(&mut body).await.unwrap().unwrap().is_data());
        }
        closing.cancel();
        assert!(next_frame(&mut body).await.unwrap().unwrap().is_trailers());
        assert!(next_frame(&mut body).await.is_none());
    }
}
