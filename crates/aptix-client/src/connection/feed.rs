//! The agent's feed of events, and its reports.

use std::time::Duration;

use aptix_model::batch::Origin;
use aptix_model::batch_event::EventFacts;
use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::{AgentId, BatchId, Revision};
use aptix_model::presence::Presence;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchOutline, BatchRecord};
use aptix_model::state::BatchState;
use aptix_model::wire::v1;
use aptix_model::wire::v1::serve_response::Message;
use aptix_telemetry::{BATCH, Kind, Span};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;
use tonic::codegen::Bytes;

use super::batches::absent;
use super::call_error::CallError;
use super::link::{ANSWER, Connection, timed};
use super::position::Position;
use super::question::{Answers, Question};
use super::receipt::{self, Receipt};

/// An interval between heartbeats is held to these bounds, whatever the server says.
const HEARTBEAT: std::ops::RangeInclusive<Duration> = Duration::from_millis(100)..=Duration::from_secs(60);

/// Characters of a server's version that are logged.
const VERSION_CHARS: usize = 64;
/// Messages to the server that wait to be sent.
const AHEAD: usize = 4;

/// The right to serve a workspace, as long as its feed lives.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Lease {
    /// The lease's number, which reports carry.
    pub epoch: u64,
    /// The longest time between two messages.
    pub heartbeat: Duration,
    /// Proves who holds the lease. It is kept in memory alone: an agent that is started again waits until the server has
    /// noticed that the connection before is dead, and no file has to be guarded.
    pub secret: LeaseSecret,
    /// The version of the server as it states it, for the log.
    pub server_version: String,
}

/// What proves who holds a lease; empty if the server sent none. It is never logged.
#[derive(Clone, PartialEq, Eq, Default)]
pub struct LeaseSecret(pub(super) Bytes);

impl std::fmt::Debug for LeaseSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a secret")
    }
}

/// An event: something happened to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FeedEvent {
    /// The event's revision.
    pub revision: Revision,
    /// The feed's position after it, if the server states one.
    pub cursor: Option<Cursor>,
    /// The batch; nothing only where its id is unreadable.
    pub batch: Option<BatchId>,
    /// The step that was taken, if the server states it and this version knows its kind.
    pub step: Option<EventFacts>,
    /// What became of the batch.
    pub change: Change,
}

/// A report that the server has, and whose batch it is about.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reported {
    /// Whose turn the batch came from.
    pub origin: Origin,
    /// What it was submitted under; empty if the server does not say so.
    pub request_id: String,
}

/// What happened to a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Change {
    /// It may be applied: the whole batch, or why it cannot be understood.
    Approved(Result<Box<BatchRecord>, Vec<Failure>>),
    /// It may be applied, and is too large for an event: [`Connection::approved`] has it.
    Omitted,
    /// It is open, and must not be applied yet.
    Waits,
    /// It has ended.
    Ended,
    /// Something that this version of aptix cannot understand.
    Unreadable(Box<Failure>),
}

/// What the server sends.
#[derive(Clone, PartialEq, Debug)]
pub enum Incoming {
    /// Something happened to a batch.
    Event(FeedEvent),
    /// Something is asked.
    Question(Question),
    /// The answer to the question with this number is not wanted any more.
    Cancelled(u64),
}

/// The server's side of a connection, as it comes.
#[derive(Debug)]
pub struct Feed {
    connection: Connection,
    lease: Lease,
    /// The revision of the last event, or the one after which the feed begins.
    last: Revision,
    stream: Streaming<v1::ServeResponse>,
    /// The agent's side of the stream, which ends the connection once it is dropped.
    answers: Answers,
}

