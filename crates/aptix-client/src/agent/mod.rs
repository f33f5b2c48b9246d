//! The agent: watches a workspace's batches, applies those that may be, and reports what became of each.
//!
//! It trusts nothing the server says: every batch is checked again, and its own human decides.

mod approval;
mod blobs;
mod delivery;
mod executor;
mod inbox;
mod log;
mod passed;
mod queue;
mod quota;
mod session;
mod told;

use std::path::PathBuf;
use std::sync::{Arc, Once};
use std::time::{Duration, Instant};

use aptix_model::failure::Failure;
use aptix_model::id::{AgentId, Revision, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

pub use approval::{Approve, Attended};

use self::approval::Approval;
use self::quota::Quota;
use crate::connection::backoff::Backoff;
use crate::connection::{CallError, LeaseSecret, Position, ServerUrl};
use crate::policy::files::PolicyFiles;
use crate::policy::maintenance;
use crate::workspace::Workspace;
use crate::workspace::keep::notes::{self, NoteError, Noted};
use crate::workspace::keep::outbox::{self, OutboxError};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::state::StateError;

/// The first and the longest wait for a server.
const RECONNECT: (Duration, Duration) = (Duration::from_millis(200), Duration::from_secs(10));

/// A connection that lasted so long was one: the next attempt comes soon.
const SERVED: Duration = Duration::from_secs(120);

/// What an agent serves, and how.
#[derive(Clone, Debug)]
pub struct Service {
    /// The server.
    pub server: ServerUrl,
    /// The workspace on it.
    pub workspace: WorkspaceId,
    /// Who decides about writes.
    pub approve: Approve,
    /// Who there is to be asked.
    pub attended: Attended,
    /// What batches may do; read again for every batch.
    pub policy: Arc<PolicyFiles>,
}

/// Why an agent cannot go on. What the server does is never a reason.
#[derive(Debug, thiserror::Error)]
pub enum AgentError {
    /// Another agent serves one of the roots.
    #[error("another agent serves this root, or one in it or around it (it holds {}); stop it first", lock.display())]
    Served {
        /// The lock it holds.
        lock: PathBuf,
    },
    /// The state directory cannot be used.
    #[error(transparent)]
    State(StateError),
    /// The state directory is no more, and cannot be made behind the wall.
    #[error(
        "the state directory {} was removed while the agent ran: what it held, such as what undoes batches, is gone; start \
         the agent again, which makes a new one",
        .0.display()
    )]
    StateRemoved(PathBuf),
    /// What has to be remembered between runs cannot be.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// Reports cannot be kept.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A batch stopped half-way, or a root is gone.
    #[error("{}; {}", .0, .0.hint.as_deref().unwrap_or("nothing is done until somebody has looked"))]
    NeedsOperator(Box<Failure>),
    /// A step on the disk ended without a result.
    #[error("a step on the disk ended without a result: {0}")]
    Step(#[from] tokio::task::JoinError),
}

impl From<StateError> for AgentError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Busy { path } => Self::Served { lock: path },
            error => Self::State(error),
        }
    }
}

/// An agent at work.
struct Agent {
    local: Arc<Workspace>,
    service: Service,
    id: AgentId,
    approval: Arc<Approval>,
    stop: CancellationToken,
    /// Bounds how many batches are refused in a minute.
    quota: Arc<Quota>,
    /// A root that has another path now is told once.
    moved: Arc<Once>,
}

impl Agent {
    /// Keeps how far the server's events have been dealt with, for the next start. Where that fails, they come again.
    async fn remember(&self, position: Position) -> Result<(), AgentError> {
        let (local, Service { server, workspace, .. }) = (Arc::clone(&self.local), self.service.clone());
        let kept = blocking(move || {
            let noted = match position {
                Position::Revision(revision) => Noted { revision, cursor: None },
                Position::Cursor(cursor) => Noted { revision: cursor.revision, cursor: Some(cursor) },
            };
            notes::put_position(&local, &server.to_string(), &workspace, noted)
        });
        let kept = kept.await?;
        match (kept, removed_state(&self.local)) {
            (Ok(()), _) => Ok(()),
            (Err(error), Some(_)) => Err(error.into()),
            (Err(error), None) => {
                tracing::warn!(%error, "how far the server's events have been dealt with is not kept");
                Ok(())
            }
        }
    }
}

