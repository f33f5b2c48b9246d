//! One connection, from the lease to its loss.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::delivery::{self, LeasedConnection};
use super::error::AgentError;
use super::executor::{self, Handled};
use super::inbox;
use super::passed::Passed;
use super::queue::Queue;
use super::service::{Agent, Progress};
use crate::connection::{CallError, Connection, Feed, Position};
use crate::workspace::roots::root::Root;

/// How often reports that could not be delivered are tried again, and how far the events were dealt with is kept.
const REDELIVERY: Duration = Duration::from_secs(15);
/// How long the batch in hand may take once the agent is asked to stop.
const GRACE: Duration = Duration::from_secs(8);

/// Serves until the connection is lost, and says why; nothing when the agent is to stop.
pub(super) async fn run(agent: &Arc<Agent>, progress: &mut Progress) -> Result<Option<CallError>, AgentError> {
    let opened = tokio::select! {
        opened = open(agent, progress) => opened,
        () = agent.stop.cancelled() => return Ok(None),
    };
    let (connection, feed) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Some(error)),
    };
    progress.held = feed.lease().secret;
    let alive = CancellationToken::new();
    let history = match progress.position {
        Position::Cursor(cursor) => OnceLock::from(cursor.history),
        Position::Revision(_) => OnceLock::new(),
    };
    let (workspace, history) = (Arc::clone(&agent.local), Arc::new(history));
    let leased = LeasedConnection { workspace, connection, lease: feed.lease(), history, alive: alive.clone() };
    tracing::info!(workspace = %agent.service.workspace, agent = %agent.id, epoch = leased.lease.epoch, after = %progress.position.revision(),
        "serving {}", agent.service.server);
    let (sender, mut arrivals) = inbox::channel();
    let mut reader = JoinSet::new();
    reader.spawn(inbox::read_ahead(feed, sender, alive.clone()));
    tokio::select! {
        outcome = work(agent, &leased, &mut arrivals, &mut progress.position) => outcome?,
        () = grace_is_over(agent) => tracing::warn!("stopping before everything is reported; it is reported at the next start"),
    }
    if agent.stop.is_cancelled() {
        return Ok(None);
    }
    // A reader that has ended says why; one that has not is of no use without the lease.
    reader.abort_all();
    Ok(Some(match reader.join_next().await {
        Some(Ok(why)) => why,
        _ => CallError::Refused {
            failures: vec![Failure::new(Reason::LeaseLost, "the lease is not in force any more")],
            oldest: None,
        },
    }))
}

async fn open(agent: &Agent, progress: &Progress) -> Result<(Connection, Feed), CallError> {
    let connection = Connection::open(&agent.service.server, &agent.service.workspace).await?;
    let feed = connection.watch(&agent.id, progress.position, &progress.held).await?;
    Ok((connection, feed))
}

async fn grace_is_over(agent: &Agent) {
    agent.stop.cancelled().await;
    tokio::time::sleep(GRACE).await;
}

/// First what is owed, then event after event, until the agent stops or the connection is dead. Then what was begun is
/// brought to its end.
async fn work(
    agent: &Arc<Agent>,
    leased: &LeasedConnection,
    arrivals: &mut inbox::Arrivals,
    position: &mut Position,
) -> Result<(), AgentError> {
    delivery::deliver_all(leased).await?;
    let mut redelivery = tokio::time::interval(REDELIVERY);
    redelivery.reset();
    let root = agent.local.roots().first().map(Root::name).filter(|_| agent.local.roots().len() == 1);
    let (mut queue, mut begun) = (Queue::default(), JoinSet::new());
    let mut passed = Passed::after(*position);
    // A revision of no named history may be that of another one.
    let is_unbound = matches!(*position, Position::Revision(revision) if revision.0 > 0);
    let (mut ends, mut starts_over) = (false, false);
    loop {
        while !ends && let Some((ticket, work)) = queue.begin() {
            let (agent, leased) = (Arc::clone(agent), leased.clone());
            begun.spawn(async move { (ticket, executor::handle(&agent, &leased, work).await) });
        }
        *position = passed.up_to(queue.dealt_with(passed.last()));
        if ends && begun.is_empty() {
            if starts_over {
                *position = Position::START;
            }
            return Ok(());
        }
        tokio::select! {
            biased;
            () = agent.stop.cancelled(), if !ends => ends = true,
            () = leased.alive.cancelled(), if !ends => ends = true,
            Some(ended) = begun.join_next() => {
                let (ticket, dealt) = ended?;
                match dealt? {
                    Handled::Done => queue.end(ticket),
                    // It has to come again, and with it all that came after it.
                    Handled::Undone => ends = true,
                }
            }
            arrival = arrivals.recv(), if !ends && !queue.is_full() => match arrival {
                Some(arrival) => {
                    if is_unbound && arrival.cursor.is_some() {
                        tracing::warn!("the server names its history now: its events are read from the first one");
                        (ends, starts_over) = (true, true);
                        continue;
                    }
                    passed.add(&arrival);
                    if let Some(cursor) = arrival.cursor {
                        leased.history.get_or_init(|| cursor.history);
                    }
                    if let Some(work) = arrival.work {
                        queue.add(arrival.revision, work, root);
                    }
                }
                None => ends = true,
            },
            // While a batch is being reported nobody else reports it.
            _ = redelivery.tick(), if begun.is_empty() => {
                agent.remember(*position).await?;
                delivery::deliver_all(leased).await?;
            }
        }
    }
}
