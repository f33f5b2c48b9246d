//! The one thread that writes. It takes everything that waits, writes it as one atomic batch with one flush, beside that of its
//! mark, and only then answers. After a failed write it refuses every other: what reached the disk is no longer certain.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aptix_model::id::WorkspaceId;
use fjall::{PersistMode, Slice};
use tokio::sync::{mpsc, oneshot};
use tokio_util::sync::CancellationToken;

use super::keys::{self, Key};
use super::marks::Round;
use super::record::{self, Counters, Head};
use super::rounds::Rounds;
use super::tables::{self, Tables, failed};
use super::usage;
use crate::metrics::{self, Metric};
use crate::store::{StoreError, UploadId, chain};
use crate::waited::Waited;

/// How many jobs one group takes; as many as may wait. So a write waits for the group that is under way when it is asked for,
/// and for no other, unless more wait than that.
pub(super) const GROUP: usize = 256;

/// One thing to be changed.
pub(super) enum Put {
    /// A record gets this value.
    Record(Key, Slice),
    /// A record is removed.
    RemoveRecord(Key),
    /// A chunk gets this value.
    Chunk(Key, Slice),
    /// The stored bytes of a workspace change by so many.
    Used(WorkspaceId, i64),
}

/// When a write must be durable.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Flush {
    /// Before it is answered.
    Now,
    /// With the next write that must be.
    WithNext,
}

/// The store with the writes before this one in the group.
pub(super) struct View<'a> {
    tables: &'a Tables,
    staged: &'a Staged,
}

/// What a group will change among the records; `None` where one is removed.
type Staged = BTreeMap<Key, Option<Slice>>;

