//! The answer of a refused call. Every operation's error ends here; what a caller cannot act on is logged in full
//! and answered in general words (TUL-002 9).

use aptix_model::cursor::Cursor;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{Revision, WorkspaceId};
use aptix_model::reason::{Detail, Reason};

use crate::quota::OverLimit;
use crate::room::{Full, Scope};
use crate::store::StoreError;

/// A refused call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// The call itself is not acceptable; everything that is wrong with it.
    Invalid(Vec<Failure>),
    /// The call is well-formed, and is refused for this reason.
    Denied(Box<Failure>),
    /// The call names blobs that the workspace does not have: the reason, and which they are.
    BlobsMissing(Box<Failure>, Vec<Sha256Digest>),
    /// The call asks for events that are no longer kept: the reason, the first one that is, and the position before that, if it is
    /// known.
    Compacted(Box<Failure>, Revision, Option<Box<Cursor>>),
    /// The call is over a limit of its token or of the workspace that it names.
    OverLimit(Box<OverLimit>),
}

impl Refusal {
    /// Refuses a call for one reason.
    #[must_use]
    pub fn denied(failure: Failure) -> Self {
        Self::Denied(Box::new(failure))
    }

    /// Refuses a call that is not acceptable in one respect.
    #[must_use]
    pub fn invalid(failure: Failure) -> Self {
        Self::Invalid(vec![failure])
    }

    /// Every failure, the decisive one first.
    #[must_use]
    pub fn failures(&self) -> &[Failure] {
        match self {
            Self::Invalid(failures) => failures,
            Self::Denied(failure) | Self::BlobsMissing(failure, _) | Self::Compacted(failure, ..) => {
                std::slice::from_ref(failure)
            }
            Self::OverLimit(over) => std::slice::from_ref(&over.failure),
        }
    }
}

impl From<Vec<Failure>> for Refusal {
    fn from(failures: Vec<Failure>) -> Self {
        Self::Invalid(failures)
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self::invalid(failure)
    }
}

impl From<Box<OverLimit>> for Refusal {
    fn from(over: Box<OverLimit>) -> Self {
        over.note();
        Self::OverLimit(over)
    }
}

impl From<StoreError> for Refusal {
    fn from(error: StoreError) -> Self {
        Self::denied(match error {
            StoreError::Compacted { oldest } => return compacted(oldest, None),
            StoreError::Closed => shutting_down(),
            StoreError::BeingDeleted { workspace } => being_deleted(&workspace),
            StoreError::ReadOnly { .. } => {
                tracing::error!(%error, "call refused by the store");
                Failure::new(Reason::Unavailable, "the server's store takes no writes at present")
                    .detail(Detail::ReadOnly)
                    .hint("call again later: the server tries its store again and again, and its log says what fails")
            }
            StoreError::Busy { .. } => {
                tracing::warn!(%error, "call refused by a busy store");
                Failure::new(Reason::Unavailable, "the server's store is busy").hint("call again later")
            }
            StoreError::NoBucket { .. } => {
                tracing::error!(%error, "call refused without the bucket of the blobs");
                Failure::new(Reason::Unavailable, "the server cannot reach the bucket that keeps its blobs")
                    .hint("call again later: what needs no blob is served, and the server's log says what fails")
            }
            StoreError::Corrupt { ref what, .. } => {
                tracing::error!(%error, "call failed on a damaged record");
                Failure::new(Reason::Internal, format!("the server's record of {what} is damaged"))
                    .hint("its operator has to act: `aptix-server verify` names every damage")
            }
            StoreError::Lost { .. }
            | StoreError::OtherFormat { .. }
            | StoreError::NoRoom { .. }
            | StoreError::Unrestored { .. }
            | StoreError::InUse { .. }
            | StoreError::OtherSchema { .. }
            | StoreError::Failed { .. } => {
                tracing::error!(%error, "call failed in the store");
                Failure::new(Reason::Internal, "the server failed at its store")
                    .hint("the server's log says why; its operator has to act")
            }
        })
    }
}

