//! The position of a reader of a workspace's events.

use crate::digest::Sha256Digest;
use crate::id::{HistoryId, Revision};

/// A place in the events of a workspace, bound to the history that they are of. Two histories that diverged have
/// different digests at every revision after that, whatever their ids and revisions are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Cursor {
    /// The store's history.
    pub history: HistoryId,
    /// The last event that was read.
    pub revision: Revision,
    /// Digest of the commit of that event and all before it.
    pub digest: Sha256Digest,
}
