//! What an event of a workspace records beside its batch: what happened, the state after it, when, and who did it.

use alloc::string::String;

use crate::actor::Actor;
use crate::id::Revision;
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
        /// It was planned, and stored as prepared or, if the plan was refused, as ended.
        Prepared = "PREPARED",
        /// Its owner let the prepared batch be applied.
        Freed = "FREED",
        /// A person refused it.
        Rejected = "REJECTED",
        /// A person approved it.
        Approved = "APPROVED",
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
    /// Why, if a reason was given.
    pub reason: Option<String>,
}

/// One step in the life of a batch, as it was recorded when it was taken.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StepRecord {
    /// The revision of its event.
    pub revision: Revision,
    /// What happened.
    pub facts: EventFacts,
}
