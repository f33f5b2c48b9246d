//! The life of a batch: one table of states and steps, and nothing else decides.

use crate::report::Outcome;
use crate::words::words;

words! {
    /// Where a batch is in its life.
    BatchState, word, from_word {
        /// Being planned by the agent, for review before it may be applied.
        Preparing = "PREPARING",
        /// Planned and held for the author's word.
        Prepared = "PREPARED",
        /// Waits for a person, because the server's policy asks for one.
        PendingApproval = "PENDING_APPROVAL",
        /// Free to be applied.
        Approved = "APPROVED",
        /// Every file is as described.
        Applied = "APPLIED",
        /// Nothing changed; the report says why.
        Failed = "FAILED",
        /// A person said no; nothing changed.
        Rejected = "REJECTED",
        /// Some files are as described, others did not change; the report says why.
        Partial = "PARTIAL",
        /// Withdrawn before the agent finished.
        Cancelled = "CANCELLED",
        /// Its time ran out before anything was done.
        Expired = "EXPIRED",
    }
}

/// What can happen to a batch.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Step {
    /// The agent's plan is ready.
    PlanReady,
    /// The author lets a prepared batch go ahead.
    Apply,
    /// The author lets a prepared batch go ahead, and a person has to agree first.
    Hold,
    /// A person agrees.
    Approve,
    /// A person refuses.
    Reject,
    /// The agent reports how it ended.
    Report(Outcome),
    /// A caller withdraws it.
    Cancel,
    /// Its time is up.
    Expire,
}

/// A step that a state does not allow.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("a batch that is {from} does not allow this step ({step:?})")]
pub struct StepError {
    /// The state the batch is in.
    pub from: BatchState,
    /// What was asked of it.
    pub step: Step,
}

/// The state of a batch that ended this way at its agent.
impl From<Outcome> for BatchState {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Applied => Self::Applied,
            Outcome::Failed => Self::Failed,
            Outcome::Rejected => Self::Rejected,
            Outcome::Partial => Self::Partial,
        }
    }
}

impl BatchState {
    /// The state after a step.
    ///
    /// # Errors
    /// When this state does not allow the step.
    pub const fn after(self, step: Step) -> Result<Self, StepError> {
        Ok(match (self, step) {
            (Self::Preparing, Step::PlanReady) => Self::Prepared,
            (Self::Prepared, Step::Apply) | (Self::PendingApproval, Step::Approve) => Self::Approved,
            (Self::Prepared, Step::Hold) => Self::PendingApproval,
            (Self::Approved, Step::Report(Outcome::Applied)) => Self::Applied,
            (Self::Approved, Step::Report(Outcome::Partial)) => Self::Partial,
            (Self::Preparing | Self::Approved, Step::Report(Outcome::Failed)) => Self::Failed,
            (Self::Preparing | Self::Approved, Step::Report(Outcome::Rejected))
            | (Self::Prepared | Self::PendingApproval | Self::Approved, Step::Reject) => Self::Rejected,
            (Self::Preparing | Self::Prepared | Self::PendingApproval | Self::Approved, Step::Cancel) => {
                Self::Cancelled
            }
            (Self::Preparing | Self::Prepared | Self::PendingApproval | Self::Approved, Step::Expire) => Self::Expired,
            (from, step) => return Err(StepError { from, step }),
        })
    }

    /// Whether the batch has not ended.
    #[must_use]
    pub const fn is_open(self) -> bool {
        matches!(self, Self::Preparing | Self::Prepared | Self::PendingApproval | Self::Approved)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ended_batch_allows_nothing() {
        let steps = [
            Step::PlanReady,
            Step::Apply,
            Step::Hold,
            Step::Approve,
            Step::Reject,
            Step::Report(Outcome::Applied),
            Step::Report(Outcome::Failed),
            Step::Report(Outcome::Rejected),
            Step::Report(Outcome::Partial),
            Step::Cancel,
            Step::Expire,
        ];
        for state in BatchState::ALL.into_iter().filter(|state| !state.is_open()) {
            for step in steps {
                assert!(state.after(step).is_err(), "{state} {step:?}");
            }
        }
    }

    #[test]
    fn an_open_batch_can_always_be_withdrawn() {
        for state in BatchState::ALL.into_iter().filter(|state| state.is_open()) {
            assert_eq!(state.after(Step::Cancel), Ok(BatchState::Cancelled));
        }
    }
}
