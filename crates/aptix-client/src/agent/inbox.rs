//! Reads the connection ahead, so that a dead connection and a withdrawn batch are noticed, and questions are taken up, while
//! batches run or a person is asked.

use std::collections::HashMap;

use aptix_model::batch_event::EventFacts;
use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::open_batches::Step;
use super::questions::Desk;
use crate::connection::{CallError, Change, Connection, Feed, FeedEvent, Incoming};

/// Events read ahead with their batches, of a message's size at most each. The batches of others are fetched when it is their
/// turn.
pub(super) const AHEAD: usize = 8;

/// Events read ahead. While so many wait, the server has to keep the others.
const NOTED: usize = 4096;

/// An event that waits for its turn.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) revision: Revision,
    /// The feed's position after it, if the server states one.
    pub(super) cursor: Option<Cursor>,
    /// Whether it frees or ends a batch, if the server states the step that it is.
    pub(super) step: Option<Step>,
    /// The batch, if it is free to be applied.
    pub(super) work: Option<Work>,
}

/// A batch that is free to be applied.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) batch: BatchId,
    /// The batch, or why it cannot be understood.
    pub(super) content: Result<Box<BatchRecord>, Vec<Failure>>,
    /// The step that let it be applied, if the server states it.
    pub(super) step: Option<EventFacts>,
    /// Cancelled when the batch must no longer be applied: it was withdrawn, or the connection is dead.
    pub(super) withdrawn: CancellationToken,
}

/// What comes over one connection.
pub(super) struct Inbox {
    pub(super) feed: Feed,
    /// Fetches what an event leaves out.
    pub(super) connection: Connection,
    pub(super) desk: Desk,
    /// Cancelled when the connection is dead.
    pub(super) alive: CancellationToken,
}

/// An event that was read, with its batch only if few others wait before it.
struct Noted {
    revision: Revision,
    cursor: Option<Cursor>,
    means: Option<Step>,
    step: Option<EventFacts>,
    work: Option<(BatchId, Change, CancellationToken)>,
}

impl Inbox {
    /// Reads the feed until it ends, and returns why. From then on nothing that came by it may be written: `alive` is
    /// cancelled.
    ///
    /// Questions are taken up as they come, however many events wait before them.
    pub(super) async fn read_ahead(self, arrivals: mpsc::Sender<Arrival>) -> CallError {
        let Self { feed, connection, desk, alive } = self;
        let _dead_at_the_end = alive.clone().drop_guard();
        let (sender, noted) = mpsc::channel(NOTED);
        tokio::select! {
            why = read(feed, desk, &alive, sender) => why,
            why = forward(&connection, noted, arrivals) => why,
        }
    }
}

/// Reads message after message.
async fn read(mut feed: Feed, mut desk: Desk, alive: &CancellationToken, events: mpsc::Sender<Noted>) -> CallError {
    let mut waiting = HashMap::new();
    loop {
        match feed.next().await {
            Ok(Incoming::Event(event)) => {
                let is_near = events.capacity() + AHEAD > NOTED;
                if events.send(noted(event, is_near, &mut waiting, alive)).await.is_err() {
                    std::future::pending::<()>().await;
                }
            }
            Ok(Incoming::Question(question)) => desk.ask(question),
            Ok(Incoming::Cancelled(number)) => desk.cancel(number),
            Err(error) => return error,
        }
    }
}

/// Hands the events on, each with its batch.
async fn forward(
    connection: &Connection,
    mut events: mpsc::Receiver<Noted>,
    arrivals: mpsc::Sender<Arrival>,
) -> CallError {
    while let Some(Noted { revision, cursor, means, step, work }) = events.recv().await {
        let work = match work {
            Some((batch, Change::Omitted, withdrawn)) => match connection.approved(batch).await {
                Ok((Change::Approved(content), step)) => Some(Work { batch, content, step, withdrawn }),
                Ok(_) => None,
                Err(error) => return error,
            },
            Some((batch, Change::Approved(content), withdrawn)) => Some(Work { batch, content, step, withdrawn }),
            _ => None,
        };
        if arrivals.send(Arrival { revision, cursor, step: means, work }).await.is_err() {
            break;
        }
    }
    std::future::pending().await
}

/// What is kept of an event. `waiting` holds the tokens of batches that may be applied.
fn noted(
    event: FeedEvent,
    is_near: bool,
    waiting: &mut HashMap<BatchId, CancellationToken>,
    alive: &CancellationToken,
) -> Noted {
    let FeedEvent { revision, cursor, batch, step, change } = event;
    if let Change::Unreadable(why) = &change {
        tracing::error!(%revision, BatchId = batch.map(tracing::field::display), %why,
            "an event cannot be understood and is passed over; a newer version of aptix may be needed");
    }
    let means = batch.zip(step.as_ref()).and_then(|(batch, step)| meaning(batch, step, &change));
    let work = match (batch, change) {
        (Some(batch), change @ (Change::Approved(_) | Change::Omitted)) => {
            // A batch comes twice if it was approved before the first event about it was sent. That event's own step is an
            // earlier one: the step that approved the batch is fetched with it.
            let withdrawn = waiting.entry(batch).or_insert_with(|| alive.child_token()).clone();
            let is_complete = is_near && step.as_ref().is_none_or(|step| step.state == BatchState::Approved);
            Some((batch, if is_complete { change } else { Change::Omitted }, withdrawn))
        }
        // After an unreadable event the batch is not known to be free to be applied.
        (Some(batch), Change::Ended | Change::Unreadable(_)) => {
            if let Some(token) = waiting.remove(&batch) {
                token.cancel();
            }
            None
        }
        (Some(_), Change::Waits) | (None, _) => None,
    };
    // Of an event that waits behind many others little is kept.
    Noted { revision, cursor, means, step: step.filter(|_| is_near), work }
}

/// What an event means for the position to resume from. The step is that of the event, and the change that of the batch as it is
/// now: one that has ended since may be open again after a restore.
fn meaning(batch: BatchId, step: &EventFacts, change: &Change) -> Option<Step> {
    if !step.state.is_open() {
        return Some(Step::Ends(batch));
    }
    let is_free = step.state == BatchState::Approved || matches!(change, Change::Approved(_) | Change::Omitted);
    is_free.then_some(Step::Frees(batch))
}
