//! The one task that writes batches, sessions and leases. It takes everything that waits, and writes it in one transaction with one
//! commit. A workspace whose row another transaction holds is set apart: its writes are transactions of their own, so that the
//! writes of others do not wait for it. The same applies to every workspace of a group that fails, or in which no write can decide.

use std::collections::{BTreeMap, HashMap, VecDeque};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use aptix_model::id::WorkspaceId;
use tokio::sync::{Semaphore, mpsc, oneshot};
use tokio::task::JoinSet;

use super::connections::COMMITTING;
use super::database::{BEGIN, BEGIN_GROUP, Database};
use super::fault::Fault;
use super::group::{self, Ended, WRITTEN_BYTES};
use super::job::Job;
use super::known::Known;
use super::load;
use crate::metrics::{self, Metric};
use crate::store::StoreError;

/// How many writes one group takes; as many as may wait.
pub(super) const GROUP: usize = 256;

/// Writes that wait for a workspace that is set apart.
const APART: usize = 256;

/// Workspaces that are set apart and carried out at once. With the group under way they take the connections of the committer.
const AT_ONCE: usize = COMMITTING - 1;

/// What the committer is asked for.
pub(super) enum Order {
    Write(Job),
    /// Everything taken is written, and nothing more is taken.
    Close(oneshot::Sender<()>),
}

/// How many groups have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(Arc<AtomicU64>);

impl Groups {
    pub(super) fn ended(&self) -> u64 {
        self.0.load(Ordering::SeqCst)
    }

