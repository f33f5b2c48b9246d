//! What a caller knows a plan by, and why it cannot be applied or replaced, in these words.

use std::fmt;

use aptix_engine::hunk::HunkError;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use super::refusal::Refusal;

/// What a caller knows a plan by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum PlanName {
    /// A prepared batch.
    Batch(BatchId),
    /// The prepared edit of tools, whichever batch has its plan now.
    Hunk(FilePatchId),
}

impl fmt::Display for PlanName {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Batch(id) => write!(formatter, "the prepared batch {id}"),
            Self::Hunk(id) => write!(formatter, "the prepared edit {id}"),
        }
    }
}

impl PlanName {
    /// Refuses a caller that did not prepare it.
    pub(super) fn wrong_owner(self) -> Refusal {
        let hint = "prepare the batch yourself: only who prepared it can apply or replace it";
        match self {
            Self::Batch(_) => denied(Reason::WrongOwner, format!("{self} belongs to another owner"), hint),
            Self::Hunk(id) => of_hunk(HunkError::WrongOwner(id)),
        }
    }

    /// Refuses its use after its time.
    pub(super) fn expired(self) -> Refusal {
        let hint = "prepare the batch again, look at its plan, then apply it";
        match self {
            Self::Batch(_) => denied(Reason::HunkExpired, format!("{self} has expired"), hint),
            Self::Hunk(id) => of_hunk(HunkError::Expired(id)),
        }
    }

    /// Refuses to have an edit of another kind take its place.
    pub(super) fn other_kind(self, found: &'static str, asked: &'static str) -> Refusal {
        match self {
            Self::Batch(_) => {
                let message = format!("{self} is a {found}, and a {asked} cannot take its place");
                let failure = Failure::new(Reason::InvalidState, message).detail(Detail::OtherKind);
                let hint = "prepare without existing_batch_id, or with an edit of the same kind";
                Refusal::denied(failure.hint(hint))
            }
            Self::Hunk(id) => of_hunk(HunkError::OtherKind { id, found, asked }),
        }
    }

    /// Refuses its use where it is not prepared, or not any more.
    #[must_use]
    pub fn not_prepared(self, batch: &BatchRecord) -> Refusal {
        match (batch.preparation(), batch.state) {
            (None, _) => self.unusable(format!("{self} was submitted to be applied at once")),
            (Some(_), BatchState::Expired) => self.expired(),
            (Some(_), BatchState::Applied) => self.applied(),
            (Some(_), BatchState::Approved) => self.unusable(format!("another call lets {self} be applied")),
            (Some(_), state) => self.unusable(format!("{self} is {state}")),
        }
    }

    fn applied(self) -> Refusal {
        let hint = "nothing is left to do; prepare a new batch for another change";
        match self {
            Self::Batch(_) => denied(Reason::AlreadyApplied, format!("{self} was applied"), hint),
            Self::Hunk(id) => of_hunk(HunkError::Applied(id)),
        }
    }

    fn unusable(self, message: String) -> Refusal {
        let hint = match self {
            Self::Batch(_) => "look at what became of the batch; prepare a new one for another change",
            Self::Hunk(_) => "read the file; if the change is still wanted, prepare it again without existing_hunk_id",
        };
        let failure = Failure::new(Reason::InvalidState, message).detail(Detail::NotPrepared);
        Refusal::denied(failure.hint(hint))
    }
}

/// Refuses the use of a prepared edit of tools, in the words of `aptix mcp`.
pub(super) fn of_hunk(error: HunkError) -> Refusal {
    Refusal::denied(error.failure())
}

fn denied(reason: Reason, message: String, hint: &'static str) -> Refusal {
    Refusal::denied(Failure::new(reason, message).hint(hint))
}
