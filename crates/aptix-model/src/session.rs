//! A session: an author's run of turns in a workspace, and whether it may write (REQ-PATCH-009).
//!
//! One function decides what a request to change the mode does, and one what a session in its present mode may do.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString as _};
use alloc::vec::Vec;

use crate::actor::{Actor, ActorKind};
use crate::failure::Failure;
use crate::id::{ConversationId, OwnerId, RequestId, SessionId};
use crate::reason::{Detail, Reason};
use crate::record::UnixMillis;
use crate::words::words;

/// The message of every write that is refused in Restricted mode, word by word (REQ-PATCH-009).
pub const RESTRICTED: &str =
    "Patch tool is disabled in Restricted mode. Use request_mode_upgrade to request write access.";

/// How many requests to change its mode a session remembers; of those before, a repeat counts as a new request.
pub const REMEMBERED: usize = 32;

words! {
    /// Whether a session may write.
    SessionMode, word, from_word {
        /// Nothing is written or planned for it.
        Restricted = "RESTRICTED",
        /// It may write, as far as policy lets it.
        Unrestricted = "UNRESTRICTED",
    }
}

words! {
    /// How far a request to change the mode has come.
    Progress, word, from_word {
        /// It took effect, and a later one may have taken effect since.
        Done = "DONE",
        /// It takes effect once the batches in flight have ended; until then nothing new is written.
        Waiting = "WAITING",
        /// A later request asked for the other mode before it took effect.
        Superseded = "SUPERSEDED",
    }
}

/// One author's run of turns in a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Session {
    /// Names it in its workspace.
    pub id: SessionId,
    /// The conversation that it was created in, if its first use named one.
    pub conversation: Option<ConversationId>,
    /// Who may change its mode: who changed it first.
    pub owner: Option<OwnerId>,
    /// Whether it may write.
    pub mode: SessionMode,
    /// When it was first used.
    pub created: UnixMillis,
    /// The newest requests to change its mode, oldest first; at most [`REMEMBERED`].
    pub requests: Vec<ModeRequest>,
}

/// A request to change the mode of a session.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ModeRequest {
    /// Makes it repeatable.
    pub id: RequestId,
    /// The mode asked for.
    pub to: SessionMode,
    /// How far it has come.
    pub progress: Progress,
    /// The token of the call, by the name that records of steps have for it; `None` where callers need no token.
    pub by: Option<String>,
}

/// Why the mode of a session is not changed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ModeRefusal {
    /// The session belongs to another owner.
    WrongOwner,
    /// The request id was used to ask for this mode.
    RequestReused(SessionMode),
}

impl Session {
    /// A session that is used for the first time; it may write.
    #[must_use]
    pub const fn new(id: SessionId, conversation: Option<ConversationId>, created: UnixMillis) -> Self {
        Self { id, conversation, owner: None, mode: SessionMode::Unrestricted, created, requests: Vec::new() }
    }

    /// The mode that it changes to once nothing is in flight.
    #[must_use]
    pub fn changes_to(&self) -> Option<SessionMode> {
        self.requests.iter().find(|request| request.progress == Progress::Waiting).map(|request| request.to)
    }

    /// Who asked last for a change of its mode; `None` if no one did.
    #[must_use]
    pub fn changed_by(&self) -> Option<Actor> {
        let (owner, request) = (self.owner.as_ref()?, self.requests.last()?);
        let owner = Actor { kind: ActorKind::Author, name: Some(owner.to_string()) };
        Some(owner.signed(request.by.as_deref()))
    }

    /// Whether a new write is accepted.
    ///
    /// # Errors
    /// It is Restricted, or becomes so once nothing is in flight: POLICY_DENIED (RESTRICTED_MODE) with the required message.
    pub fn may_write(&self) -> Result<(), Failure> {
        let Self { id, mode, .. } = self;
        match (mode, self.changes_to()) {
            (SessionMode::Unrestricted, None) => Ok(()),
            (SessionMode::Unrestricted, Some(_)) => Err(restricted(&format!(
                "session {id} becomes RESTRICTED once its batches in flight have ended; its owner can ask for UNRESTRICTED"
            ))),
            (SessionMode::Restricted, _) => {
                Err(restricted(&format!("session {id} is RESTRICTED; its owner can set its mode to UNRESTRICTED")))
            }
        }
    }

    /// Lets a change that waits take effect. To be called while no batch of the session is in flight.
    pub fn settle(&mut self) {
        for request in self.requests.iter_mut().filter(|request| request.progress == Progress::Waiting) {
            (self.mode, request.progress) = (request.to, Progress::Done);
        }
    }

