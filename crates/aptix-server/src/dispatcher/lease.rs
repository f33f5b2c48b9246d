//! Who serves which workspace now. Only the streams of this process are known here; that a lease is the newest is
//! decided by its epoch, in the store.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use aptix_model::id::{AgentId, WorkspaceId};
use tokio_util::sync::CancellationToken;

/// Every held lease.
#[derive(Debug, Default)]
pub(super) struct Leases(Mutex<Held>);

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
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes the lease, from the same agent if need be; answers who holds it if that is another agent.
    pub(super) fn claim(self: &Arc<Self>, workspace: &WorkspaceId, agent: &AgentId) -> Result<Claim, AgentId> {
        let mut held = self.lock();
        if let Some(holder) = held.holders.get(workspace) {
            if holder.agent != *agent {
                return Err(holder.agent.clone());
            }
            holder.superseded.cancel();
        }
        held.claims += 1;
        let claim = held.claims;
        let superseded = CancellationToken::new();
        held.holders.insert(workspace.clone(), Holder { agent: agent.clone(), claim, superseded: superseded.clone() });
        Ok(Claim { workspace: workspace.clone(), claim, leases: Arc::clone(self), superseded })
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
