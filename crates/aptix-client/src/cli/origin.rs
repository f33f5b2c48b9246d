//! Whose turn a document comes from.

use aptix_model::batch::Origin;
use aptix_model::id::OwnerId;
use aptix_model::id::{ConversationId, SessionId, TurnId};

/// Arguments of a command that takes a document of an author.
#[derive(clap::Args, Debug)]
pub(super) struct OriginArgs {
    /// The session that the document comes from; clipboards are those of a session
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// The conversation in it, for the log and the record
    #[arg(long, value_name = "ID")]
    conversation: Option<ConversationId>,
    /// The turn in the conversation, for the log and the record
    #[arg(long, value_name = "ID")]
    turn: Option<TurnId>,
}

impl OriginArgs {
    pub(super) fn origin(&self) -> Origin {
        Origin {
            session_id: self.session.as_ref().map(ToString::to_string),
            conversation_id: self.conversation.as_ref().map(ToString::to_string),
            turn_id: self.turn.as_ref().map(ToString::to_string),
        }
    }
}

/// Who may apply what is prepared.
#[derive(clap::Args, Debug)]
pub(super) struct OwnerArgs {
    /// Who prepares the batch, and alone may apply it; your user name unless it is given
    #[arg(long, value_name = "NAME", env = "USER", hide_env = true, default_value = "aptix")]
    owner: OwnerId,
}

impl OwnerArgs {
    /// The owner: given, or the user.
    pub(super) fn owner(&self) -> OwnerId {
        self.owner.clone()
    }
}
