//! The two directions of `AgentService.Serve`: what an agent sends as domain values, and what it is sent as messages.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::presence::Presence;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::Answer;
use aptix_model::wire::v1::serve_request::Message as Sent;
use aptix_model::wire::v1::serve_response::Message;
use aptix_model::wire::{self, event_message, fit, v1};
use tokio_stream::{Stream, StreamExt};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};
use tonic::{Status, Streaming};
use tonic_types::StatusExt;

use super::bare_status;
use super::event;
use super::inflow::RefusedMessage;
use super::status::status;
use crate::dispatcher::feed::{Delivery, Hello};
use crate::dispatcher::lease::secret_digest;
use crate::dispatcher::questions::{Answered, Asked};
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::stream::Start;
use crate::identity::unauthenticated;

/// Waits for the first message.
pub(super) async fn hello(
    requests: &mut Streaming<v1::ServeRequest>,
    refused: &RefusedMessage,
) -> Result<Hello, Status> {
    let first = match requests.message().await {
        Ok(first) => first.and_then(|first| first.message),
        // Admission has refused the message.
        Err(refused) if refused.get_error_details().error_info().is_some() => return Err(refused),
        Err(broken) => return Err(status(cut_short(&broken, refused))),
    };
    match first {
        Some(Sent::Hello(hello)) => read(hello).map_err(status),
        Some(Sent::Answer(_)) => Err(status(out_of_place("answer", "the first message is an Answer, expected Hello"))),
        None => Err(status(wire::missing("hello", "who serves, as the first message"))),
    }
}

fn read(hello: v1::Hello) -> Result<Hello, Refusal> {
    let workspace = wire::id("hello.workspaceId", &hello.workspace_id)?;
    let agent = wire::id("hello.agentId", &hello.agent_id)?;
    let from = match hello.cursor.clone() {
        Some(cursor) => Start::Cursor(Cursor::try_from(cursor)?),
        None => Start::Revision(Revision(hello.after_revision)),
    };
    let held = secret_digest(&hello.lease_secret);
    Ok(Hello { workspace, agent, from, held, presence: Presence::try_from(hello)? })
}

/// What follows the first message, until the agent may not call any more: then its feed ends, whether it takes anything of it or not.
pub(super) fn answers(
    requests: Streaming<v1::ServeRequest>,
    refused: RefusedMessage,
    ended: CancellationToken,
) -> impl Stream<Item = Result<Answered, Refusal>> + Send + Unpin {
    UntilEnded { answers: heard(requests, refused), ended: Box::pin(ended.cancelled_owned()) }
}

struct UntilEnded<A> {
    answers: A,
    ended: Pin<Box<WaitForCancellationFutureOwned>>,
}

impl<A: Stream<Item = Result<Answered, Refusal>> + Unpin> Stream for UntilEnded<A> {
    type Item = Result<Answered, Refusal>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        if self.ended.as_mut().poll(context).is_ready() {
            return Poll::Ready(Some(Err(Refusal::denied(unauthenticated()))));
        }
        Pin::new(&mut self.answers).poll_next(context)
    }
}

fn heard(
    requests: Streaming<v1::ServeRequest>,
    refused: RefusedMessage,
) -> impl Stream<Item = Result<Answered, Refusal>> + Send + Unpin {
    requests.map(move |request| match request.map_err(|broken| cut_short(&broken, &refused))?.message {
        Some(Sent::Answer(v1::Answer { question_id, answer: Some(answer) })) => {
            Ok(Answered(question_id, Answer(answer)))
        }
        Some(Sent::Answer(_)) => Err(wire::missing("answer.answer", "a member that this version knows").into()),
        Some(Sent::Hello(_)) => Err(out_of_place("hello", "a second Hello came, expected one for a connection").into()),
        None => {
            Err(wire::missing("message", "hello or answer: the agent's version may be newer than the server's").into())
        }
    })
}

fn out_of_place(field: &str, message: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::UnexpectedField)
        .field(field)
        .hint("send Hello first and once, then one Answer for each Question")
}

/// Why no message comes: it was refused, or what came is none, or is cut short.
fn cut_short(broken: &Status, refused: &RefusedMessage) -> Refusal {
    if let Some(refusal) = refused.get() {
        return refusal;
    }
    Refusal::denied(bare_status::undecoded(broken))
}

/// An item of a feed as a message.
pub(super) fn message(delivery: Delivery, heartbeat: Duration) -> v1::ServeResponse {
    let message = match delivery {
        Delivery::Lease(epoch, secret) => Message::Lease(v1::Lease {
            epoch,
            heartbeat_interval: prost_types::Duration::try_from(heartbeat).ok(),
            secret: secret.bytes().to_vec().into(),
            server_version: env!("CARGO_PKG_VERSION").to_owned(),
        }),
        Delivery::Event(event) => Message::Event(event::message(event, |batch| fit::event(event_message(batch)))),
        Delivery::Heartbeat(revision) => Message::Heartbeat(v1::Heartbeat { revision: revision.0 }),
        Delivery::Asked(Asked::Question(question_id, time_left, ask)) => {
            let time_left = prost_types::Duration::try_from(time_left).ok();
            Message::Question(v1::Question { question_id, time_left, ask: Some(ask.0) })
        }
        Delivery::Asked(Asked::Cancelled(question_id)) => {
            Message::QuestionCancelled(v1::QuestionCancelled { question_id })
        }
    };
    v1::ServeResponse { message: Some(message) }
}
