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
}

impl Defect {
    pub(crate) const ALL: [Self; 8] = [
        Self::AcknowledgedBeforeStored,
        Self::ReportForgotten,
        Self::EndedTwice,
        Self::RevisionSkipped,
        Self::EventRepeated,
        Self::LeaseUnchecked,
        Self::CompactedTooFar,
        Self::StateLost,
    ];
}
