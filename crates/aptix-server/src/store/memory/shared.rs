//! A store in memory that several servers share: for tests of what they do together.

use std::collections::HashMap;
use std::future::ready;
use std::pin::{Pin, pin};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{HistoryId, TokenName, Uuid, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::token::{Ended, Token};
use tokio::sync::{broadcast, watch};
use tokio::time::Instant;

use super::MemoryStore;
use crate::quota::used::Used;
use crate::store::access::{KeptToken, TokenAdded};
use crate::store::fleet::{
    Company, Grant, Granted, Hint, Hints, Holder, LeaseName, Lifetime, Looked, Member, Seen, ServerId, UsedByOthers,
};
use crate::store::session::{ModeChange, ModeChanged};
use crate::store::wrapper::Wrapper;
use crate::store::{
    Answer, Appended, LocalAppended, LocalBatch, Store, StoreError, Transition, Transitioned, UploadId,
};

/// Hints that a slow receiver may be behind.
const HINTS: usize = 1024;

/// One server's way to a store that others share. Copies are ways of other servers to the same store.
pub struct SharedMemory {
    common: Arc<Common>,
    /// Whether this server cannot reach the store.
    is_cut: AtomicBool,
    /// Whether the answer to the next lease that is granted is lost.
    loses_lease: AtomicBool,
    /// How often this server asked how far workspaces have come.
    looks: AtomicU64,
}

struct Common {
    store: MemoryStore,
    fleet: Mutex<Fleet>,
    hints: broadcast::Sender<Hint>,
    used: broadcast::Sender<Used>,
    /// Whether hints are lost.
    is_silent: AtomicBool,
}

#[derive(Default)]
struct Fleet {
    /// Until when each member counts among those that live.
    members: HashMap<ServerId, (Member, Instant)>,
    /// Who holds the lease of a workspace, by which secret.
    held: HashMap<WorkspaceId, (Sha256Digest, Holder)>,
    /// How often a workspace of this name was deleted.
    deleted: HashMap<WorkspaceId, u128>,
    tokens: u64,
}

impl Fleet {
    fn lives(&self, server: ServerId) -> bool {
        self.members.get(&server).is_some_and(|(_, until)| *until > Instant::now())
    }

    /// Has a server count among those that live until its time is over.
    fn count(&mut self, member: Member, lifetime: Lifetime) -> Company {
        let (me, now) = (member.id, Instant::now());
        self.members.insert(me, (member, now + lifetime));
        let others = self.members.values().filter(|(other, until)| other.id != me && *until > now);
        Company { others: others.map(|(other, _)| other.clone()).collect() }
    }
}

impl Default for SharedMemory {
    fn default() -> Self {
        let common = Common {
            store: MemoryStore::default(),
            fleet: Mutex::default(),
            hints: broadcast::Sender::new(HINTS),
            used: broadcast::Sender::new(HINTS),
            is_silent: AtomicBool::new(false),
        };
        Self::over(Arc::new(common))
    }
}

impl SharedMemory {
    fn over(common: Arc<Common>) -> Self {
        Self { common, is_cut: AtomicBool::new(false), loses_lease: AtomicBool::new(false), looks: AtomicU64::new(0) }
    }

    /// The way of another server to the same store.
    #[must_use]
    pub fn another(&self) -> Arc<Self> {
        Arc::new(Self::over(Arc::clone(&self.common)))
    }

    /// Has this server reach the store no more, or again.
    pub fn cut(&self, is_cut: bool) {
        self.is_cut.store(is_cut, Ordering::SeqCst);
    }

    /// Has the answer to the next lease that is granted to an agent of this server be lost.
    pub fn lose_lease(&self) {
        self.loses_lease.store(true, Ordering::SeqCst);
    }

    /// Has all hints be lost from now on, or none.
    pub fn silence(&self, is_silent: bool) {
        self.common.is_silent.store(is_silent, Ordering::SeqCst);
    }

    /// How often this server asked how far workspaces have come.
    #[must_use]
    pub fn looks(&self) -> u64 {
        self.looks.load(Ordering::SeqCst)
    }

    fn fleet(&self) -> MutexGuard<'_, Fleet> {
        self.common.fleet.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn hint(&self, hint: Hint) {
        if !self.common.is_silent.load(Ordering::SeqCst) {
            // Nobody may listen.
            let _ = self.common.hints.send(hint);
        }
    }

    fn reached(&self) -> Result<(), StoreError> {
        match self.is_cut.load(Ordering::SeqCst) {
            true => Err(StoreError::ReadOnly { cause: "the database cannot be reached".to_owned() }),
            false => Ok(()),
        }
    }

    /// Asks the store, and hints at what changed.
    fn change<T: Send + 'static>(
        &self,
        hint: Hint,
        change: impl for<'s> FnOnce(&'s MemoryStore) -> Answer<'s, T>,
    ) -> Answer<'_, T> {
        if let Err(error) = self.reached() {
            return Box::pin(async { Err(error) });
        }
        let changed = change(&self.common.store);
        if hint == Hint::Tokens {
            self.fleet().tokens += 1;
        }
        self.hint(hint);
        changed
    }

    /// Answers from what is known of the servers.
    fn answer<T: Send + 'static>(&self, answer: impl FnOnce(&mut Fleet) -> T) -> Answer<'_, T> {
        let answer = self.reached().map(|()| answer(&mut self.fleet()));
        Box::pin(async { answer })
    }
}

