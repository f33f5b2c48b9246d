//! How far the store and each of its workspaces have come.

use aptix_model::digest::Sha256Digest;
use aptix_model::id::Revision;

use crate::store::Lease;

/// The state of the store after a commit.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Head {
    /// How many commits there were; 0 for none.
    pub(super) number: u64,
    /// Digest of the newest and all before it.
    pub(super) digest: Option<Sha256Digest>,
}

/// What a workspace counts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(super) struct Counters {
    pub(super) newest: Revision,
    /// Digest of the newest commit and all before it.
    pub(super) digest: Option<Sha256Digest>,
    pub(super) lease: Lease,
}
