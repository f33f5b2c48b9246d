//! Sessions and their modes, between the wire and the model.

use alloc::string::ToString;

use super::field::unknown_enum;
use super::v1;
use crate::failure::Failure;
use crate::session::{Progress, Session, SessionMode};

/// Reads a mode from the field of this name; `None` if it is not given.
///
/// # Errors
/// INVALID_REQUEST (UNKNOWN_ENUM), naming the field.
pub fn mode(field: &str, value: i32) -> Result<Option<SessionMode>, Failure> {
    match v1::SessionMode::try_from(value) {
        Ok(v1::SessionMode::Unspecified) => Ok(None),
        Ok(v1::SessionMode::Restricted) => Ok(Some(SessionMode::Restricted)),
        Ok(v1::SessionMode::Unrestricted) => Ok(Some(SessionMode::Unrestricted)),
        Err(_) => Err(unknown_enum(field, value)),
    }
}

impl From<SessionMode> for v1::SessionMode {
    fn from(mode: SessionMode) -> Self {
        match mode {
            SessionMode::Restricted => Self::Restricted,
            SessionMode::Unrestricted => Self::Unrestricted,
        }
    }
}

impl From<Progress> for v1::ModeChangeState {
    fn from(progress: Progress) -> Self {
        match progress {
            Progress::Done => Self::Done,
            Progress::Waiting => Self::Pending,
            Progress::Superseded => Self::Superseded,
        }
    }
}

impl From<Session> for v1::Session {
    /// The session without its workspace and its batches.
    fn from(session: Session) -> Self {
        let changed_by = session.changed_by().map(Into::into);
        let changes_to = session.changes_to().map_or(v1::SessionMode::Unspecified, Into::into);
        Self {
            session_id: session.id.to_string(),
            conversation_id: session.conversation.map(|id| id.to_string()).unwrap_or_default(),
            owner: session.owner.map(|owner| owner.to_string()).unwrap_or_default(),
            mode: v1::SessionMode::from(session.mode).into(),
            changes_to: changes_to.into(),
            changed_by,
            create_time: Some(session.created.into()),
            ..Self::default()
        }
    }
}
