//! Who serves which workspace now. Only the streams of this process are known here; that a lease is the newest is
//! decided by its epoch and its secret, in the store.

use std::collections::{BTreeMap, HashMap};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;
use aptix_model::record::UnixMillis;
use sha2::{Digest, Sha256};
use tokio_util::sync::CancellationToken;

use super::questions::Questions;
use crate::mint;
use crate::store::{Lease, StoreError};

/// How many workspaces may be leased at the same instant.
const TURNS: usize = 64;

/// Workspaces whose last lease is remembered after it ended.
const ENDED: usize = 10_000;

/// What only the holder of a lease has seen: 32 random bytes. It is kept and compared as a digest, and never logged.
#[derive(Clone, PartialEq, Eq)]
pub struct LeaseSecret([u8; 32]);

impl LeaseSecret {
    /// A new one.
    pub(super) fn mint() -> Result<Self, StoreError> {
        let secret = mint::secret();
        secret.map(Self).map_err(|cause| StoreError::Failed { action: "mint a secret", cause: cause.to_string() })
    }

    /// The bytes, for the holder.
    #[must_use]
    pub const fn bytes(&self) -> &[u8; 32] {
        &self.0
    }
}

impl std::fmt::Debug for LeaseSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a secret")
    }
}

/// The digest under which a secret is kept; `None` for no secret at all.
#[must_use]
pub fn secret_digest(secret: &[u8]) -> Option<Sha256Digest> {
    (!secret.is_empty()).then(|| Sha256Digest::from_bytes(Sha256::digest(secret).into()))
}

/// Every held lease.
#[derive(Debug)]
pub(super) struct Leases {
    held: Mutex<Held>,
    turns: [tokio::sync::Mutex<()>; TURNS],
}

impl Default for Leases {
    fn default() -> Self {
        Self { held: Mutex::default(), turns: std::array::from_fn(|_| tokio::sync::Mutex::default()) }
    }
}

#[derive(Debug, Default)]
struct Held {
    holders: HashMap<WorkspaceId, Holder>,
    claims: u64,
    ended: Ended,
}

/// When the last leases ended of workspaces that are not held now: those of the newest ends.
#[derive(Debug, Default)]
struct Ended {
    /// When, and the number of the end.
    when: HashMap<WorkspaceId, (UnixMillis, u64)>,
    /// By the number of their end.
    order: BTreeMap<u64, WorkspaceId>,
    newest: u64,
}

impl Ended {
    fn insert(&mut self, workspace: WorkspaceId, at: UnixMillis) {
        self.remove(&workspace);
        self.newest += 1;
        self.order.insert(self.newest, workspace.clone());
        self.when.insert(workspace, (at, self.newest));
        if self.order.len() > ENDED
            && let Some((_, oldest)) = self.order.pop_first()
        {
            self.when.remove(&oldest);
        }
    }

    fn remove(&mut self, workspace: &WorkspaceId) {
        if let Some((_, number)) = self.when.remove(workspace) {
            self.order.remove(&number);
        }
    }
}

#[derive(Debug)]
struct Holder {
    secret: Option<Sha256Digest>,
    epoch: u64,
    questions: Arc<Questions>,
    claim: u64,
    superseded: CancellationToken,
}