/// A state directory that was removed, if one was.
fn removed_state(local: &Workspace) -> Option<PathBuf> {
    let mut states = local.roots().iter().map(Root::state);
    states.find(|state| !state.exists()).map(|state| state.path().to_owned())
}

/// Serves a workspace until `stop` is cancelled; then the batch in hand is finished first.
///
/// `new_id` is what the agent is called from now on, if it has no name yet.
///
/// # Errors
/// When another agent serves one of the roots, or the disk refuses what the agent cannot work without.
pub async fn serve(
    local: Workspace,
    service: Service,
    new_id: AgentId,
    stop: CancellationToken,
) -> Result<(), AgentError> {
    let _locks = local.lock_agent()?;
    outbox::adopt(&local)?;
    let id = notes::agent_id(&local, new_id)?;
    let noted = notes::position(&local, &service.server.to_string(), &service.workspace)?;
    let position = noted.map_or(Position::START, |noted| match noted.cursor {
        Some(cursor) => Position::Cursor(cursor),
        None => Position::Revision(noted.revision),
    });
    let mut standing = Standing { position, held: LeaseSecret::default() };
    if let Err(error) = service.policy.read(&local) {
        tracing::error!(%error, "every batch is refused until the policy can be followed");
    }
    let approval = Arc::new(Approval::new(service.approve, service.attended));
    let moved = Arc::new(Once::new());
    let agent = Arc::new(Agent { local: Arc::new(local), service, id, approval, stop, quota: Arc::default(), moved });
    let mut upkeep = JoinSet::new();
    upkeep.spawn(maintenance::run(Arc::clone(&agent.local), Arc::clone(&agent.service.policy)));
    let ended = serve_on(&agent, &mut standing).await.map_err(|error| match removed_state(&agent.local) {
        Some(path) => AgentError::StateRemoved(path),
        None => error,
    });
    upkeep.shutdown().await;
    ended
}

/// What passes from one connection to the next.
struct Standing {
    /// How far the events have been dealt with.
    position: Position,
    /// The secret of the lease that was held last.
    held: LeaseSecret,
}

/// Serves over one connection after the other.
async fn serve_on(agent: &Arc<Agent>, standing: &mut Standing) -> Result<(), AgentError> {
    let mut backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
    loop {
        let (before, began) = (standing.position, Instant::now());
        let ended = session::run(agent, standing).await;
        if standing.position != before {
            agent.remember(standing.position).await?;
        }
        if standing.position != before || began.elapsed() > SERVED {
            backoff = Backoff::new(RECONNECT.0, RECONNECT.1);
        }
        let Some(why) = ended? else { return Ok(()) };
        if let Some(start) = other_start(&why) {
            tracing::warn!(%why, from = %start, "the server does not have the events asked for");
            standing.position = Position::Revision(start);
        }
        let wait = backoff.wait();
        tracing::warn!(%why, milliseconds = wait.as_millis(), "waiting before connecting to {} again", agent.service.server);
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = agent.stop.cancelled() => return Ok(()),
        }
    }
}

/// Where to read from when the server does not have what was asked for. Batches that come again are told by their
/// state and by the outbox.
fn other_start(why: &CallError) -> Option<Revision> {
    let CallError::Refused { failures, oldest } = why else { return None };
    failures.iter().find_map(|failure| match (failure.reason, failure.detail) {
        (Reason::Compacted, _) => Some(Revision(oldest.unwrap_or(1).saturating_sub(1))),
        (Reason::HistoryChanged, _) | (_, Some(Detail::FutureRevision)) => Some(Revision(0)),
        _ => None,
    })
}

/// Does work that waits for a disk, away from the threads that must not wait.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, AgentError> {
    Ok(tokio::task::spawn_blocking(work).await?)
}