    /// Changes the mode as `owner` asks; `is_idle` if no batch of the session is in flight. A repeated request changes nothing
    /// and answers how far it has come. Only a change to Restricted waits; a request for the other mode supersedes it.
    ///
    /// # Errors
    /// When the session is another owner's, or the request id was used for the other mode.
    pub fn change(
        &mut self,
        owner: &OwnerId,
        (id, to, by): (&RequestId, SessionMode, Option<&str>),
        is_idle: bool,
    ) -> Result<Progress, ModeRefusal> {
        if self.owner.as_ref().is_some_and(|first| first != owner) {
            return Err(ModeRefusal::WrongOwner);
        }
        if is_idle {
            self.settle();
        }
        if let Some(known) = self.requests.iter().find(|request| request.id == *id) {
            return if known.to == to { Ok(known.progress) } else { Err(ModeRefusal::RequestReused(known.to)) };
        }
        self.owner = Some(owner.clone());
        let others = self.requests.iter_mut().filter(|request| request.to != to);
        for other in others.filter(|request| request.progress == Progress::Waiting) {
            other.progress = Progress::Superseded;
        }
        let waits = !is_idle && to == SessionMode::Restricted && self.mode == SessionMode::Unrestricted;
        let progress = if waits { Progress::Waiting } else { Progress::Done };
        if !waits {
            self.mode = to;
        }
        self.requests.push(ModeRequest { id: id.clone(), to, progress, by: by.map(ToOwned::to_owned) });
        let forgotten = self.requests.len().saturating_sub(REMEMBERED);
        self.requests.drain(..forgotten);
        Ok(progress)
    }
}

/// The failure of a write in Restricted mode; `hint` says who can change the mode.
#[must_use]
pub fn restricted(hint: &str) -> Failure {
    Failure::new(Reason::PolicyDenied, RESTRICTED).detail(Detail::RestrictedMode).hint(hint)
}

#[cfg(test)]
mod tests {
    use super::*;

    const ON: SessionMode = SessionMode::Unrestricted;
    const OFF: SessionMode = SessionMode::Restricted;

    fn session() -> Session {
        Session::new("s".parse().unwrap(), None, UnixMillis(1))
    }

    fn ask(
        session: &mut Session,
        owner: &str,
        request: &str,
        to: SessionMode,
        is_idle: bool,
    ) -> Result<Progress, ModeRefusal> {
        session.change(&owner.parse().unwrap(), (&request.parse().unwrap(), to, None), is_idle)
    }

    #[test]
    fn a_restriction_closes_at_once_and_takes_effect_when_idle() {
        let mut session = session();
        assert_eq!(ask(&mut session, "ann", "r1", OFF, false), Ok(Progress::Waiting));
        assert_eq!((session.mode, session.changes_to()), (ON, Some(OFF)));
        assert_eq!(session.may_write().unwrap_err().message, RESTRICTED);
        assert_eq!(ask(&mut session, "ann", "r1", OFF, false), Ok(Progress::Waiting));
        assert_eq!(ask(&mut session, "ann", "r1", OFF, true), Ok(Progress::Done));
        assert_eq!((session.mode, session.changes_to()), (OFF, None));
        assert_eq!(session.may_write().unwrap_err().message, RESTRICTED);
        assert_eq!(ask(&mut session, "ann", "r2", ON, false), Ok(Progress::Done), "nothing has to be waited for");
        assert!(session.may_write().is_ok());
        assert_eq!(ask(&mut session, "ann", "r1", OFF, true), Ok(Progress::Done), "a repeat changes nothing");
        assert!(session.may_write().is_ok());
    }

    #[test]
    fn the_later_of_two_requests_wins_and_both_of_one_mind_are_done_together() {
        let mut session = session();
        assert_eq!(ask(&mut session, "ann", "r1", OFF, false), Ok(Progress::Waiting));
        assert_eq!(ask(&mut session, "ann", "r2", OFF, false), Ok(Progress::Waiting));
        session.settle();
        assert!(session.requests.iter().all(|request| request.progress == Progress::Done));
        assert_eq!(ask(&mut session, "ann", "r3", ON, true), Ok(Progress::Done));
        assert_eq!(ask(&mut session, "ann", "r4", OFF, false), Ok(Progress::Waiting));
        assert_eq!(ask(&mut session, "ann", "r5", ON, false), Ok(Progress::Done));
        assert_eq!(ask(&mut session, "ann", "r4", OFF, true), Ok(Progress::Superseded));
        assert!(session.may_write().is_ok());
    }

    #[test]
    fn the_first_owner_keeps_it_and_a_request_id_means_one_mode() {
        let mut session = session();
        assert_eq!(ask(&mut session, "ann", "r1", ON, true), Ok(Progress::Done));
        assert_eq!(ask(&mut session, "bob", "r2", OFF, true), Err(ModeRefusal::WrongOwner));
        assert_eq!(ask(&mut session, "ann", "r1", OFF, true), Err(ModeRefusal::RequestReused(ON)));
        assert!(session.may_write().is_ok());
    }

    #[test]
    fn only_so_many_requests_are_remembered() {
        let mut session = session();
        for number in 0..REMEMBERED + 5 {
            ask(&mut session, "ann", &format!("r{number}"), OFF, number % 2 == 0).unwrap();
        }
        assert_eq!(session.requests.len(), REMEMBERED);
        assert_eq!(session.requests[0].id.as_str(), "r5");
    }
}
