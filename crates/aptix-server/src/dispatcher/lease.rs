//! Who serves which workspace now. Only the streams of this process are known here; that a lease is the newest is
//! decided by its epoch, in the store.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::id::{AgentId, WorkspaceId};
use tokio_util::sync::CancellationToken;

/// How many workspaces may be leased at the same instant.
const TURNS: usize = 64;

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
}

#[derive(Debug)]
struct Holder {
    agent: AgentId,
    claim: u64,
    superseded: CancellationToken,
}

/// A held lease; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Claim {
    workspace: WorkspaceId,
    claim: u64,
    leases: Arc<Leases>,
    /// Cancelled when the same agent takes over with a newer stream.
    pub(super) superseded: CancellationToken,
}

impl Leases {
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A workspace's turn: whoever has it asks, is granted an epoch, and holds, with nobody in between. So the newest
    /// epoch is always that of the holder.
    pub(super) async fn turn(&self, workspace: &WorkspaceId) -> tokio::sync::MutexGuard<'_, ()> {
        let mut hasher = DefaultHasher::new();
        workspace.hash(&mut hasher);
        let stripe = usize::try_from(hasher.finish() % TURNS as u64).unwrap_or_default();
        self.turns[stripe].lock().await
    }

    /// Refuses a lease that another agent holds; answers who that is.
    pub(super) fn ask(&self, workspace: &WorkspaceId, agent: &AgentId) -> Result<(), AgentId> {
        match self.lock().holders.get(workspace) {
            Some(holder) if holder.agent != *agent => Err(holder.agent.clone()),
            _ => Ok(()),
        }
    }

    /// Takes the lease; whoever held it is superseded.
    pub(super) fn hold(self: &Arc<Self>, workspace: &WorkspaceId, agent: &AgentId) -> Claim {
        let mut held = self.lock();
        held.claims += 1;
        let claim = held.claims;
        let superseded = CancellationToken::new();
        let holder = Holder { agent: agent.clone(), claim, superseded: superseded.clone() };
        if let Some(former) = held.holders.insert(workspace.clone(), holder) {
            former.superseded.cancel();
        }
        Claim { workspace: workspace.clone(), claim, leases: Arc::clone(self), superseded }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let mut held = self.leases.lock();
        if held.holders.get(&self.workspace).is_some_and(|holder| holder.claim == self.claim) {
            held.holders.remove(&self.workspace);
        }
    }
}
