//! The agent: watches a workspace's batches, applies those that may be, and reports what became of each.
//!
//! It trusts nothing that the server sends: every batch is checked again, and the agent's own user decides.

mod agreement;
mod answer_places;
mod approval;
mod attempt;
mod blobs;
mod cloud_copy;
mod delivery;
mod editors;
mod error;
mod executor;
mod inbox;
mod local_batches;
mod local_entry;
mod open_batches;
mod questions;
mod queue;
mod quota;
mod replies;
mod report;
mod screen;
mod service;
mod session;
mod tool_replies;
mod waiting;
mod warnings;

use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use aptix_model::id::AgentId;
use aptix_model::reason::{Detail, Reason};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use self::approval::{Approve, Attended};
pub use self::error::AgentError;
pub use self::replies::FromDisk;
pub use self::service::Service;

use self::answer_places::AnswerPlaces;
use self::approval::Approval;
use self::service::{Agent, Progress, removed_state};
use crate::connection::backoff::Backoff;
use crate::connection::{CallError, LeaseSecret, Position};
use crate::policy::maintenance;
use crate::workspace::keep::{notes, outbox};
use crate::workspace::roots::workspace::Workspace;

/// The waits for a server.
const RECONNECT: Backoff = Backoff::new(Duration::from_millis(200), Duration::from_secs(10));

/// After a connection that lasted this long the next attempt comes soon.
const SERVED: Duration = Duration::from_secs(120);

/// Serves a workspace until `stop` is cancelled; the batches that run are finished first.
///
/// `new_id` is the agent's name from now on, if it has none yet.
///
/// # Errors
/// When another agent serves one of the roots, when the user has not agreed to what is to be served, or when the disk refuses what
/// the agent cannot work without.
pub async fn serve(
    local: Workspace,
    service: Service,
    new_id: AgentId,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let locks = local.lock_agent()?;
    let board = service.review.as_ref().map(|page| page.board());
    let approval = Approval::new(service.approve, service.attended, board);
    if !agreement::agree(&local, &service, &approval, &stop).await? {
        return Ok(());
    }
    outbox::adopt::adopt(&local)?;
    let id = notes::agent_id(&local, new_id)?;
    let noted = notes::position(&local, &service.server.url.to_string(), &service.workspace)?;
    let position = noted.map_or(Position::START, |noted| match noted.cursor {
        Some(cursor) => Position::Cursor(cursor),
        None => Position::Revision(noted.revision),
    });
    let mut progress = Progress { position, beginning: None, held: LeaseSecret::default() };
    if let Err(error) = local_batches::begin(&local, &service) {
        tracing::warn!(%error, "the history cannot be read, batches of this workstation wait");
    }
    if let Err(error) = service.policy.read(&local) {
        tracing::error!(%error, "every batch is refused until the policy can be followed");
    }
    let (quota, places, moved) = (Arc::default(), AnswerPlaces::default(), Once::new());
    let agent = Arc::new(Agent { local: Arc::new(local), service, id, approval, stop, quota, places, moved });
    let mut upkeep = JoinSet::new();
    upkeep.spawn(maintenance::run(Arc::clone(&agent.local), Arc::clone(&agent.service.policy)));
    editors::listen(&agent.local, &locks, &mut upkeep);
    if let Some(page) = agent.service.review.clone() {
        let local = Arc::clone(&agent.local);
        upkeep.spawn(async move { match page.serve(local).await {} });
    }
    let ended = serve_on(&agent, &mut progress).await.map_err(|error| match removed_state(&agent.local) {
        Some(path) => AgentError::StateRemoved(path),
        None => error,
    });
    upkeep.shutdown().await;
    drop(locks);
    ended
}

/// Serves over one connection after the other.
async fn serve_on(agent: &Arc<Agent>, progress: &mut Progress) -> Result<(), AgentError> {
    let mut backoff = RECONNECT;
    loop {
        let (before, began) = (progress.position, Instant::now());
        let ended = session::run(agent, progress).await;
        if progress.position != before {
            agent.remember(progress.position).await?;
        }
        if progress.position != before || began.elapsed() > SERVED {
            backoff = RECONNECT;
        }
        let Some(why) = ended? else { return Ok(()) };
        if let Some(start) = other_start(&why) {
            tracing::warn!(%why, from = %start.revision(), "the server does not have the events asked for");
            (progress.position, progress.beginning) = (start, Some(start.revision()));
        }
        let wait = backoff.wait_after(&why);
        tracing::warn!(%why, milliseconds = wait.as_millis(), "waiting before connecting to {} again", agent.service.server.url);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = agent.stop.cancelled() => return Ok(()),
        }
    }
}

/// Where to read from when the server does not have the events asked for. The states and the outbox identify batches that come
/// again.
fn other_start(why: &CallError) -> Option<Position> {
    let CallError::Refused { failures, beginning, .. } = why else { return None };
    failures.iter().find_map(|failure| match (failure.reason, failure.detail) {
        (Reason::Compacted, _) => Some(beginning.unwrap_or(Position::START)),
        (Reason::HistoryChanged, _) | (_, Some(Detail::FutureRevision)) => Some(Position::START),
        _ => None,
    })
}
