//! One connection, from the lease to its loss.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;
use tokio_util::sync::CancellationToken;

use super::attempt::Unfinished;
use super::error::AgentError;
use super::inbox::{self, Arrival, Inbox};
use super::questions::Desk;
use super::queue::Queue;
use super::service::{Agent, Progress, Session};
use super::{delivery, executor, local_batches, screen};
use crate::connection::{CallError, Connection, Feed, Position};

/// How often reports that could not be delivered are tried again, and the position in the events is kept.
const REDELIVERY: Duration = Duration::from_secs(15);
/// How long running batches may take once the agent is asked to stop.
const GRACE: Duration = Duration::from_secs(8);

/// Serves until the connection is lost, and returns why; nothing when the agent is to stop.
pub(super) async fn run(agent: &Arc<Agent>, progress: &mut Progress) -> Result<Option<CallError>, AgentError> {
    let opened = tokio::select! {
        opened = open(agent, progress) => opened,
        () = agent.stop.cancelled() => return Ok(None),
    };
    let (connection, feed) = match opened {
        Ok(opened) => opened,
        Err(error) => return Ok(Some(error)),
    };
    let lease = feed.lease();
    progress.held = lease.secret.clone();
    tracing::info!(WorkspaceId = %agent.service.workspace, AgentId = %agent.id, epoch = lease.epoch, server_version = ?lease.server_version, after = %progress.position.revision(),
        "serving {}", agent.service.server.url);
    screen::serving(&agent.service);
    let history = match progress.position {
        Position::Cursor(cursor) => OnceLock::from(cursor.history),
        Position::Revision(_) => OnceLock::new(),
    };
    let alive = CancellationToken::new();
    let desk = Desk::new(Arc::clone(agent), (connection.clone(), feed.answers()), alive.clone());
    let inbox = Inbox { feed, connection: connection.clone(), desk, alive: alive.clone() };
    let session = Arc::new(Session::new(Arc::clone(agent), (connection, lease), history, alive));
    let delivered = CancellationToken::new();
    let local = async {
        // A report that waits may name contents that are older than what is on disk.
        delivered.cancelled().await;
        local_batches::run(&session).await
    };
    let grace = async {
        agent.stop.cancelled().await;
        tokio::time::sleep(GRACE).await;
    };
    let is_unbound = progress.is_unbound();
    let (sender, mut arrivals) = mpsc::channel(inbox::AHEAD);
    let mut reader = JoinSet::new();
    reader.spawn(inbox.read_ahead(sender));
    tokio::select! {
        outcome = work(&session, &mut arrivals, (&mut progress.position, is_unbound), &delivered) => outcome?,
        Err(error) = local => return Err(error),
        () = grace => tracing::warn!("stopping before everything is reported; it is reported at the next start"),
    }
    if agent.stop.is_cancelled() {
        return Ok(None);
    }
    // A reader that has ended returns why; one that has not is of no use without the lease.
    reader.abort_all();
    Ok(Some(match reader.join_next().await {
        Some(Ok(why)) => why,
        _ => CallError::refused(Failure::new(Reason::LeaseLost, "the lease is not in force any more")),
    }))
}

async fn open(agent: &Agent, progress: &Progress) -> Result<(Connection, Feed), CallError> {
    let connection = Connection::open(&agent.service.server, &agent.service.workspace).await?;
    let feed = connection.serve(&agent.id, agent.presence(), progress.position, &progress.held).await?;
    Ok((connection, feed))
}

/// Delivers the reports that wait, and says so by `delivered`; then handles event after event until the agent stops or the connection is dead; then
/// finishes the batches that run.
async fn work(
    session: &Arc<Session>,
    arrivals: &mut mpsc::Receiver<Arrival>,
    (position, is_unbound): (&mut Position, bool),
    delivered: &CancellationToken,
) -> Result<(), AgentError> {
    let agent = &session.agent;
    delivery::deliver_all(Arc::clone(session)).await?;
    delivered.cancel();
    let mut redelivery = tokio::time::interval(REDELIVERY);
    redelivery.set_missed_tick_behavior(MissedTickBehavior::Delay);
    redelivery.reset();
    let (mut queue, mut running) = (Queue::after(*position), JoinSet::new());
    let mut delivering = JoinSet::new();
    let (mut ends, mut starts_over) = (false, false);
    loop {
        while !ends && let Some((revision, work)) = queue.begin() {
            let session = Arc::clone(session);
            let batch = work.batch;
            session.handle(batch, true);
            running.spawn(async move { ((revision, batch), executor::handle(&session, work).await) });
        }
        *position = queue.resume();
        if ends && running.is_empty() {
            if starts_over {
                *position = Position::START;
            }
            return Ok(());
        }
        tokio::select! {
            biased;
            () = agent.stop.cancelled(), if !ends => ends = true,
            () = session.alive.cancelled(), if !ends => ends = true,
            Some(ended) = running.join_next() => match ended? {
                ((revision, batch), Ok(()) | Err(Unfinished::Withdrawn)) => {
                    session.handle(batch, false);
                    queue.end(revision);
                    if session.is_refused(batch) {
                        queue.release(batch);
                    }
                }
                // It has to come again, and with it all that came after it.
                (_, Err(Unfinished::Interrupted)) => ends = true,
                (_, Err(Unfinished::Failed(error))) => return Err(error),
            },
            arrival = arrivals.recv(), if !ends && !queue.is_full() => match arrival {
                Some(arrival) if is_unbound && arrival.cursor.is_some() => {
                    tracing::warn!("the server names its history now: its events are read from the first one");
                    (ends, starts_over) = (true, true);
                }
                Some(arrival) => add(session, &mut queue, arrival),
                None => ends = true,
            },
            Some(delivered) = delivering.join_next() => {
                delivered??;
                session.compare_now();
                session.refusals().wrong.into_iter().for_each(|batch| queue.release(batch));
            }
            _ = redelivery.tick(), if delivering.is_empty() => {
                agent.remember(*position).await?;
                delivering.spawn(delivery::deliver_all(Arc::clone(session)));
            }
        }
    }
}

/// Adds the next event, which may be the first one that names the history.
fn add(session: &Session, queue: &mut Queue, arrival: Arrival) {
    if let Some(cursor) = arrival.cursor {
        session.history.get_or_init(|| cursor.history);
    }
    let root = match session.agent.local.roots() {
        [root] => Some(root.name()),
        _ => None,
    };
    queue.add(arrival, root);
}
