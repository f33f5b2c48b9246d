//! Why a batch cannot be undone, as failures with what to do next.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::workspace::fs::errno;
use crate::workspace::keep::history::entries::HistoryError;
use crate::workspace::keep::history::find::FindError;
use crate::workspace::roots::state::StateError;

/// There is no batch to undo.
pub(super) fn not_found(error: &FindError) -> Failure {
    let hint = match error {
        FindError::History(error) => return history_failure(error),
        FindError::AllUndone => "`aptix undo --redo` takes the newest undo back; `aptix log` lists what was done",
        FindError::NoUndo => {
            "`aptix log` lists what was undone, and `aptix undo BATCH_ID` takes back a batch by its name"
        }
        FindError::InEffect(_) => {
            let hint = "`aptix log` lists what is undone";
            return Failure::new(Reason::AlreadyApplied, error.to_string()).hint(hint);
        }
        FindError::Ambiguous { .. } => {
            return Failure::new(Reason::AmbiguousId, error.to_string()).hint("give more of the id");
        }
        FindError::Unknown(_) | FindError::Nothing => {
            "`aptix log` lists the batches of a root that are known; `days` and `bytes` of `[history]` in the policy file \
             say for how long, and how much of them is kept"
        }
    };
    Failure::new(Reason::NotFound, error.to_string()).hint(hint)
}

/// The history cannot be used.
pub(crate) fn history_failure(error: &HistoryError) -> Failure {
    match error {
        HistoryError::State(StateError::Part { doing: "read", errno, .. }) => {
            errno::read_failure(*errno, error.to_string())
        }
        HistoryError::State(error) => error.failure(),
        HistoryError::Damaged(_) | HistoryError::NotKept(_) => Failure::new(Reason::NotFound, error.to_string()).hint(
            "take the files back from version control, or edit them by hand; `aptix undo BATCH_ID` takes back \
                     another batch that `aptix log` lists",
        ),
    }
}

/// A file is in the way of one that would come back.
pub(super) fn in_its_place(path: &str) -> Failure {
    let message = format!("there is another file at {path:?} now");
    Failure::new(Reason::FileExists, message).hint("move it away, then undo again")
}