/// What a store in memory answers, which it has at once.
fn at_once<T>(answer: Answer<'_, T>) -> Result<T, StoreError> {
    match pin!(answer).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(answer) => answer,
        Poll::Pending => Err(StoreError::Closed),
    }
}

impl Wrapper for SharedMemory {
    fn ask<T: Send + 'static>(
        &self,
        _: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        match self.reached() {
            Err(error) => Box::pin(async { Err(error) }),
            Ok(()) => question(&self.common.store),
        }
    }

    fn history(&self) -> HistoryId {
        self.common.store.history()
    }

    fn discard_upload(&self, upload: UploadId) {
        self.common.store.discard_upload(upload);
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.common.store.failed()
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        self.common.store.healed()
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        self.common.store.reopenings()
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn hints(&self) -> Option<Hints> {
        Some(self.common.hints.subscribe())
    }

    fn tell(&self, used: Used) {
        if self.reached().is_ok() {
            // Nobody may listen.
            let _ = self.common.used.send(used);
        }
    }

    fn told(&self) -> Option<UsedByOthers> {
        Some(self.common.used.subscribe())
    }

    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        self.change(Hint::Event(batch.workspace.clone(), batch.id), |store| store.append(batch))
    }

    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        let hint = Hint::Event(local.batch.workspace.clone(), local.batch.id);
        self.change(hint, |store| store.append_local(local))
    }

    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        self.change(Hint::Event(step.workspace.clone(), step.batch), |store| store.transition(step))
    }

    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged> {
        self.change(Hint::Workspace(change.workspace.clone()), |store| store.set_mode(change))
    }

    fn add_token(&self, token: KeptToken) -> Answer<'_, TokenAdded> {
        self.change(Hint::Tokens, |store| store.add_token(token))
    }

    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>> {
        self.change(Hint::Tokens, |store| store.end_token(name, ended))
    }

    fn begin_deletion(&self, workspace: WorkspaceId, ended: Ended) -> Answer<'_, Option<Vec<TokenName>>> {
        let fleet = self.fleet();
        if let Some((_, holder)) = fleet.held.get(&workspace).filter(|(_, holder)| fleet.lives(holder.server)) {
            let cause = format!("agent {} took the lease of workspace {workspace}", holder.agent);
            return Box::pin(ready(Err(StoreError::Failed { action: "begin a deletion", cause })));
        }
        drop(fleet);
        let begun = self.change(Hint::Tokens, |store| store.begin_deletion(workspace.clone(), ended));
        let mut fleet = self.fleet();
        *fleet.deleted.entry(workspace.clone()).or_default() += 1;
        fleet.held.remove(&workspace);
        drop(fleet);
        self.hint(Hint::Workspace(workspace));
        begun
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async { Ok(()) })
    }

    fn join(&self, member: Member, lifetime: Lifetime) -> Answer<'_, Company> {
        self.answer(|fleet| fleet.count(member, lifetime))
    }

    fn renew(&self, server: ServerId, lifetime: Lifetime) -> Answer<'_, Option<Company>> {
        self.answer(|fleet| {
            let (member, _) = fleet.members.remove(&server).filter(|(_, until)| *until > Instant::now())?;
            Some(fleet.count(member, lifetime))
        })
    }

    fn leave(&self, server: ServerId) -> Answer<'_, ()> {
        self.answer(|fleet| drop(fleet.members.remove(&server)))
    }

    fn take_lease(&self, grant: Grant) -> Answer<'_, Granted> {
        let taken = self.reached().and_then(|()| {
            let Grant { workspace, secret, held, holder } = grant;
            let mut fleet = self.fleet();
            if !fleet.lives(holder.server) {
                return Ok(Granted::Dead);
            }
            let lease = at_once(self.common.store.lease(workspace.clone()))?;
            let is_elsewhere = |other: &Holder| other.server != holder.server && fleet.lives(other.server);
            if let Some((_, other)) = fleet.held.get(&workspace).filter(|(_, other)| is_elsewhere(other))
                && (held.is_none() || held != lease.secret)
            {
                return Ok(Granted::Held(other.since));
            }
            let roots = holder.presence.roots.clone();
            let epoch = at_once(self.common.store.grant_lease(workspace.clone(), secret, roots))?;
            fleet.held.insert(workspace.clone(), (secret, holder));
            drop(fleet);
            self.hint(Hint::Workspace(workspace));
            match self.loses_lease.swap(false, Ordering::SeqCst) {
                true => Err(StoreError::ReadOnly { cause: "the answer was lost".to_owned() }),
                false => Ok(Granted::Epoch(epoch)),
            }
        });
        Box::pin(async { taken })
    }

    fn release_leases(&self, leases: Vec<LeaseName>) -> Answer<'_, ()> {
        self.answer(|fleet| {
            for (workspace, secret) in leases {
                if fleet.held.get(&workspace).is_some_and(|(held, _)| *held == secret) {
                    fleet.held.remove(&workspace);
                }
            }
        })
    }

    fn holder(&self, workspace: WorkspaceId) -> Answer<'_, Option<(Holder, Member)>> {
        self.answer(|fleet| {
            let (_, holder) = fleet.held.get(&workspace)?;
            let (member, until) = fleet.members.get(&holder.server)?;
            (*until > Instant::now()).then(|| (holder.clone(), member.clone()))
        })
    }

    fn look(&self, workspaces: Vec<WorkspaceId>) -> Answer<'_, Looked> {
        self.looks.fetch_add(1, Ordering::SeqCst);
        let seen = |workspace: &WorkspaceId| {
            let Some(newest) = at_once(self.common.store.newest(workspace.clone()))? else { return Ok(None) };
            let lease = at_once(self.common.store.lease(workspace.clone()))?;
            let instance = Uuid::from_u128(self.fleet().deleted.get(workspace).copied().unwrap_or_default());
            Ok(Some(Seen { instance, newest, lease }))
        };
        let seen = self.reached().and_then(|()| workspaces.iter().map(seen).collect::<Result<Vec<_>, _>>());
        let looked = seen.map(|seen| Looked { seen, tokens: self.fleet().tokens });
        Box::pin(async { looked })
    }
}
