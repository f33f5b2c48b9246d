//! Sessions at the store: which batch belongs to one, when it is in flight, how a mode is changed, and which sessions are
//! forgotten when there are too many.

use std::cmp::Reverse;
use std::collections::HashSet;

use aptix_model::batch::Origin;
use aptix_model::id::{BatchId, OwnerId, RequestId, SessionId, WorkspaceId};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::{ModeRefusal, Progress, Session, SessionMode};
use aptix_model::state::BatchState;

/// Sessions that a workspace keeps.
pub const SESSIONS: usize = 4096;

/// Sessions that are forgotten at once when there are too many, so that they are not all read for each new one.
const FORGOTTEN: usize = SESSIONS / 8;

/// A session with what keeps its mode from changing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SessionState {
    /// The session; a change that waited for nothing more has taken effect.
    pub session: Session,
    /// Its batches in flight, by id.
    pub in_flight: Vec<BatchId>,
}

/// A change of a session's mode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeChange {
    /// The workspace; it need not be known.
    pub workspace: WorkspaceId,
    /// The session, which is created if there is none.
    pub session: SessionId,
    /// Who asks.
    pub owner: OwnerId,
    /// Makes it repeatable.
    pub request: RequestId,
    /// The mode asked for.
    pub to: SessionMode,
    /// The token of the call, as records of steps have it.
    pub by: Option<String>,
    /// When it is asked for.
    pub at: UnixMillis,
}

/// What came of a change of a session's mode.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ModeChanged {
    /// How far it has come, and the session now; its batches in flight are not listed for this.
    Asked(Progress, Box<Session>),
    /// It is refused; nothing changed.
    Refused(ModeRefusal),
    /// The session is new, and the workspace has [`SESSIONS`] that are not forgotten; nothing changed.
    TooMany,
}

/// The session that a batch of this origin belongs to; none if it names none, or not by an id.
#[must_use]
pub fn of(origin: &Origin) -> Option<SessionId> {
    origin.session_id.as_deref()?.parse().ok()
}

/// Whether a batch in this state may be being applied, now or once its agent comes. One that waits for a person is not: nothing
/// happens to it before it is approved, which its session has to allow then.
pub(super) const fn is_in_flight(state: BatchState) -> bool {
    matches!(state, BatchState::Preparing | BatchState::Approved)
}

/// Whether a step to this state lets a stored batch go ahead, as its author or a person does: only while its session may write.
pub(super) const fn lets_go(to: BatchState) -> bool {
    matches!(to, BatchState::PendingApproval | BatchState::Approved)
}

/// The session that the first batch of it creates.
pub(super) fn created_by(batch: &BatchRecord, id: SessionId) -> Session {
    let conversation = batch.origin.conversation_id.as_deref().and_then(|id| id.parse().ok());
    Session::new(id, conversation, batch.created)
}

/// Carries out a change of a session, which is `None` if there is none yet, and idle if it has no batch in flight.
pub(super) fn change(
    session: Option<Session>,
    is_idle: bool,
    asked: &ModeChange,
) -> Result<(Progress, Session), ModeRefusal> {
    let mut session = session.unwrap_or_else(|| Session::new(asked.session.clone(), None, asked.at));
    let progress = session.change(&asked.owner, (&asked.request, asked.to, asked.by.as_deref()), is_idle)?;
    Ok((progress, session))
}

/// A session as it is now.
pub(super) fn settled(mut session: Session, in_flight: Vec<BatchId>) -> SessionState {
    if in_flight.is_empty() {
        session.settle();
    }
    SessionState { session, in_flight }
}

/// Which of all sessions are forgotten for another one: the oldest that may write and are not `busy`.
pub(super) fn forgotten(all: impl Iterator<Item = Session>, busy: &HashSet<SessionId>) -> Vec<SessionId> {
    let mut idle: Vec<_> = all.filter(|session| session.may_write().is_ok() && !busy.contains(&session.id)).collect();
    idle.sort_by_key(|session| Reverse(session.created));
    let kept = idle.len().saturating_sub(FORGOTTEN);
    idle.into_iter().skip(kept).map(|session| session.id).collect()
}
