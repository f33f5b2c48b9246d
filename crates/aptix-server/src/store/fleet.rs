//! What the servers on one store tell each other through it: which of them live, which of them holds whose lease, and what changed.
//!
//! Whether a server lives is decided by the clock of the store alone: it says so again and again, and counts as dead once it
//! has not for as long as it asked to be believed.

use std::fmt;
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{AgentId, BatchId, Revision, Uuid, WorkspaceId};
use aptix_model::presence::Presence;
use aptix_model::record::UnixMillis;
use tokio::sync::broadcast;

use super::lease::Lease;
use crate::quota::used::Used;

/// Names a server while it lives. One that counted as dead comes back under another name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct ServerId(pub Uuid);

/// One of the servers on a store.
#[derive(Clone, PartialEq, Eq)]
pub struct Member {
    /// Its name.
    pub id: ServerId,
    /// Where the others reach it, such as `https://10.0.0.5:7433`; `None` where they cannot.
    pub address: Option<String>,
    /// What the others prove to it that they are on the same store with: the text of a token.
    pub secret: String,
}

/// Without the secret.
impl fmt::Debug for Member {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Member").field("id", &self.id).field("address", &self.address).finish_non_exhaustive()
    }
}

/// What a server that lives learns each time that it says so.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Company {
    /// The others that live.
    pub others: Vec<Member>,
}

/// How long a server wants to be believed to live after it said so.
pub type Lifetime = Duration;

/// Who serves a workspace, and through which server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Holder {
    /// The server that the agent is connected to.
    pub server: ServerId,
    /// The agent.
    pub agent: AgentId,
    /// Since when.
    pub since: UnixMillis,
    /// What the agent states of itself.
    pub presence: Presence,
}

/// What an agent that asks for a lease is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Grant {
    /// The workspace.
    pub workspace: WorkspaceId,
    /// SHA-256 of the secret that the lease will have.
    pub secret: Sha256Digest,
    /// SHA-256 of the secret of the lease that the agent held last: with it that one is taken over.
    pub held: Option<Sha256Digest>,
    /// Who will hold it.
    pub holder: Holder,
}

/// A lease by its workspace, and SHA-256 of its secret.
pub type LeaseName = (WorkspaceId, Sha256Digest);

/// What came of asking for a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Granted {
    /// It is granted, with this epoch.
    Epoch(u64),
    /// An agent whose secret was not shown holds it, through another server that lives, since this time.
    Held(UnixMillis),
    /// The server of the holder-to-be does not count among those that live.
    Dead,
}

/// How far a workspace has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Seen {
    /// Differs from that of an earlier workspace of the same name.
    pub instance: Uuid,
    /// Its newest event.
    pub newest: Revision,
    /// Its newest lease.
    pub lease: Lease,
}

/// What changed since it was looked at last.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Looked {
    /// How far each workspace has come that was asked about; `None` where there is none, or it is being deleted.
    pub seen: Vec<Option<Seen>>,
    /// Differs from every earlier one once a token was made or ended.
    pub tokens: u64,
}

/// That something changed. Hints may be lost: whoever waits for a change also looks now and then.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Hint {
    /// Something happened to a batch of a workspace.
    Event(WorkspaceId, BatchId),
    /// Something else changed in a workspace: its lease went to another agent, the mode of a session changed, or it is being deleted.
    Workspace(WorkspaceId),
    /// A token was made or ended.
    Tokens,
    /// It is not known what: hints were lost.
    Anything,
}

/// What other servers tell from now on of what is used of them. A receiver that is too slow loses some.
pub type UsedByOthers = broadcast::Receiver<Used>;

/// The hints from now on. A receiver that is too slow loses some, and is told so.
pub type Hints = broadcast::Receiver<Hint>;
