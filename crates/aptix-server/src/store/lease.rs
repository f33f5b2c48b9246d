//! The lease of a workspace, and how its holder proves it.

use aptix_model::digest::Sha256Digest;

/// What a caller shows to act under a lease.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LeaseProof {
    /// The epoch of the lease; 0 was never granted.
    pub epoch: u64,
    /// SHA-256 of the secret that the caller has.
    pub secret: Option<Sha256Digest>,
}

/// The newest lease of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Lease {
    /// Its epoch; 0 if none was ever granted.
    pub epoch: u64,
    /// SHA-256 of its secret; `None` if it was granted without one, by an earlier version.
    pub secret: Option<Sha256Digest>,
}

impl Lease {
    /// Whether this is the lease that was granted last. Digests of secrets are compared, so the time that takes says
    /// nothing about the secret.
    #[must_use]
    pub fn admits(&self, proof: LeaseProof) -> bool {
        proof.epoch != 0 && proof.epoch == self.epoch && (self.secret.is_none() || self.secret == proof.secret)
    }
}
