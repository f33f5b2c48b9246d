//! Tokens: who may call a server, and for what. The secret that its holder sends is not part of it: see the server.

use crate::id::{TokenName, WorkspaceId};
use crate::record::UnixMillis;
use crate::words::words;

words! {
    /// What the holder of a token may do.
    Role, word, from_word {
        /// Sends edits, calls tools, and reads.
        Orchestrator = "orchestrator",
        /// Serves a workspace.
        Agent = "agent",
        /// Approves, rejects and reverts batches, and reads.
        Reviewer = "reviewer",
        /// Reads.
        Reader = "reader",
        /// Makes and revokes tokens and creates workspaces; reads no batch and no file.
        Operator = "operator",
    }
}

/// The workspaces that a token is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Scope {
    /// All of them, also those that are created later.
    All,
    /// This one.
    One(WorkspaceId),
}

impl Scope {
    /// Whether the token is for this workspace.
    #[must_use]
    pub fn has(&self, workspace: &WorkspaceId) -> bool {
        match self {
            Self::All => true,
            Self::One(one) => one == workspace,
        }
    }
}

/// A token, without its secret.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Token {
    /// Says in records of batches who decided about them; no two tokens ever have one name.
    pub name: TokenName,
    /// What its holder may do.
    pub role: Role,
    /// The workspaces that it is for.
    pub scope: Scope,
    /// When it was made.
    pub created: UnixMillis,
    /// When it expires.
    pub expires: Option<UnixMillis>,
    /// How and when it ended.
    pub ended: Option<Ended>,
}

impl Token {
    /// Whether it is of use at this time.
    #[must_use]
    pub fn is_good(&self, now: UnixMillis) -> bool {
        self.ended.is_none() && self.expires.is_none_or(|expires| now < expires)
    }
}

/// The end of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ended {
    /// When it ended.
    pub at: UnixMillis,
    /// How it ended.
    pub how: Ending,
}

words! {
    /// How a token ended.
    Ending, word, from_word {
        /// An operator revoked it.
        Revoked = "REVOKED",
        /// Its time was over.
        Expired = "EXPIRED",
    }
}
