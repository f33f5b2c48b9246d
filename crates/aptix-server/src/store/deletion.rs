//! The deletion of a workspace with everything that is kept of it.

/// How far the deletion of a workspace has come.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Deletion {
    /// Batches whose records were removed so far.
    pub batches: u64,
    /// Bytes that the workspace stored when its deletion began.
    pub bytes: u64,
    /// Batches that had not ended when its deletion began.
    pub open_batches: u64,
    /// Whether nothing is left.
    pub is_done: bool,
}
