//! Reads the feed ahead, so that a dead connection and a withdrawn batch are noticed while batches run.

use std::collections::HashMap;

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision};
use aptix_model::record::BatchRecord;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use crate::connection::{CallError, Change, Feed, FeedEvent};

/// Events read ahead, of a message's size at most each. While so many wait, the server has to keep the others.
pub(super) const AHEAD: usize = 8;

/// An event that waits for its turn.
#[derive(Debug)]
pub(super) struct Arrival {
    pub(super) revision: Revision,
    /// The feed's position after it, if the server states one.
    pub(super) cursor: Option<Cursor>,
    /// The batch, if it is free to be applied.
    pub(super) work: Option<Work>,
}

/// A batch that is free to be applied.
#[derive(Debug)]
pub(super) struct Work {
    pub(super) batch: BatchId,
    /// The batch, or why it cannot be understood.
    pub(super) content: Result<Box<BatchRecord>, Vec<Failure>>,
    /// Cancelled when the batch must no longer be applied: it was withdrawn, or the connection is dead.
    pub(super) withdrawn: CancellationToken,
}

/// Reads the feed until it ends, and returns why. From then on nothing that came by it may be written: `alive` is
/// cancelled.
pub(super) async fn read_ahead(mut feed: Feed, arrivals: mpsc::Sender<Arrival>, alive: CancellationToken) -> CallError {
    let _dead_at_the_end = alive.clone().drop_guard();
    let mut waiting = HashMap::new();
    loop {
        let event = match feed.next().await {
            Ok(event) => event,
            Err(error) => return error,
        };
        if arrivals.send(arrival(event, &mut waiting, &alive)).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// The arrival of an event. `waiting` holds the tokens of batches that may be applied.
fn arrival(event: FeedEvent, waiting: &mut HashMap<BatchId, CancellationToken>, alive: &CancellationToken) -> Arrival {
    let FeedEvent { revision, cursor, batch, change } = event;
    if let Change::Unreadable(why) = &change {
        tracing::error!(%revision, BatchId = batch.map(tracing::field::display), %why,
            "an event cannot be understood and is passed over; a newer version of aptix may be needed");
    }
    let work = match (batch, change) {
        (Some(batch), Change::Approved(content)) => {
            let withdrawn = alive.child_token();
            waiting.insert(batch, withdrawn.clone());
            Some(Work { batch, content, withdrawn })
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
    Arrival { revision, cursor, work }
}
