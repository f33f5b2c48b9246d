//! The reference of leases on a store that servers share: which servers live, by the store's clock, and which lease is in force.

use std::collections::HashMap;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;
use aptix_server::store::LeaseProof;
use aptix_server::store::fleet::{Grant, Granted, LeaseName, Lifetime, ServerId};
use tokio::time::Instant;

/// A lease as its server learned of it.
struct Held {
    epoch: u64,
    secret: Sha256Digest,
    server: ServerId,
    is_released: bool,
}

/// What the store answered to the servers about leases, and what is wrong with that.
#[derive(Default)]
pub(crate) struct Leases {
    lives: HashMap<ServerId, Instant>,
    held: HashMap<WorkspaceId, Held>,
    wrong: Option<String>,
}

impl Leases {
    /// What was answered that must not be, if anything was.
    pub(crate) fn wrong(&self) -> Option<String> {
        self.wrong.clone()
    }

    fn blame(&mut self, why: String) {
        self.wrong.get_or_insert(why);
    }

    fn lives(&self, server: ServerId) -> bool {
        self.lives.get(&server).is_some_and(|until| *until > Instant::now())
    }

    /// A server joined the others.
    pub(crate) fn joined(&mut self, server: ServerId, lifetime: Lifetime) {
        self.lives.insert(server, Instant::now() + lifetime);
    }

    /// A server's row was renewed.
    pub(crate) fn renewed(&mut self, server: ServerId, lifetime: Lifetime) {
        if !self.lives(server) {
            self.blame(format!("server {server:?} was renewed although its time was over"));
        }
        self.joined(server, lifetime);
    }

    /// A server left the others.
    pub(crate) fn left(&mut self, server: ServerId) {
        self.lives.remove(&server);
    }

    /// A lease was asked for. Epochs increase, and a lease that is held through a server that lives goes only to the holder of its secret.
    pub(crate) fn asked(&mut self, grant: Grant, granted: Granted) {
        let Granted::Epoch(epoch) = granted else { return };
        let Grant { workspace, secret, held, holder } = grant;
        let server = holder.server;
        if !self.lives(server) {
            self.blame(format!("{workspace}: epoch {epoch} was granted through a server that does not live"));
        }
        if let Some(former) = self.held.get(&workspace) {
            let is_proven = held == Some(former.secret);
            let is_elsewhere = former.server != server && self.lives(former.server) && !former.is_released;
            let before = former.epoch;
            if epoch <= before {
                self.blame(format!("{workspace}: epoch {epoch} was granted after epoch {before}"));
            } else if is_elsewhere && !is_proven {
                self.blame(format!("{workspace}: epoch {epoch} was granted while epoch {before} was held elsewhere"));
            }
        }
        self.held.insert(workspace, Held { epoch, secret, server, is_released: false });
    }

    /// Leases ended.
    pub(crate) fn released(&mut self, leases: Vec<LeaseName>) {
        for (workspace, secret) in leases {
            if let Some(held) = self.held.get_mut(&workspace).filter(|held| held.secret == secret) {
                held.is_released = true;
            }
        }
    }

    /// A step was taken that needs the lease in force.
    pub(crate) fn used(&mut self, workspace: &WorkspaceId, proof: LeaseProof) {
        let in_force = self.held.get(workspace).map(|held| (held.epoch, Some(held.secret)));
        if in_force != Some((proof.epoch, proof.secret)) {
            let newest = in_force.map(|(epoch, _)| epoch);
            self.blame(format!("{workspace}: a step under epoch {} was taken, in force is {newest:?}", proof.epoch));
        }
    }
}
