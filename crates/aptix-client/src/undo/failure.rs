//! Why a batch cannot be undone, as failures with what to do next.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::tools::past::LISTED;

use crate::policy::caller::Caller;
use crate::workspace::fs::errno;
use crate::workspace::keep::history::entries::HistoryError;
use crate::workspace::keep::history::find::FindError;
use crate::workspace::roots::state::StateError;

/// There is no batch to undo.
pub(super) fn not_found(error: &FindError, caller: Caller) -> Failure {
    let (reason, hint) = match error {
        FindError::History(error) => return history_failure(error, caller),
        FindError::AllUndone => (
            Reason::NotFound,
            "`aptix undo --redo` takes the newest undo back; `aptix log` lists what was done".to_owned(),
        ),
        FindError::NoUndo => (
            Reason::NotFound,
            "`aptix log` lists what was undone, and `aptix undo BATCH_ID` takes back a batch by its name".to_owned(),
        ),
        FindError::InEffect(_) => (Reason::AlreadyApplied, "`aptix log` lists what is undone".to_owned()),
        FindError::TakenBack { by, .. } => (
            Reason::AlreadyApplied,
            format!("nothing is left to do; to have its changes again, {}", take_back(by, caller)),
        ),
        FindError::Ambiguous { .. } => (Reason::AmbiguousId, "give more of the id".to_owned()),
        FindError::Unknown(_) if caller == Caller::Model => (Reason::NotFound, LISTED.to_owned()),
        FindError::Unknown(_) | FindError::Nothing => (Reason::NotFound, not_kept(caller).to_owned()),
    };
    Failure::new(reason, error.to_string()).hint(hint)
}

/// What to do about a batch that the history does not have.
const fn not_kept(caller: Caller) -> &'static str {
    match caller {
        Caller::Shell => {
            "`aptix log` lists the batches of a root that are known; `days` and `bytes` of `[history]` in the policy file \
             say for how long, and how much of them is kept"
        }
        Caller::Server => {
            "read the files and send an edit that changes them; what files were before is kept for a limited time, by the \
             workstation alone that carried the batch out, and not of changes outside of a batch"
        }
        Caller::Model => {
            "read the files and send an edit that changes them; the workstation keeps what files were before for a limited time"
        }
    }
}

/// How a caller takes a batch of this name back.
pub(super) fn take_back(name: &str, caller: Caller) -> String {
    match caller {
        Caller::Shell => format!("undo that one: `aptix undo {name}`"),
        Caller::Server | Caller::Model => format!("undo batch {name}"),
    }
}

/// What to do where nothing of a batch is left to undo.
pub(super) const fn nothing_left(caller: Caller) -> &'static str {
    match caller {
        Caller::Shell => "look at `aptix log`",
        Caller::Server | Caller::Model => "nothing is left to do; read the files before editing them again",
    }
}

/// The history cannot be used.
pub(crate) fn history_failure(error: &HistoryError, caller: Caller) -> Failure {
    match error {
        HistoryError::State(StateError::Part { doing: "read", errno, .. }) => {
            errno::read_failure(*errno, error.to_string())
        }
        HistoryError::State(error) => error.failure(),
        HistoryError::Damaged(_) | HistoryError::NotKept(_) => {
            let hint = match caller {
                Caller::Shell => {
                    "take the files back from version control, or edit them by hand; `aptix undo BATCH_ID` takes back \
                     another batch that `aptix log` lists"
                }
                Caller::Server | Caller::Model => not_kept(caller),
            };
            Failure::new(Reason::NotFound, error.to_string()).hint(hint)
        }
    }
}

/// A file is in the way of one that would come back.
pub(super) fn in_its_place(path: &str) -> Failure {
    let message = format!("there is another file at {path:?} now");
    Failure::new(Reason::FileExists, message).hint("move it away, then undo again")
}