impl View<'_> {
    /// A record, if there is one.
    pub(super) fn get(&self, key: &Key) -> Result<Option<Slice>, StoreError> {
        match self.staged.get(key) {
            Some(value) => Ok(value.clone()),
            None => {
                self.tables.reads.record();
                self.tables.records.get(key).map_err(failed("read a record"))
            }
        }
    }

    /// How many deletions of workspaces were begun, also by this group.
    pub(super) fn deletions(&self) -> u64 {
        self.tables.deletions()
    }

    /// Counts a deletion that this group begins.
    pub(super) fn count_deletion(&self) {
        self.tables.count_deletion();
    }

    /// What was last acknowledged of a workspace.
    pub(super) fn known(&self, workspace: &WorkspaceId) -> Option<Counters> {
        self.tables.known(workspace)
    }

    /// Whether there is a record whose key begins like this. Lists no others but those that this group removes.
    pub(super) fn has_any(&self, prefix: &[u8]) -> Result<bool, StoreError> {
        let mut staged = self.staged.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        if staged.any(|(_, value)| value.is_some()) {
            return Ok(true);
        }
        self.tables.reads.range();
        for entry in self.tables.records.prefix(prefix) {
            let key = entry.key().map_err(failed("list records"))?;
            if !self.staged.contains_key(key.as_ref()) {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Every record whose key begins like this.
    pub(super) fn beginning_with(&self, prefix: &[u8]) -> Result<BTreeMap<Key, Slice>, StoreError> {
        let mut found = BTreeMap::new();
        self.tables.reads.range();
        for entry in self.tables.records.prefix(prefix) {
            let (key, value) = entry.into_inner().map_err(failed("list records"))?;
            found.insert(key.to_vec(), value);
        }
        let staged = self.staged.range(prefix.to_vec()..).take_while(|(key, _)| key.starts_with(prefix));
        for (key, value) in staged {
            match value {
                Some(value) => found.insert(key.clone(), value.clone()),
                None => found.remove(key),
            };
        }
        Ok(found)
    }
}

/// Answers the caller once it is known whether the group was written.
type Completion = Box<dyn FnOnce(Result<(), StoreError>) + Send>;
type Work = Box<dyn FnOnce(&View<'_>) -> (Vec<Put>, Completion) + Send>;

/// How many groups have ended.
#[derive(Clone, Debug, Default)]
pub(super) struct Groups(Arc<Mutex<u64>>);

impl Groups {
    /// Sends a write to the committer; a call that counts learns how many groups end before that of its write begins.
    pub(super) async fn send(
        &self,
        jobs: &mpsc::Sender<Job>,
        mut job: Job,
        waited: Option<Arc<Waited>>,
    ) -> Result<(), mpsc::error::SendError<()>> {
        let mut early = None;
        let place = if let Ok(place) = jobs.try_reserve() {
            place
        } else {
            early = Some(*self.ended());
            jobs.reserve().await?
        };
        // No group ends between counting and sending: a write that is slow to be sent has not waited for one.
        let ended = waited.is_some().then(|| self.ended());
        if let (Some(waited), Some(ended), Job::Write(_, _, asked)) = (waited, &ended, &mut job) {
            *asked = Some(Asked { waited, ended: early.unwrap_or(**ended) });
        }
        place.send(job);
        drop(ended);
        Ok(())
    }

    fn ended(&self) -> MutexGuard<'_, u64> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A call that waits for its group, and how many had ended when it asked.
pub(super) struct Asked {
    waited: Arc<Waited>,
    ended: u64,
}

/// What the committer is asked to do.
pub(super) enum Job {
    /// A write, when it must be durable, and who counts what it waits for.
    Write(Work, Flush, Option<Asked>),
    /// What came of an upload is removed.
    Discard(UploadId),
    /// Everything taken is flushed, and nothing more is taken.
    Close(oneshot::Sender<Result<(), StoreError>>),
}

impl Job {
    /// A write that reads, decides, and answers what is to change; its answer comes when the change is durable.
    pub(super) fn write<T: Send + 'static>(
        flush: Flush,
        work: impl FnOnce(&View<'_>) -> Result<(T, Vec<Put>), StoreError> + Send + 'static,
    ) -> (Self, oneshot::Receiver<Result<T, StoreError>>) {
        let (reply, answer) = oneshot::channel();
        let work: Work = Box::new(move |view| {
            // The database panics on some damaged tables; that ends this write, and not the thread.
            let worked = catch_unwind(AssertUnwindSafe(|| work(view))).unwrap_or_else(|_| {
                let why = "the database failed to read it".to_owned();
                Err(StoreError::Corrupt { what: "a record".to_owned(), why })
            });
            let (answer, puts) = match worked {
                Ok((answer, puts)) => (Ok(answer), puts),
                Err(error) => (Err(error), Vec::new()),
            };
            let complete: Completion = Box::new(move |written| {
                // The caller may have gone; what was written stays.
                let _ = reply.send(written.and(answer));
            });
            (puts, complete)
        });
        (Self::Write(work, flush, None), answer)
    }
}

/// Serves jobs until the store is closed or dropped; cancels `failed` when a write fails.
pub(super) fn run(
    tables: &Tables,
    mut head: Head,
    rounds: &Rounds,
    (mut jobs, groups): (mpsc::Receiver<Job>, &Groups),
    overflow: &Mutex<Vec<UploadId>>,
    failed: &CancellationToken,
) {
    let mut failure: Option<StoreError> = None;
    while let Some(first) = jobs.blocking_recv() {
        let mut group = Group::default();
        let mut next = Some(first);
        let (mut discards, mut close, mut taken) = (Vec::new(), None, 0);
        while let Some(job) = next {
            taken += 1;
            match job {
                Job::Write(work, flush, asked) => {
                    if let Some(Asked { waited, ended }) = asked {
                        waited.for_groups(*groups.ended() - ended);
                    }
                    group.add(tables, work, flush);
                }
                // It does not end the group: then every upload that breaks off would cost the writes behind it a flush.
                Job::Discard(upload) => discards.push(upload),
                Job::Close(reply) => {
                    close = Some(reply);
                    break;
                }
            }
            next = if taken < GROUP { jobs.try_recv().ok() } else { None };
        }
        let began = Instant::now();
        group.commit(tables, &mut head, rounds, &mut failure);
        observe(tables, taken, jobs.len(), began.elapsed());
        if failure.is_some() {
            failed.cancel();
        }
        if failure.is_none() {
            // Best effort: what is left is removed when the store is opened again.
            discards.into_iter().for_each(|upload| drop(tables.remove_upload(upload)));
        }
        *groups.ended() += 1;
        if let Some(reply) = close {
            let closed = match failure {
                Some(error) => Err(error),
                None => tables.db.persist(PersistMode::SyncAll).map_err(tables::failed("flush")),
            };
            let _ = reply.send(closed);
            return;
        }
        // Once nothing waits, nothing of these uploads does.
        if failure.is_none() && jobs.is_empty() {
            let uploads = std::mem::take(&mut *overflow.lock().unwrap_or_else(PoisonError::into_inner));
            uploads.into_iter().for_each(|upload| drop(tables.remove_upload(upload)));
        }
    }
}

/// Observes a group that took so many jobs and so long, while so many others waited.
fn observe(tables: &Tables, taken: usize, waiting: usize, took: Duration) {
    Metric::GroupWrites.observe(&[], metrics::count(taken));
    Metric::StoreQueue.set(&[], metrics::count(waiting));
    Metric::FlushSeconds.took(&[], took);
    Metric::Compactions.set(&[], metrics::count(tables.db.compactions_completed()));
    Metric::CompactionsActive.set(&[], metrics::count(tables.db.active_compactions()));
    Metric::CompactionSeconds.set(&[], tables.db.time_compacting().as_secs_f64());
    Metric::Journals.set(&[], metrics::count(tables.db.journal_count()));
}

#[derive(Default)]
struct Group {
    /// One value for each key: in one atomic batch the order of writes to the same key is not defined.
    staged: Staged,
    chunks: Vec<(Key, Slice)>,
    completions: Vec<Completion>,
    flush: Option<PersistMode>,
}

impl Group {
    fn add(&mut self, tables: &Tables, work: Work, flush: Flush) {
        let (puts, complete) = work(&View { tables, staged: &self.staged });
        for put in puts {
            match put {
                Put::Record(key, value) => drop(self.staged.insert(key, Some(value))),
                Put::RemoveRecord(key) => drop(self.staged.insert(key, None)),
                Put::Chunk(key, value) => self.chunks.push((key, value)),
                Put::Used(workspace, bytes) => self.use_bytes(tables, &workspace, bytes),
            }
        }
        self.completions.push(complete);
        if flush == Flush::Now {
            self.flush = Some(PersistMode::SyncData);
        }
    }

    /// Changes the sum of a workspace's stored bytes. Where that cannot be read, all sums are counted anew at the next start.
    fn use_bytes(&mut self, tables: &Tables, workspace: &WorkspaceId, bytes: i64) {
        let key = keys::usage(workspace);
        let before = View { tables, staged: &self.staged }.get(&key);
        let changed = before.and_then(|before| usage::changed(before.as_ref(), bytes));
        let (key, value) = changed.map_or_else(|_| (keys::USAGE.to_vec(), None), |value| (key, Some(value)));
        self.staged.insert(key, value);
    }

    fn commit(self, tables: &Tables, head: &mut Head, rounds: &Rounds, failure: &mut Option<StoreError>) {
        if failure.is_none() && !(self.staged.is_empty() && self.chunks.is_empty()) {
            match write(tables, *head, rounds, self.staged, self.chunks, self.flush) {
                Ok(newest) => *head = newest,
                Err(error) => {
                    tracing::error!(cause = %error, "store refuses writes from now on");
                    *failure = Some(StoreError::ReadOnly { cause: error.to_string() });
                }
            }
        }
        let outcome = failure.clone().map_or(Ok(()), Err);
        self.completions.into_iter().for_each(|complete| complete(outcome.clone()));
    }
}

/// Writes a group as one commit; answers the head after it. Writes that no caller waits for are no commit of their own.
fn write(
    tables: &Tables,
    head: Head,
    rounds: &Rounds,
    staged: Staged,
    chunks: Vec<(Key, Slice)>,
    flush: Option<PersistMode>,
) -> Result<Head, StoreError> {
    let mut batch = tables.db.batch().durability(flush);
    let parts = staged.iter().flat_map(|(key, value)| [key.as_slice(), value.as_deref().unwrap_or_default()]);
    let newest = Head { number: head.number + 1, digest: Some(chain::next(head.digest, parts)) };
    let changed: Vec<_> = (staged.iter())
        .filter_map(|(key, value)| {
            let counters = value.as_ref().map(|value| record::decode_counters(value)).transpose();
            Some((keys::workspace_of(key)?, counters.ok()?))
        })
        .collect();
    let mut due = staged.range(keys::DUE.to_vec()..).filter(|(_, value)| value.is_some());
    let due = due.next().and_then(|(key, _)| Some(keys::due_of(key)?.0));
    for (key, value) in staged {
        match value {
            Some(value) => batch.insert(&tables.records, key, value),
            None => batch.remove(&tables.records, key),
        }
    }
    for (key, value) in chunks {
        batch.insert(&tables.chunks, key, value);
    }
    if flush.is_none() {
        return batch.commit().map(|()| head).map_err(failed("write"));
    }
    batch.insert(&tables.records, keys::HEAD, record::encode_head(newest));
    let round = Round { head: newest, changed };
    let known = round.changed.clone();
    rounds.during(round, || batch.commit().map_err(failed("write")))?;
    tables.know(known);
    if let Some(expires) = due {
        tables.earliest_due.add(expires);
    }
    Ok(newest)
}

impl Tables {
    /// Removes the chunks of an upload, and the note that it was begun; without the note it is a blob, and stays.
    pub(super) fn remove_upload(&self, upload: UploadId) -> Result<(), StoreError> {
        if !self.records.contains_key(keys::upload(upload)).map_err(failed("read a record"))? {
            return Ok(());
        }
        let mut batch = self.db.batch();
        for entry in self.chunks.prefix(upload.0.as_bytes()) {
            batch.remove(&self.chunks, entry.key().map_err(failed("list chunks"))?);
        }
        batch.remove(&self.records, keys::upload(upload));
        batch.commit().map_err(failed("remove an upload"))
    }
}