impl Connection {
    /// Takes the lease and serves the workspace from a position on. With the secret of the lease that was held last, it is
    /// taken over from a connection that the server does not know to be dead yet.
    ///
    /// # Errors
    /// LEASE_HELD, HISTORY_CHANGED, COMPACTED, FUTURE_REVISION; or the server is lost.
    pub async fn serve(
        &self,
        agent: &AgentId,
        presence: Presence,
        after: Position,
        held: &LeaseSecret,
    ) -> Result<Feed, CallError> {
        let cursor = match after {
            Position::Revision(_) => None,
            Position::Cursor(cursor) => Some(cursor.into()),
        };
        let hello = v1::Hello {
            workspace_id: self.workspace.to_string(),
            agent_id: agent.to_string(),
            after_revision: after.revision().0,
            cursor,
            lease_secret: held.0.clone(),
            ..presence.into()
        };
        let (sender, requests) = mpsc::channel(AHEAD);
        let hello = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
        let (sent, requests) = (sender.send(hello).await, ReceiverStream::new(requests));
        sent.map_err(|error| CallError::unreachable(&self.server, error.to_string()))?;
        let mut stream = self.answer(self.agents().serve(requests)).await?;
        let first = self.within(ANSWER, stream.message()).await?;
        let Some(Message::Lease(lease)) = first.and_then(|first| first.message) else {
            return Err(absent("lease").into());
        };
        let heartbeat = lease.heartbeat_interval.and_then(|interval| Duration::try_from(interval).ok());
        let heartbeat = heartbeat.unwrap_or(*HEARTBEAT.end()).clamp(*HEARTBEAT.start(), *HEARTBEAT.end());
        let server_version = lease.server_version.chars().take(VERSION_CHARS).collect();
        let lease = Lease { epoch: lease.epoch, heartbeat, secret: LeaseSecret(lease.secret), server_version };
        Ok(Feed { connection: self.clone(), lease, last: after.revision(), stream, answers: Answers(sender) })
    }

    /// Reports what became of a batch; on success the report is durable. A diff that makes the message too large is
    /// left out.
    ///
    /// # Errors
    /// NOT_FOUND, LEASE_LOST, BLOB_MISSING, RESULT_FINAL, INVALID_REQUEST; or the server is lost.
    pub async fn report(&self, lease: &Lease, receipt: Receipt) -> Result<Reported, CallError> {
        let shorter = (!receipt.report.diff.is_empty()).then(|| receipt.without_diff());
        match (self.report_once(lease, receipt).await, shorter) {
            (Err(error), Some(shorter)) if error.reason() == Some(Reason::TooLarge) => {
                self.report_once(lease, shorter).await
            }
            (result, _) => result,
        }
    }

    async fn report_once(&self, lease: &Lease, receipt: Receipt) -> Result<Reported, CallError> {
        let mut span = Span::below("report", Kind::Client, receipt.traceparent);
        span.note(BATCH, &receipt.batch.to_string());
        let receipt = Receipt { traceparent: span.context(), ..receipt };
        let message = v1::ReportBatchRequest {
            lease_epoch: lease.epoch,
            lease_secret: lease.secret.0.clone(),
            ..receipt::message(receipt)
        };
        let response = self.answer(self.agents().report_batch(timed(message, ANSWER))).await;
        let response = response.inspect_err(|error| span.fail(error.reason().map_or("", Reason::code)))?;
        let v1::Batch { origin, request_id, .. } = response.batch.unwrap_or_default();
        Ok(Reported { origin: origin.map(Into::into).unwrap_or_default(), request_id })
    }
}

impl Connection {
    /// What became of a batch whose event came without it: the batch as it is now, and the step that approved it, if the
    /// server states it.
    ///
    /// # Errors
    /// When the server is lost, or refuses for a reason that passes.
    pub async fn approved(&self, batch: BatchId) -> Result<(Change, Option<EventFacts>), CallError> {
        match self.get_with_steps(batch).await {
            Ok((record, steps)) => {
                let step = steps.into_iter().rfind(|step| step.state == BatchState::Approved);
                Ok((change(record.state, || Ok(record)), step))
            }
            // The feed begins again after the last event that was handled.
            Err(error) if error.is_passing() => Err(error),
            Err(error) => Ok((Change::Approved(Err(error.into_failures())), None)),
        }
    }
}