/// The wanted events are no longer kept; `before` is the position before the oldest one that is.
#[must_use]
pub fn compacted(oldest: Revision, before: Option<Cursor>) -> Refusal {
    let message = format!("the events before revision {oldest} are no longer kept");
    let hint = format!("list what there is, then go on after revision {}", oldest.0.saturating_sub(1));
    Refusal::Compacted(Box::new(Failure::new(Reason::Compacted, message).hint(hint)), oldest, before.map(Box::new))
}

/// The server is going down.
#[must_use]
pub fn shutting_down() -> Failure {
    Failure::new(Reason::Unavailable, "the server is shutting down").detail(Detail::ShuttingDown).hint("call again")
}

/// The call broke off inside the server.
#[must_use]
pub fn broken_off() -> Failure {
    Failure::new(Reason::Internal, "the call broke off inside the server")
        .hint("the server's log says why; ask what became of it, then call again")
}

/// The workspace has nothing of this description.
#[must_use]
pub fn not_found(workspace: &WorkspaceId, what: &str) -> Failure {
    Failure::new(Reason::NotFound, format!("workspace {workspace} has no {what}"))
        .hint("see that the id and the workspace are the right ones")
}

/// An answer to a question that is not open.
#[must_use]
pub fn unknown_question(question: u64) -> Failure {
    let message = format!("there is no open question {question} on this connection");
    Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::UnknownQuestion)
        .field("answer.questionId")
        .hint("answer each question once, with the id that it came with; then connect again")
}

/// The agent's connection ended with questions open.
#[must_use]
pub fn agent_lost() -> Failure {
    Failure::new(Reason::Unavailable, "the agent's connection ended before it answered")
        .detail(Detail::AgentLost)
        .hint("call again: it connects again by itself")
}

/// The server does not count among those on its store that live.
pub(super) fn alone(message: String) -> Failure {
    Failure::new(Reason::Unavailable, message).hint("connect again, to this server or another one")
}

/// There is no such workspace.
#[must_use]
pub fn no_workspace(workspace: &WorkspaceId) -> Failure {
    Failure::new(Reason::NotFound, format!("there is no workspace {workspace}"))
        .hint("a workspace is created by its first batch, its first agent, or `aptix-server workspace create`")
}

/// The workspace is being deleted: to its callers there is none.
#[must_use]
pub fn being_deleted(workspace: &WorkspaceId) -> Failure {
    Failure::new(Reason::NotFound, format!("there is no workspace {workspace}: it is being deleted"))
        .hint("it can be created anew once `aptix-server workspace delete` has ended")
}

/// A bounded resource is used up.
#[must_use]
pub fn exhausted(what: &str, limit: usize) -> Failure {
    Failure::new(Reason::ResourceExhausted, format!("the server's {limit} {what} are in use")).hint("call again later")
}

/// A share of a bounded resource is used up.
#[must_use]
pub fn full(what: &str, full: Full) -> Failure {
    let limit = full.limit;
    let (message, hint) = match full.scope {
        Scope::Server => return exhausted(what, limit),
        Scope::Caller(_) => (format!("the caller's {limit} {what} are in use"), "end some of them, then call again"),
        Scope::Connection(_) => {
            (format!("this connection's {limit} {what} are in use"), "end some of them, or open another connection")
        }
    };
    Failure::new(Reason::ResourceExhausted, message).hint(hint)
}

/// A call that made no progress gave way to others.
#[must_use]
pub fn crowded(what: &str) -> Failure {
    let message = format!("the call lost its place among the {what}: it made no progress, and others waited");
    Failure::new(Reason::ResourceExhausted, message).hint("call again, and send or read without pauses")
}

/// Whether a read is refused for its one file, which is missing or ambiguous: others can be answered.
pub(crate) fn is_of_one_file(failure: &Failure) -> bool {
    matches!(failure.reason, Reason::NotFound | Reason::AmbiguousPath)
}
