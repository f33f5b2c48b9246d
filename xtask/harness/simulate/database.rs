//! The store that simulated servers share, as each of them reaches it: its way there may be cut, slow, or lose answers.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::{Context as _, Result};
use aptix_model::id::{HistoryId, RequestId, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_server::store::fleet::{Company, Grant, Granted, Hints, LeaseName, Lifetime, Looked, Member, Seen, ServerId};
use aptix_server::store::memory::shared::SharedMemory;
use aptix_server::store::wrapper::Wrapper;
use aptix_server::store::{
    Answer, Appended, LocalAppended, LocalBatch, Store, StoreError, Transition, Transitioned, UploadId,
};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::clock::pass;
use crate::defect::Defect;
use crate::hints::HintChannel;
use crate::history::{Ailment, Fate, SERVERS};
use crate::leases::Leases;
use crate::random::Random;
use crate::store::Mortal;
use crate::workers::with;

/// The calls that change what is stored: their answers may be lost.
const WRITES: [&str; 17] = [
    "append",
    "append_local",
    "transition",
    "set_mode",
    "create_workspace",
    "claim_upload",
    "release_upload",
    "put_chunk",
    "commit_upload",
    "sweep_blobs",
    "grow_older",
    "retain",
    "join",
    "renew",
    "leave",
    "take_lease",
    "release_leases",
];

/// The calls that always reach the store: a server that cannot read its tokens does not start, and closing asks for nothing.
const SAFE: [&str; 2] = ["tokens", "close"];

/// The store of all servers.
pub(crate) struct Database {
    memory: SharedMemory,
    hints: HintChannel,
    /// What ails the way of each server, and until when.
    ails: Mutex<[Option<(Ailment, Instant)>; SERVERS]>,
    leases: Mutex<Leases>,
    random: Mutex<Random>,
    defect: Option<Defect>,
    /// Which server stored the batch of a request.
    stored_by: Mutex<HashMap<RequestId, usize>>,
}

impl Database {
    /// One that takes its own answers for those of a store with this defect.
    pub(crate) fn new(random: &mut Random, defect: Option<Defect>) -> Result<Arc<Self>> {
        let mut part = || Random::new(random.below(usize::MAX) as u64);
        let memory = SharedMemory::default();
        let hints = HintChannel::new(Wrapper::hints(&memory).context("the store gives no hints")?, part());
        Ok(Arc::new(Self {
            memory,
            hints,
            ails: Mutex::default(),
            leases: Mutex::default(),
            random: Mutex::new(part()),
            defect,
            stored_by: Mutex::default(),
        }))
    }

    /// The way of a server that starts, and what dies with the server.
    pub(crate) fn way(self: &Arc<Self>, server: usize) -> (Arc<Way>, Arc<Mortal>) {
        let mortal = Arc::new(Mortal::at_once(self.memory.another(), None));
        let way = Way {
            database: Arc::clone(self),
            server,
            mortal: Arc::clone(&mortal),
            company: Mutex::default(),
            first: Mutex::default(),
        };
        (Arc::new(way), mortal)
    }

    /// Something ails a server's way for so long.
    pub(crate) fn ail(&self, server: usize, ailment: Ailment, time: Duration) {
        with(&self.ails, |ails| ails[server] = Some((ailment, Instant::now() + time)));
    }

    /// Mends every way, and has hints come at once.
    pub(crate) fn mend(&self) {
        with(&self.ails, |ails| *ails = Default::default());
        self.set_fate(Fate::Prompt);
    }

    /// What happens to hints from now on.
    pub(crate) fn set_fate(&self, fate: Fate) {
        self.hints.set_fate(fate);
    }

    /// What was answered about leases that must not be, if anything was.
    pub(crate) fn wrong(&self) -> Option<String> {
        with(&self.leases, |leases| leases.wrong())
    }

    fn ailment(&self, server: usize) -> Option<Ailment> {
        let ailing = with(&self.ails, |ails| ails[server]);
        ailing.filter(|(_, until)| *until > Instant::now()).map(|(ailment, _)| ailment)
    }

    fn below(&self, bound: usize) -> usize {
        with(&self.random, |random| random.below(bound))
    }

    /// How long a message to the store or from it takes on a slow way.
    fn delay(&self) -> Duration {
        let millis = if self.below(12) == 0 { 5_000 } else { self.below(400) };
        Duration::from_millis(millis as u64)
    }

    /// Lets a call of a server reach the store.
    async fn reach<T>(
        &self,
        (server, call): (usize, &'static str),
        work: impl Future<Output = Result<T, StoreError>>,
    ) -> Result<T, StoreError> {
        let cut = || StoreError::ReadOnly { cause: "the database cannot be reached".to_owned() };
        let ailment = self.ailment(server).filter(|_| !SAFE.contains(&call));
        match ailment {
            // Some calls wait before they fail.
            Some(Ailment::Cut) => {
                pass(Duration::from_millis([0, 3_000][self.below(2)])).await;
                if self.ailment(server) == Some(Ailment::Cut) {
                    return Err(cut());
                }
            }
            Some(Ailment::Slow) => pass(self.delay()).await,
            Some(Ailment::Unsure) if WRITES.contains(&call) => match self.below(6) {
                0 => return Err(cut()),
                1 => {
                    // It is done, and the server does not learn of it.
                    let _ = work.await;
                    self.hints.send(server, |_| false);
                    return Err(cut());
                }
                _ => {}
            },
            Some(Ailment::Unsure) if self.below(6) == 0 => {
                return Err(StoreError::Busy { cause: "a statement took too long".to_owned() });
            }
            Some(Ailment::Unsure) | None => {}
        }
        let answer = work.await;
        self.hints.send(server, |other| self.ailment(other) != Some(Ailment::Cut));
        if ailment == Some(Ailment::Slow) {
            pass(self.delay()).await;
        }
        answer
    }
}

/// The way of one server to the store.
pub(crate) struct Way {
    database: Arc<Database>,
    server: usize,
    mortal: Arc<Mortal>,
    /// What the server was answered when it was renewed last.
    company: Mutex<Option<Company>>,
    /// What the server was answered when it looked at each workspace first.
    first: Mutex<HashMap<WorkspaceId, Option<Seen>>>,
}

impl Way {
    fn has(&self, defect: Defect) -> bool {
        self.database.defect == Some(defect)
    }

    /// The answer of the store once it is reached; `note` is called with it before the server learns of it.
    fn noted<'s, T: Send + 's>(
        &'s self,
        call: &'static str,
        work: impl Future<Output = Result<T, StoreError>> + Send + 's,
        note: impl FnOnce(&mut Leases, &T) + Send + 's,
    ) -> Answer<'s, T> {
        let noted = async move {
            let answer = work.await?;
            with(&self.database.leases, |leases| note(leases, &answer));
            Ok(answer)
        };
        Box::pin(self.database.reach((self.server, call), noted))
    }

    /// A request that another server stored, as one that nobody did.
    fn forgotten(&self, batch: &mut BatchRecord) -> Result<()> {
        let by = with(&self.database.stored_by, |by| *by.entry(batch.request_id.clone()).or_insert(self.server));
        if by != self.server && self.has(Defect::RequestOfOtherServerForgotten) {
            batch.request_id = format!("{}-at-{}", batch.request_id, self.server).parse()?;
        }
        Ok(())
    }
}

impl Wrapper for Way {
    fn ask<T: Send + 'static>(
        &self,
        call: &'static str,
        question: impl for<'s> FnOnce(&'s dyn Store) -> Answer<'s, T> + Send + 'static,
    ) -> Answer<'_, T> {
        self.noted(call, async move { self.mortal.ask(call, question).await }, |_, _| ())
    }

    fn append(&self, mut batch: BatchRecord) -> Answer<'_, Appended> {
        let forgotten = self.forgotten(&mut batch);
        let failed = |cause: anyhow::Error| StoreError::Failed { action: "forget", cause: cause.to_string() };
        let work = async move {
            forgotten.map_err(failed)?;
            Wrapper::append(&*self.mortal, batch).await
        };
        self.noted("append", work, |_, _| ())
    }

    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        let (workspace, proof) = (local.batch.workspace.clone(), local.lease);
        let work = async move { Wrapper::append_local(&*self.mortal, local).await };
        self.noted("append_local", work, move |leases, answer| {
            if matches!(answer, LocalAppended::New(_)) {
                leases.used(&workspace, proof);
            }
        })
    }

    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        let (workspace, proof) = (step.workspace.clone(), step.lease);
        let work = async move { Wrapper::transition(&*self.mortal, step).await };
        self.noted("transition", work, move |leases, answer| {
            if let (Transitioned::Done(_), Some(proof)) = (answer, proof) {
                leases.used(&workspace, proof);
            }
        })
    }

    fn join(&self, member: Member, lifetime: Lifetime) -> Answer<'_, Company> {
        let server = member.id;
        let work = async move { Wrapper::join(&*self.mortal, member, lifetime).await };
        self.noted("join", work, move |leases, _| leases.joined(server, lifetime))
    }

    fn renew(&self, server: ServerId, lifetime: Lifetime) -> Answer<'_, Option<Company>> {
        if self.has(Defect::ServesOnAfterItsLifetime) && self.database.ailment(self.server) == Some(Ailment::Cut) {
            let company = with(&self.company, |company| company.clone());
            return Box::pin(async { Ok(company) });
        }
        let work = async move {
            let company = Wrapper::renew(&*self.mortal, server, lifetime).await?;
            with(&self.company, |known| known.clone_from(&company));
            Ok(company)
        };
        self.noted("renew", work, move |leases, company| {
            if company.is_some() {
                leases.renewed(server, lifetime);
            }
        })
    }

    fn leave(&self, server: ServerId) -> Answer<'_, ()> {
        let work = async move { Wrapper::leave(&*self.mortal, server).await };
        self.noted("leave", work, move |leases, ()| leases.left(server))
    }

    fn take_lease(&self, grant: Grant) -> Answer<'_, Granted> {
        let asked = grant.clone();
        let work = async move {
            let granted = Wrapper::take_lease(&*self.mortal, grant).await?;
            Ok(match granted {
                Granted::Epoch(epoch) if epoch > 1 && self.has(Defect::EpochKept) => Granted::Epoch(epoch - 1),
                granted => granted,
            })
        };
        self.noted("take_lease", work, move |leases, granted| leases.asked(asked, *granted))
    }

    fn release_leases(&self, released: Vec<LeaseName>) -> Answer<'_, ()> {
        let names = released.clone();
        let work = async move { Wrapper::release_leases(&*self.mortal, released).await };
        self.noted("release_leases", work, move |leases, ()| leases.released(names))
    }

    fn look(&self, workspaces: Vec<WorkspaceId>) -> Answer<'_, Looked> {
        let work = async move {
            let mut looked = Wrapper::look(&*self.mortal, workspaces.clone()).await?;
            if self.has(Defect::HintsBelieved) {
                with(&self.first, |first| {
                    for (workspace, seen) in workspaces.into_iter().zip(&mut looked.seen) {
                        *seen = *first.entry(workspace).or_insert(*seen);
                    }
                });
            }
            Ok(looked)
        };
        self.noted("look", work, |_, _| ())
    }

    fn history(&self) -> HistoryId {
        Wrapper::history(&*self.mortal)
    }

    fn discard_upload(&self, upload: UploadId) {
        Wrapper::discard_upload(&*self.mortal, upload);
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn hints(&self) -> Option<Hints> {
        Some(self.database.hints.listen(self.server))
    }
}
