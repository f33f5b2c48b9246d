//! What an agent serves, what it holds while it does, and how far it has come.

use std::path::PathBuf;
use std::sync::{Arc, Once};

use aptix_model::id::{AgentId, WorkspaceId};
use tokio_util::sync::CancellationToken;

use super::approval::{Approval, Approve, Attended};
use super::error::{AgentError, blocking};
use super::quota::Quota;
use crate::connection::{LeaseSecret, Position, ServerUrl};
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
}

/// An agent at work.
pub(super) struct Agent {
    pub(super) local: Arc<Workspace>,
    pub(super) service: Service,
    pub(super) id: AgentId,
    pub(super) approval: Arc<Approval>,
    pub(super) stop: CancellationToken,
    /// Bounds how many batches are refused in a minute.
    pub(super) quota: Arc<Quota>,
    /// A root that has another path now is told once.
    pub(super) moved: Arc<Once>,
}

impl Agent {
    /// Keeps how far the server's events have been dealt with, for the next start. Where that fails, they come again.
    pub(super) async fn remember(&self, position: Position) -> Result<(), AgentError> {
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
pub(super) fn removed_state(local: &Workspace) -> Option<PathBuf> {
    let mut states = local.roots().iter().map(Root::state);
    states.find(|state| !state.exists()).map(|state| state.path().to_owned())
}

/// What passes from one connection to the next.
pub(super) struct Progress {
    /// How far the events have been dealt with.
    pub(super) position: Position,
    /// The secret of the lease that was held last.
    pub(super) held: LeaseSecret,
}