impl Feed {
    /// The right under which the feed is read.
    #[must_use]
    pub fn lease(&self) -> Lease {
        self.lease.clone()
    }

    /// Where answers to the server's questions go.
    #[must_use]
    pub fn answers(&self) -> Answers {
        self.answers.clone()
    }

    /// What comes next. Events come in the order of their revisions, each one more than the last.
    ///
    /// # Errors
    /// When the server ends the feed, is lost, lets three heartbeats pass without a message, or sends an event that is not
    /// the next one (EVENT_ORDER). After an error the feed is of no more use.
    pub async fn next(&mut self) -> Result<Incoming, CallError> {
        let patience = self.lease.heartbeat * 3;
        loop {
            let Some(message) = self.connection.within(patience, self.stream.message()).await? else {
                return Err(CallError::unreachable(&self.connection.server, "it ended the feed".to_owned()));
            };
            match message.message {
                Some(Message::Event(event)) => {
                    if self.last.0.checked_add(1) != Some(event.revision) {
                        let found = format!("the server sent the event of revision {}", event.revision);
                        return Err(out_of_order(&found, self.last));
                    }
                    self.last = Revision(event.revision);
                    return self.connection.blocking(move || feed_event(event)).await.map(Incoming::Event);
                }
                Some(Message::Heartbeat(heartbeat)) if heartbeat.revision > self.last.0 => {
                    let found =
                        format!("the server says that it sent every event up to revision {}", heartbeat.revision);
                    return Err(out_of_order(&found, self.last));
                }
                Some(Message::Question(question)) => return Ok(Incoming::Question(question.into())),
                Some(Message::QuestionCancelled(cancelled)) => return Ok(Incoming::Cancelled(cancelled.question_id)),
                // A message that this version does not know is a sign of life all the same.
                Some(Message::Heartbeat(_) | Message::Lease(_)) | None => {}
            }
        }
    }
}

fn out_of_order(found: &str, last: Revision) -> CallError {
    let message = format!("{found}, expected the one after revision {}", last.0);
    Failure::new(Reason::InvalidState, message).detail(Detail::EventOrder).into()
}

fn feed_event(event: v1::BatchEvent) -> FeedEvent {
    let revision = Revision(event.revision);
    let batch = event.batch.as_ref().and_then(|batch| batch.batch_id.parse().ok());
    // A cursor of another event must not be kept as this one's.
    let cursor = event.cursor.clone().and_then(|cursor| Cursor::try_from(cursor).ok());
    let cursor = cursor.filter(|cursor| cursor.revision == revision);
    let step = EventFacts::try_from(&event).ok();
    let change = readable(event).unwrap_or_else(|why| Change::Unreadable(Box::new(why)));
    FeedEvent { revision, cursor, batch, step, change }
}

fn readable(event: v1::BatchEvent) -> Result<Change, Failure> {
    if let Some(damage) = event.damage {
        let message = format!("the server's record is damaged: {}", damage.message);
        return Err(Failure::new(Reason::Internal, message).hint("its operator has to act: `aptix-server verify`"));
    }
    let batch = event.batch.ok_or_else(|| absent("batch"))?;
    let head = v1::Batch { edit: None, report: None, ..batch.clone() };
    let state = BatchOutline::try_from(head)?.state;
    if batch.content_omitted && state == BatchState::Approved {
        return Ok(Change::Omitted);
    }
    Ok(change(state, || BatchRecord::try_from(batch)))
}

fn change(state: BatchState, record: impl FnOnce() -> Result<BatchRecord, Vec<Failure>>) -> Change {
    match state {
        BatchState::Approved => Change::Approved(record().map(Box::new)),
        state if state.is_open() => Change::Waits,
        _ => Change::Ended,
    }
}