/// A held lease; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    workspace: WorkspaceId,
    claim: u64,
    leases: Arc<Leases>,
    questions: Arc<Questions>,
    /// Cancelled when the holder takes over with a newer stream.
    pub(super) superseded: CancellationToken,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A workspace's turn: its holder asks, is granted an epoch, and holds the lease, with no other caller in between. So the newest
    /// epoch is always that of the holder.
    pub(super) async fn turn(&self, workspace: &WorkspaceId) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        let [first, ..] = &self.turns;
        let stripe = usize::try_from(hasher.finish() % TURNS as u64).ok();
        stripe.and_then(|stripe| self.turns.get(stripe)).unwrap_or(first).lock().await
    }

    /// Refuses a lease that is held, unless the caller has its secret; answers since when it is held.
    pub(super) fn ask(&self, workspace: &WorkspaceId, secret: Option<Sha256Digest>) -> Result<(), UnixMillis> {
        match self.lock().holders.get(workspace) {
            Some(holder) if secret.is_none() || holder.secret != secret => Err(holder.questions.serving.since),
            _ => Ok(()),
        }
    }

    /// Takes the lease; its former holder is superseded.
    pub(super) fn hold(
        self: &Arc<Self>,
        workspace: &WorkspaceId,
        (secret, epoch): (Option<Sha256Digest>, u64),
        questions: Arc<Questions>,
    ) -> Claim {
        let mut held = self.lock();
        held.claims += 1;
        let claim = held.claims;
        let superseded = CancellationToken::new();
        let holder = Holder { secret, epoch, questions: Arc::clone(&questions), claim, superseded: superseded.clone() };
        held.ended.remove(workspace);
        if let Some(former) = held.holders.insert(workspace.clone(), holder) {
            former.superseded.cancel();
            former.questions.end();
        }
        Claim { workspace: workspace.clone(), claim, leases: Arc::clone(self), questions, superseded }
    }

    /// Ends that a lease is held here once another server granted a newer one, or one of the same epoch: the history lost this one.
    pub(super) fn supersede(&self, workspace: &WorkspaceId, newest: Lease) {
        let is_newer = |holder: &&Holder| {
            holder.epoch < newest.epoch || (holder.epoch == newest.epoch && holder.secret != newest.secret)
        };
        if let Some(holder) = self.lock().holders.get(workspace).filter(is_newer) {
            holder.superseded.cancel();
            holder.questions.end();
        }
    }

    /// The epoch of the lease of a workspace that is held here.
    pub(super) fn epoch(&self, workspace: &WorkspaceId) -> Option<u64> {
        self.lock().holders.get(workspace).map(|holder| holder.epoch)
    }

    /// When the last lease of a workspace ended, if it did since the server started, no other is held, and not too many ended
    /// since.
    pub(super) fn ended(&self, workspace: &WorkspaceId) -> Option<UnixMillis> {
        self.lock().ended.when.get(workspace).map(|(at, _)| *at)
    }

    /// Forgets when the last lease of a workspace ended: the workspace is being deleted.
    pub(super) fn forget(&self, workspace: &WorkspaceId) {
        self.lock().ended.remove(workspace);
    }

    /// How many leases are held.
    pub(super) fn count(&self) -> u64 {
        self.lock().holders.len() as u64
    }

    /// The questions of the connection that holds a workspace's lease.
    pub(super) fn questions(&self, workspace: &WorkspaceId) -> Option<Arc<Questions>> {
        self.lock().holders.get(workspace).map(|holder| Arc::clone(&holder.questions))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.questions.end();
        let mut held = self.leases.lock();
        if held.holders.get(&self.workspace).is_some_and(|holder| holder.claim == self.claim) {
            held.holders.remove(&self.workspace);
            held.ended.insert(self.workspace.clone(), mint::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// However many workspaces were served, so many ends are remembered: the newest.
    #[test]
    fn ends_of_leases_are_bounded() {
        let mut ended = Ended::default();
        let workspace = |number: usize| format!("w{number}").parse::<WorkspaceId>().unwrap();
        for number in 0..ENDED {
            ended.insert(workspace(number), UnixMillis(1));
        }
        // Served again, and ended again: it is among the newest.
        ended.remove(&workspace(0));
        ended.insert(workspace(0), UnixMillis(2));
        for number in ENDED..ENDED + 100 {
            ended.insert(workspace(number), UnixMillis(3));
        }
        assert_eq!((ended.when.len(), ended.order.len()), (ENDED, ENDED));
        let at = |number: usize| ended.when.get(&workspace(number)).map(|(at, _)| at.0);
        assert_eq!((at(0), at(1), at(100), at(101), at(ENDED + 99)), (Some(2), None, None, Some(1), Some(3)));
    }
}
