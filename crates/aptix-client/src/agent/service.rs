//! What an agent serves, and what it holds: for its whole run, and for one connection.

use std::collections::BTreeSet;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, Once, OnceLock, PoisonError};

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::events::trace::{Trace, Via};
use aptix_model::id::{AgentId, BatchId, HistoryId, WorkspaceId};
use aptix_model::presence::{ApprovalMode, Presence};
use aptix_model::report::Report;
use tokio_util::sync::CancellationToken;
use tracing::Span;

use super::answer_places::AnswerPlaces;
use super::approval::{Approval, Approve, Attended};
use super::error::AgentError;
use super::quota::Quota;
use crate::connection::question::Answering;
use crate::connection::receipt::Receipt;
use crate::connection::{Connection, Lease, LeaseSecret, Position, ServerUrl};
use crate::policy::files::PolicyFiles;
use crate::workspace::keep::notes::{self, Noted};
use crate::workspace::roots::root::Root;
use crate::workspace::roots::workspace::Workspace;

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
    /// Who answers the server's questions.
    pub answering: Arc<dyn Answering>,
}

/// A running agent.
pub(super) struct Agent {
    pub(super) local: Arc<Workspace>,
    pub(super) service: Service,
    pub(super) id: AgentId,
    pub(super) approval: Approval,
    pub(super) stop: CancellationToken,
    /// Bounds how many batches are refused in a minute.
    pub(super) quota: Arc<Quota>,
    /// Places for the questions that are worked on.
    pub(super) places: AnswerPlaces,
    /// Logs once that a root has moved.
    pub(super) moved: Once,
}

impl Agent {
    /// Runs work that waits for a disk or a person on the blocking pool.
    pub(super) async fn blocking<T: Send + 'static>(
        self: &Arc<Self>,
        work: impl FnOnce(&Self) -> T + Send + 'static,
    ) -> Result<T, AgentError> {
        let (agent, span) = (Arc::clone(self), Span::current());
        Ok(tokio::task::spawn_blocking(move || span.in_scope(|| work(&agent))).await?)
    }

    /// What the server is told of this agent.
    pub(super) fn presence(&self) -> Presence {
        Presence {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            roots: self.local.roots().iter().map(|root| root.name().to_owned()).collect(),
            mode: Some(match self.service.approve {
                Approve::Ask => ApprovalMode::Ask,
                Approve::Auto => ApprovalMode::Auto,
                Approve::Never => ApprovalMode::Never,
            }),
            features: self.service.answering.kinds().iter().map(|kind| kind.feature().to_owned()).collect(),
        }
    }

    /// Who batches of the workstation itself are by.
    pub(super) fn actor(&self) -> Actor {
        Actor { kind: ActorKind::Agent, name: Some(self.id.to_string()) }
    }

    /// Keeps the position of the last event that was handled for the next start. Where that fails, events come again.
    pub(super) async fn remember(self: &Arc<Self>, position: Position) -> Result<(), AgentError> {
        let noted = match position {
            Position::Revision(revision) => Noted { revision, cursor: None },
            Position::Cursor(cursor) => Noted { revision: cursor.revision, cursor: Some(cursor) },
        };
        let kept = self.blocking(move |agent| {
            let Service { server, workspace, .. } = &agent.service;
            notes::put_position(&agent.local, &server.to_string(), workspace, noted)
        });
        match kept.await? {
            Err(error) if removed_state(&self.local).is_some() => return Err(error.into()),
            Err(error) => tracing::warn!(%error, "the position in the server's events is not kept"),
            Ok(()) => {}
        }
        Ok(())
    }
}

/// A state directory that was removed, if one was.
pub(super) fn removed_state(local: &Workspace) -> Option<PathBuf> {
    let mut states = local.roots().iter().map(Root::state);
    states.find(|state| !state.exists()).map(|state| state.path().to_owned())
}

/// What passes from one connection to the next.
pub(super) struct Progress {
    /// The last event that was handled.
    pub(super) position: Position,
    /// The secret of the lease that was held last.
    pub(super) held: LeaseSecret,
}

/// A connection to the server under one lease.
pub(super) struct Session {
    pub(super) agent: Arc<Agent>,
    pub(super) connection: Connection,
    pub(super) lease: Lease,
    /// The history of the server's store, once the feed has named it.
    pub(super) history: OnceLock<HistoryId>,
    /// Cancelled when the lease or the connection is lost.
    pub(super) alive: CancellationToken,
    /// Batches whose reports the server refuses.
    refused: Mutex<BTreeSet<BatchId>>,
}

impl Session {
    pub(super) fn new(
        agent: Arc<Agent>,
        (connection, lease): (Connection, Lease),
        history: OnceLock<HistoryId>,
        alive: CancellationToken,
    ) -> Self {
        Self { agent, connection, lease, history, alive, refused: Mutex::default() }
    }

    /// Notes that the server refuses the report of a batch: nothing waits for it any more.
    pub(super) fn refuse(&self, batch: BatchId) {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).insert(batch);
    }

    /// The batches whose reports the server refuses.
    pub(super) fn refused(&self) -> BTreeSet<BatchId> {
        self.refused.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What log events say of a batch of which nothing else is known.
    pub(super) fn trace(&self, batch: BatchId) -> Trace {
        let workspace = Some(self.agent.service.workspace.to_string());
        Trace { workspace, batch: Some(batch), ..Trace::new(Via::Agent) }
    }

    /// The receipt of a batch of the workspace that is served.
    pub(super) fn receipt(&self, batch: BatchId, report: Report) -> Receipt {
        Receipt { workspace: self.agent.service.workspace.clone(), batch, report }
    }
}
