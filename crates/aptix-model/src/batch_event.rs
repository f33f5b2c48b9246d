//! What an event of a workspace records beside its batch: what happened, the state after it, when, and who did it.

use alloc::string::String;

use crate::record::UnixMillis;
use crate::state::BatchState;
use crate::words::words;

words! {
    /// What happened to a batch.
    EventKind, word, from_word {
        /// It was stored.
        Submitted = "SUBMITTED",
        /// The agent reported how it ended.
        Reported = "REPORTED",
        /// It was withdrawn.
        Cancelled = "CANCELLED",
        /// Its time ran out.
        Expired = "EXPIRED",
        /// It was applied or undone on the workstation, and stored as ended.
        Local = "LOCAL",
        /// Cloud files were corrected; there is no batch.
        Files = "FILES",
    }
}

words! {
    /// What an actor is.
    ActorKind, word, from_word {
        /// A caller of the server that submits or withdraws batches.
        Author = "AUTHOR",
        /// The workstation's agent.
        Agent = "AGENT",
        /// A person.
        Person = "PERSON",
        /// The server itself.
        Server = "SERVER",
    }
}

/// Who did something.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Actor {
    /// What they are.
    pub kind: ActorKind,
    /// Their name, if it is known.
    pub name: Option<String>,
}

impl Actor {
    /// An actor without a known name.
    #[must_use]
    pub const fn unnamed(kind: ActorKind) -> Self {
        Self { kind, name: None }
    }
}

/// What an event records beside its batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct EventFacts {
    /// What happened.
    pub kind: EventKind,
    /// The state of the batch right after it.
    pub state: BatchState,
    /// When it was stored.
    pub at: UnixMillis,
    /// Who did it.
    pub actor: Actor,
}
