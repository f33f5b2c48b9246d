//! What is used of one server, as the other ones are told.

use aptix_model::id::Uuid;

use super::Subject;

/// What a holder of a token, or the callers of a workspace, use of one server.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Used {
    /// The name of the server.
    pub server: Uuid,
    /// Who uses it.
    pub subject: Subject,
    /// What is used of it now.
    pub now: InUse,
    /// Batches that were stored since it was told last.
    pub batches: u64,
}

/// What is used of a server at one time.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct InUse {
    /// Calls a second.
    pub calls: u64,
    /// Open streams.
    pub streams: u64,
    /// Bytes of messages in flight.
    pub bytes: u64,
    /// Questions to an agent.
    pub questions: u64,
}
