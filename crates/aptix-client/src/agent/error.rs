//! Why an agent cannot go on.

use std::path::PathBuf;

use aptix_model::failure::Failure;

use crate::workspace::keep::outbox::error::OutboxError;
use crate::workspace::roots::state::StateError;

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
    /// Reports cannot be kept.
    #[error(transparent)]
    Outbox(#[from] OutboxError),
    /// A batch stopped half-way, or a root is gone.
    #[error("{}\nhint: {}", .0, .0.hint.as_deref().unwrap_or("nothing is done until the user has acted"))]
    NeedsOperator(Box<Failure>),
    /// The user agreed to have something else served from these roots, or what they agreed to cannot be read.
    #[error("{}\nhint: {}", .0, .0.hint.as_deref().unwrap_or("the user has to agree"))]
    NotAgreed(Box<Failure>),
    /// A step on the disk ended without a result.
    #[error("a step on the disk ended without a result: {0}")]
    Step(#[from] tokio::task::JoinError),
}

impl From<StateError> for AgentError {
    fn from(error: StateError) -> Self {
        match error {
            StateError::Busy(path) => Self::Served { lock: path },
            error => Self::State(error),
        }
    }
}
