//! Defects that the harness plants to prove that it finds them.

/// A defect of the simulated server or agent.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Defect {
    /// The server acknowledges batches that it does not store.
    AcknowledgedBeforeStored,
    /// The server acknowledges reports that it does not store.
    ReportForgotten,
    /// The server takes a report twice.
    EndedTwice,
    /// The server leaves an event out of its feeds.
    RevisionSkipped,
    /// The server sends an event again at times.
    EventRepeated,
    /// The server takes reports of callers that do not hold the lease.
    LeaseUnchecked,
    /// The server says at times of an event which is kept that it is not.
    CompactedTooFar,
    /// An agent that is started again has lost its state directory.
    StateLost,
    /// The store grants a lease with the epoch of the one before.
    EpochKept,
    /// A server that is cut off from the store serves its agents for longer than the others count it as alive.
    ServesOnAfterItsLifetime,
    /// Servers learn of changes by hints alone: their looks find nothing.
    HintsBelieved,
    /// A request is known only to the server that stored its batch.
    RequestOfOtherServerForgotten,
}

impl Defect {
    pub(crate) const ALL: [Self; 12] = [
        Self::AcknowledgedBeforeStored,
        Self::ReportForgotten,
        Self::EndedTwice,
        Self::RevisionSkipped,
        Self::EventRepeated,
        Self::LeaseUnchecked,
        Self::CompactedTooFar,
        Self::StateLost,
        Self::EpochKept,
        Self::ServesOnAfterItsLifetime,
        Self::HintsBelieved,
        Self::RequestOfOtherServerForgotten,
    ];

    /// Whether only several servers on one store can show it.
    pub(crate) const fn is_of_several(self) -> bool {
        matches!(
            self,
            Self::EpochKept
                | Self::ServesOnAfterItsLifetime
                | Self::HintsBelieved
                | Self::RequestOfOtherServerForgotten
        )
    }
}