    fn end(&self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// The committer.
pub(super) struct Committer {
    database: Arc<Database>,
    orders: mpsc::Receiver<Order>,
    groups: Groups,
    /// Rows as the groups before left them. What is set apart is written without.
    known: Known,
    /// Writes that were put off for want of memory; they come first in the next group.
    later: VecDeque<Job>,
    /// Workspaces that are set apart, each with the writes that wait for it.
    apart: HashMap<WorkspaceId, Vec<Job>>,
    /// Transactions of workspaces that are set apart; each answers which one, and what was put off.
    running: JoinSet<(WorkspaceId, Vec<Job>)>,
    /// Bounds how many of them are carried out at once: each waits for a lock with a connection.
    turns: Arc<Semaphore>,
}

impl Committer {
    pub(super) fn new(database: Arc<Database>, orders: mpsc::Receiver<Order>, groups: Groups) -> Self {
        let (later, apart, running) = (VecDeque::new(), HashMap::new(), JoinSet::new());
        let turns = Arc::new(Semaphore::new(AT_ONCE));
        let known = Known::new(database.ear.listen());
        Self { database, orders, groups, known, later, apart, running, turns }
    }

    /// Serves until the store is closed or dropped.
    pub(super) async fn run(mut self) {
        let _writer = Writer(Arc::clone(&self.database));
        loop {
            let (jobs, close) = self.take().await;
            let is_over = jobs.is_empty() && close.is_none();
            if !jobs.is_empty() {
                let (began, taken) = (Instant::now(), jobs.len());
                self.group(jobs).await;
                self.groups.end();
                Metric::GroupWrites.observe(&[], metrics::count(taken));
                Metric::StoreQueue.set(&[], metrics::count(self.orders.len()));
                Metric::FlushSeconds.took(&[], began.elapsed());
            }
            if close.is_some() || is_over {
                while !(self.later.is_empty() && self.running.is_empty()) {
                    let jobs = self.later.drain(..).collect::<Vec<_>>();
                    if !jobs.is_empty() {
                        self.group(jobs).await;
                    }
                    if let Some(ended) = self.running.join_next().await {
                        self.ended_apart(ended);
                    }
                }
                if let Some(reply) = close {
                    let _ = reply.send(());
                }
                return;
            }
        }
    }

    /// The writes of the next group; nothing once no more can come.
    async fn take(&mut self) -> (Vec<Job>, Option<oneshot::Sender<()>>) {
        let (mut jobs, mut bytes) = (Vec::new(), 0);
        loop {
            while let Some(job) = self.later.pop_front() {
                self.admit(job, &mut jobs, &mut bytes);
            }
            if !jobs.is_empty() {
                break;
            }
            let order = tokio::select! {
                order = self.orders.recv() => order,
                Some(ended) = self.running.join_next() => {
                    self.ended_apart(ended);
                    continue;
                }
            };
            match order {
                Some(Order::Write(job)) => self.admit(job, &mut jobs, &mut bytes),
                Some(Order::Close(reply)) => return (jobs, Some(reply)),
                None => return (jobs, None),
            }
        }
        while jobs.len() < GROUP && bytes < WRITTEN_BYTES {
            match self.orders.try_recv() {
                Ok(Order::Write(job)) => self.admit(job, &mut jobs, &mut bytes),
                Ok(Order::Close(reply)) => return (jobs, Some(reply)),
                Err(_) => break,
            }
        }
        (jobs, None)
    }

    /// Takes a write into the group, or behind the others of a workspace that is set apart.
    fn admit(&mut self, mut job: Job, jobs: &mut Vec<Job>, bytes: &mut usize) {
        if let Some((waited, asked)) = job.waited.take() {
            waited.for_groups(self.groups.ended() - asked);
        }
        match self.apart.get_mut(&job.workspace) {
            Some(waiting) if waiting.len() >= APART => job.work.answer(Err(Fault::Locked.into_error())),
            Some(waiting) => waiting.push(job),
            None => {
                *bytes += job.bytes;
                jobs.push(job);
            }
        }
    }

    async fn group(&mut self, mut jobs: Vec<Job>) {
        if let Err(error) = self.database.health.admit() {
            refuse(jobs, &error);
            return;
        }
        let mut ended = twice(&self.database, BEGIN_GROUP, &mut jobs, Some(&mut self.known)).await;
        if matches!(ended, Err(Fault::Locked))
            && let Ok(locked) =
                self.database.in_time(load::locked(&self.database, jobs.iter().map(|job| &job.workspace))).await
        {
            let (apart, free) = jobs.into_iter().partition(|job| locked.contains(&job.workspace));
            self.set_apart(apart);
            jobs = free;
            if jobs.is_empty() {
                return;
            }
            ended = twice(&self.database, BEGIN_GROUP, &mut jobs, Some(&mut self.known)).await;
        }
        match ended {
            Ok(Ended { decided, later }) if decided.is_empty() => self.set_apart(later),
            Ok(ended) => self.later.extend(answered(ended)),
            // PostgreSQL rolled all of it back: the writes that it does not refuse are stored without the one that it does.
            Err(Fault::Locked | Fault::Failed(_)) => self.set_apart(jobs),
            Err(fault) => refuse(jobs, &self.database.fault(fault)),
        }
    }

    /// Carries out the writes of each workspace on their own.
    fn set_apart(&mut self, jobs: Vec<Job>) {
        let mut by_workspace = BTreeMap::<WorkspaceId, Vec<Job>>::new();
        for job in jobs {
            by_workspace.entry(job.workspace.clone()).or_default().push(job);
        }
        for (workspace, jobs) in by_workspace {
            self.apart.insert(workspace.clone(), Vec::new());
            self.known.forget_workspace(&workspace);
            self.start(workspace, jobs);
        }
    }

    fn start(&mut self, workspace: WorkspaceId, jobs: Vec<Job>) {
        let (database, turns) = (Arc::clone(&self.database), Arc::clone(&self.turns));
        self.running.spawn(async move {
            let _turn = turns.acquire().await;
            (workspace, carry_out_apart(&database, jobs).await)
        });
    }

    /// Goes on with what waits for a workspace that is set apart, or takes its writes into groups again.
    fn ended_apart(&mut self, ended: Result<(WorkspaceId, Vec<Job>), tokio::task::JoinError>) {
        let (workspace, later) = match ended {
            Ok(ended) => ended,
            Err(error) => {
                // Its writes were answered by being dropped. Which workspace it was is not known: all are taken into groups again.
                tracing::error!(%error, "a transaction of the store panicked");
                self.later.extend(self.apart.drain().flat_map(|(_, jobs)| jobs));
                return;
            }
        };
        let mut jobs = later;
        jobs.extend(self.apart.remove(&workspace).unwrap_or_default());
        if !jobs.is_empty() {
            self.apart.insert(workspace.clone(), Vec::new());
            self.start(workspace, jobs);
        }
    }
}

/// Reports, when it is dropped, that nothing is written any more.
struct Writer(Arc<Database>);

impl Drop for Writer {
    fn drop(&mut self) {
        self.0.health.end();
    }
}

/// Carries out the writes of a workspace that is set apart: together, or each in a transaction of its own if that fails or no write
/// can decide. Answers the writes that are put off.
async fn carry_out_apart(database: &Database, mut jobs: Vec<Job>) -> Vec<Job> {
    let is_one = jobs.len() == 1;
    match twice(database, BEGIN, &mut jobs, None).await {
        Ok(Ended { decided, later }) if decided.is_empty() && !is_one => jobs = later,
        Ok(ended) if !ended.decided.is_empty() => return answered(ended),
        Ok(Ended { later, .. }) => {
            refuse(later, &too_large());
            return Vec::new();
        }
        Err(Fault::Failed(_)) if !is_one => {}
        Err(fault) => {
            refuse(jobs, &database.fault(fault));
            return Vec::new();
        }
    }
    for job in jobs {
        let mut job = vec![job];
        match twice(database, BEGIN, &mut job, None).await {
            Ok(ended) => refuse(answered(ended), &too_large()),
            Err(fault) => refuse(job, &database.fault(fault)),
        }
    }
    Vec::new()
}

/// Answers the writes that decided; passes on those that are put off.
fn answered(ended: Ended) -> Vec<Job> {
    ended.decided.into_iter().for_each(|job| job.work.answer(Ok(())));
    ended.later
}

/// Answers writes of which nothing was stored, or for which that is not certain.
fn refuse(jobs: Vec<Job>, error: &StoreError) {
    jobs.into_iter().for_each(|job| job.work.answer(Err(error.clone())));
}

/// Carries out a group; once more if PostgreSQL rolled it back for another transaction.
async fn twice(
    database: &Database,
    begin: &str,
    jobs: &mut Vec<Job>,
    mut known: Option<&mut Known>,
) -> Result<Ended, Fault> {
    match group::carry_out(database, begin, jobs, known.as_deref_mut()).await {
        Err(Fault::Conflict(_)) => group::carry_out(database, begin, jobs, known).await,
        ended => ended,
    }
}

/// Refuses a write that does not fit into a group of its own.
fn too_large() -> StoreError {
    let cause = format!("it takes more than {WRITTEN_BYTES} bytes of other batches to decide on it");
    StoreError::Failed { action: "decide on a write", cause }
}

/// Why no more writes are taken.
pub(super) fn gone(database: &Database) -> StoreError {
    match database.health.admit() {
        Err(error) => error,
        Ok(()) => StoreError::ReadOnly { cause: "its writer ended unasked".to_owned() },
    }
}
