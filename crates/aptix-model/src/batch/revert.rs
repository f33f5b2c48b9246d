//! The edit that takes back what another batch did to one file.

use alloc::string::String;

use crate::id::BatchId;

/// Takes back what another batch did to a file, and nothing that came later. The agent makes the edit from its own history.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Revert {
    /// The batch that is taken back.
    pub batch: BatchId,
    /// The path that the file had before that batch renamed it, in the kind of path of the target; `None` if it did not.
    pub move_to: Option<String>,
}
