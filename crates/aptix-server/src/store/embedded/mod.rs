//! The store on disk: an LSM tree with a journal, in one directory, for one process.
//!
//! The database cannot tell a damaged journal from one whose last write was torn, and cuts off either. So the number of the
//! newest acknowledged commit is kept in a file of its own (`marks.rs`), and before the database is opened the journals are read
//! and held against it (`guard.rs`).

mod calls;
mod cloud_files;
mod committer;
mod cross_checks;
mod delete;
mod deletion;
mod earliest_due;
mod export;
pub mod format;
mod guard;
mod instant;
mod keys;
pub mod lock;
mod marks;
mod open_batches;
mod own_files;
mod parts;
mod reads;
pub mod restore;
mod retain;
mod retention;
mod rounds;
mod scan;
mod sessions;
mod tables;
mod tokens;
mod unfinished;
mod unnamed;
mod upgrade;
mod usage;
pub mod verify;
mod writes;

use std::io::Write;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, HistoryId, Revision, SessionId, TokenName, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use tokio::sync::{mpsc, oneshot, watch};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use self::committer::{Flush, GROUP, Groups, Job, Put};
use self::guard::{Look, Opened};
pub use self::guard::{OnLoss, Opening};
use self::lock::Locked;
pub use self::reads::Reads;
use self::rounds::Rounds;
use self::tables::Tables;
use self::tokens::Needed;
use self::unnamed::{Attention, Sweep, unname};
use self::writes::{append, append_local, counters, transition};
use super::access::{KeptToken, TokenAdded, Tokens};
use super::backup_summary::Summary;
use super::deletion::Deletion;
use super::records::{batch_record, record, retention_record, session_record, token_record};
use super::retention::{Age, Retained, Retention};
use super::session::{ModeChange, ModeChanged, SessionState};
use super::{
    Answer, Appended, BatchSelector, CloudFile, Due, DueKey, Event, Lease, Listed, ListedFile, ListedWorkspace,
    LocalAppended, LocalBatch, Space, Store, StoreError, Transition, Transitioned, Unfinished, UploadId,
    WorkspaceCounts,
};
use crate::steady_clock::SteadyClock;

/// How many writes may wait for the committer; further ones wait to wait.
const QUEUE: usize = GROUP;

/// Keeps everything in one directory.
pub struct EmbeddedStore {
    tables: Tables,
    history: HistoryId,
    jobs: mpsc::Sender<Job>,
    groups: Groups,
    /// Uploads to be discarded for which the queue had no room.
    overflow: Arc<Mutex<Vec<UploadId>>>,
    attention: Arc<Attention>,
    /// The time by which callers ask about blobs.
    clock: Arc<SteadyClock>,
    /// Held while blobs are swept.
    sweeping: tokio::sync::Mutex<()>,
    tokens_needed: Arc<Needed>,
    committer: Mutex<Option<JoinHandle<()>>>,
    /// Held by the committer as well: the directory is this process's until nothing is written any more.
    _locked: Arc<Locked>,
    /// What it was opened in, if that is a look-alike.
    _look: Option<Look>,
    /// Cancelled when a write failed, or the committer ended unasked.
    failed: CancellationToken,
    /// Cancelled when the store was asked to close.
    closing: CancellationToken,
}

impl EmbeddedStore {
    /// Opens the store in a directory; makes it if there is none.
    ///
    /// # Errors
    /// When the directory cannot be used, is in use, or lacks something that was acknowledged.
    pub fn open(dir: &Path) -> Result<Self, StoreError> {
        Self::open_with(dir, Opening::default())
    }

    /// The same, in another way.
    ///
    /// # Errors
    /// As above; with [`OnLoss::Accept`] no loss is one.
    pub fn open_with(dir: &Path, opening: Opening) -> Result<Self, StoreError> {
        Self::start(dir, guard::open(dir, opening, upgrade::Copy::Kept)?, None)
    }

    /// Opens a look-alike of a directory that no server uses, to read it: the directory itself is neither changed nor upgraded.
    /// What is written is lost.
    ///
    /// # Errors
    /// As above.
    pub fn look(dir: &Path) -> Result<Self, StoreError> {
        let look = guard::look_alike(dir)?;
        let opened = guard::open(look.path(), Opening::default(), upgrade::Copy::None)?;
        Self::start(dir, opened, Some(look))
    }

    /// How often records were read since it was opened.
    #[must_use]
    pub fn reads(&self) -> Reads {
        self.tables.reads.so_far()
    }

    fn start(dir: &Path, opened: Opened, look: Option<Look>) -> Result<Self, StoreError> {
        let Opened { tables, head, marks, locked } = opened;
        let tokens_needed = Arc::new(Needed::of(look.as_ref().map_or(dir, Look::path)));
        let history = tables.begin()?;
        open_batches::count_unknown(&tables)?;
        sessions::list_in_flight(&tables)?;
        usage::count_unknown(&tables)?;
        let rounds = Rounds::start(marks)?;
        let locked = Arc::new(locked);
        let theirs_locked = Arc::clone(&locked);
        let (jobs, waiting) = mpsc::channel(QUEUE);
        let groups = Groups::default();
        let (theirs, their_groups) = (tables.clone(), groups.clone());
        let (failed, closing) = (CancellationToken::new(), CancellationToken::new());
        let (failing, ending) = (failed.clone(), closing.clone());
        let overflow = Arc::<Mutex<Vec<UploadId>>>::default();
        let overflowing = Arc::clone(&overflow);
        let committer = std::thread::Builder::new()
            .name("committer".to_owned())
            .spawn(move || {
                let unasked = failing.clone().drop_guard();
                committer::run(&theirs, head, &rounds, (waiting, &their_groups), &overflowing, &failing);
                if ending.is_cancelled() {
                    unasked.disarm();
                }
                drop((rounds, theirs, theirs_locked));
            })
            .map_err(|error| StoreError::Failed { action: "start its writer", cause: error.to_string() })?;
        let attention = Arc::default();
        Ok(Self {
            tables,
            history,
            jobs,
            groups,
            overflow,
            attention,
            clock: Arc::default(),
            sweeping: tokio::sync::Mutex::default(),
            tokens_needed,
            committer: Mutex::new(Some(committer)),
            _locked: locked,
            _look: look,
            failed,
            closing,
        })
    }
}

impl Store for EmbeddedStore {
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended> {
        let attention = Arc::clone(&self.attention);
        self.write_in(batch.workspace.clone(), Flush::Now, move |view, _| {
            attention.name_in_batch(&batch);
            append(view, batch)
        })
    }

    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended> {
        let attention = Arc::clone(&self.attention);
        self.write_in(local.batch.workspace.clone(), Flush::Now, move |view, _| {
            attention.name_in_files(&local.batch.workspace, &local.files);
            append_local(view, local)
        })
    }

    fn transition(&self, step: Transition) -> Answer<'_, Transitioned> {
        let attention = Arc::clone(&self.attention);
        self.write_in(step.workspace.clone(), Flush::Now, move |view, _| {
            attention.name_in_files(&step.workspace, &step.files);
            transition(view, step)
        })
    }

    fn session(&self, workspace: WorkspaceId, session: SessionId) -> Answer<'_, Option<SessionState>> {
        self.read_in(workspace, move |now, workspace| now.session(workspace, &session))
    }

    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged> {
        self.write_in(change.workspace.clone(), Flush::Now, move |view, _| sessions::set_mode(view, &change))
    }

    fn tokens(&self) -> Answer<'_, Tokens> {
        let needed = Arc::clone(&self.tokens_needed);
        self.read(move |now| Ok(Tokens { are_needed: needed.is_said(), ..now.tokens()? }))
    }

    fn add_token(&self, token: KeptToken) -> Answer<'_, TokenAdded> {
        let needed = Arc::clone(&self.tokens_needed);
        self.write(Flush::Now, move |view| tokens::add(view, &token, &needed))
    }

    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>> {
        self.write(Flush::Now, move |view| tokens::end(view, &name, ended))
    }

    fn create_workspace(&self, workspace: WorkspaceId) -> Answer<'_, bool> {
        self.write_in(workspace, Flush::Now, tokens::create_workspace)
    }

    fn history(&self) -> HistoryId {
        self.history
    }

    fn grant_lease(&self, workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> Answer<'_, u64> {
        self.write_in(workspace, Flush::Now, move |view, workspace| {
            let mut counters = counters(view, workspace)?;
            counters.lease = Lease { epoch: counters.lease.epoch + 1, secret: Some(secret) };
            let record = Put::Record(keys::workspace(workspace), record::encode_counters(counters));
            let roots = Put::Record(keys::roots(workspace), record::encode_texts(&roots));
            Ok((counters.lease.epoch, vec![record, roots]))
        })
    }

    fn roots(&self, workspace: WorkspaceId) -> Answer<'_, Vec<String>> {
        self.read_in(workspace, |now, workspace| now.roots(workspace))
    }

    fn lease(&self, workspace: WorkspaceId) -> Answer<'_, Lease> {
        self.read_in(workspace, |now, workspace| now.lease(workspace))
    }

    fn digest(&self, workspace: WorkspaceId, revision: Revision) -> Answer<'_, Option<Sha256Digest>> {
        self.read_in(workspace, move |now, workspace| Ok(now.digest(workspace, revision)))
    }

    fn counts(&self, workspace: WorkspaceId) -> Answer<'_, Option<WorkspaceCounts>> {
        self.read(move |now| now.counts(&workspace))
    }

    fn space(&self) -> Answer<'_, Option<Space>> {
        Box::pin(std::future::ready(Ok(None)))
    }

    fn used_bytes(&self, workspace: WorkspaceId) -> Answer<'_, u64> {
        self.read_in(workspace, |now, workspace| now.used_bytes(workspace))
    }

    fn workspaces(&self, after: Option<WorkspaceId>, limit: usize) -> Answer<'_, Vec<ListedWorkspace>> {
        // The server lists them every few seconds: so the clock notices in time what the time of day does.
        let _ = self.clock.now();
        self.read(move |now| now.workspaces(after.as_ref(), limit))
    }

    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>> {
        self.read(move |now| now.newest(&workspace))
    }

    fn due(&self, now: UnixMillis, after: Option<DueKey>, limit: usize) -> Answer<'_, Vec<Due>> {
        let scan = self.tables.earliest_due.scan();
        self.read(move |instant| instant.due(now, after, limit, scan))
    }

    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>> {
        self.read_in(workspace, move |now, workspace| now.batch(workspace, &which))
    }

    fn batches(&self, workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Answer<'_, Vec<Listed>> {
        let before = before.unwrap_or(Revision(u64::MAX));
        self.read_in(workspace, move |now, workspace| now.batches(workspace, before, limit))
    }

    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>> {
        self.read_in(workspace, move |now, workspace| now.events(workspace, after, limit))
    }

    fn steps(&self, workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Answer<'_, Vec<Event>> {
        self.read_in(workspace, move |now, workspace| now.steps(workspace, batch, newest))
    }

    fn file(&self, workspace: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>> {
        self.read_in(workspace, move |now, workspace| now.file(workspace, &path))
    }

    fn files_with_key(&self, workspace: WorkspaceId, doc_path: DocPath) -> Answer<'_, Vec<CloudFile>> {
        self.read_in(workspace, move |now, workspace| now.files_with_key(workspace, &doc_path))
    }

    fn files(&self, workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Answer<'_, Vec<ListedFile>> {
        self.read_in(workspace, move |now, workspace| now.files(workspace, after.as_ref(), limit))
    }

    fn blob_sizes(&self, workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>> {
        let (attention, asked) = (Arc::clone(&self.attention), self.clock.now());
        self.read(move |now| {
            if now.is_deleted(&workspace)? {
                return Ok(vec![None; digests.len()]);
            }
            let sizes = digests.into_iter().map(|digest| {
                let size = now.blob_size(&workspace, &digest)?;
                Ok(size.filter(|_| attention.notice(&workspace, digest, asked)))
            });
            sizes.collect()
        })
    }

    fn blob_chunk(&self, workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Answer<'_, Option<Bytes>> {
        self.read_in(workspace, move |now, workspace| now.blob_chunk(workspace, &digest, index))
    }

    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        let former = self.write_in(workspace, Flush::WithNext, move |view, workspace| {
            unfinished::claim(view, upload, workspace, blob)
        });
        Box::pin(async move {
            former.await?.into_iter().for_each(|former| self.discard_upload(former));
            Ok(())
        })
    }

    fn unfinished_upload(&self, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, Option<Unfinished>> {
        let (attention, asked) = (Arc::clone(&self.attention), self.clock.now());
        self.read_in(workspace, move |now, workspace| {
            let found = now.unfinished(workspace, blob)?;
            if found.is_some() {
                attention.notice_upload(workspace, blob.sha256, asked);
            }
            Ok(found)
        })
    }

    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()> {
        let released = self.write(Flush::WithNext, move |view| {
            Ok(((), unfinished::release(view, upload, &keys::unfinished(&workspace, &digest))?))
        });
        Box::pin(async move {
            released.await?;
            self.discard_upload(upload);
            Ok(())
        })
    }

    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>> {
        self.read(move |now| now.upload_chunk(upload, index))
    }

    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()> {
        self.write(Flush::WithNext, move |view| Ok(((), unfinished::put(view, upload, index, &bytes)?)))
    }

    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()> {
        let (attention, clock) = (Arc::clone(&self.attention), Arc::clone(&self.clock));
        let is_new = self.write_in(workspace, Flush::Now, move |view, workspace| {
            let (is_new, puts) = unfinished::commit(view, upload, workspace, blob)?;
            attention.came(workspace, blob.sha256, clock.now());
            Ok((is_new, puts))
        });
        Box::pin(async move {
            let committed = is_new.await;
            if matches!(committed, Ok(false) | Err(StoreError::BeingDeleted { .. })) {
                self.discard_upload(upload);
            }
            committed.map(drop)
        })
    }

    fn discard_upload(&self, upload: UploadId) {
        if self.jobs.try_send(Job::Discard(upload)).is_err() {
            // The committer takes it up as soon as nothing else waits.
            self.overflow.lock().unwrap_or_else(PoisonError::into_inner).push(upload);
        }
    }

    fn sweep_blobs(&self, before: UnixMillis) -> Answer<'_, usize> {
        Box::pin(async move {
            // Two sweeps would not know what was named during the other one.
            let _alone = self.sweeping.lock().await;
            let _sweep = Sweep(&self.attention);
            let attention = Arc::clone(&self.attention);
            self.write(Flush::WithNext, move |_| {
                attention.begin(before);
                Ok(((), Vec::new()))
            })
            .await?;
            let mut swept = 0;
            for (key, upload) in self.read(move |now| now.unfinished_before(before)).await? {
                let attention = Arc::clone(&self.attention);
                let is_given_up = self.write(Flush::Now, move |view| {
                    let is_given_up = keys::unfinished_of(&key).is_none_or(|blob| attention.is_given_up(&blob, before));
                    let puts = if is_given_up { unfinished::release(view, upload, &key)? } else { Vec::new() };
                    Ok((is_given_up, puts))
                });
                if is_given_up.await? {
                    self.discard_upload(upload);
                    swept += 1;
                }
            }
            for blob in self.read(move |now| now.unnamed(before)).await? {
                let (attention, upload) = (Arc::clone(&self.attention), blob.1.upload);
                if self.write(Flush::Now, move |view| unname(view, &attention, &blob, before)).await? {
                    self.discard_upload(upload);
                    swept += 1;
                }
            }
            Ok(swept)
        })
    }

    fn grow_older(&self, passed: Option<Duration>) -> Answer<'_, Age> {
        self.write(Flush::WithNext, move |view| retention::grow_older(view, passed))
    }

    fn retain(&self, order: Retention) -> Answer<'_, Retained> {
        Box::pin(self.retain_steps(order))
    }

    fn begin_deletion(&self, workspace: WorkspaceId, ended: Ended) -> Answer<'_, Option<Vec<TokenName>>> {
        self.write(Flush::Now, move |view| deletion::begin(view, &workspace, ended))
    }

    fn continue_deletion(&self, workspace: WorkspaceId) -> Answer<'_, Option<Deletion>> {
        Box::pin(self.delete_step(workspace))
    }

    fn deletions(&self) -> Answer<'_, Vec<WorkspaceId>> {
        self.read(|now| now.deletions())
    }

    fn back_up(&self, out: Box<dyn Write + Send>) -> Answer<'_, Summary> {
        let (history, needed) = (self.history, Arc::clone(&self.tokens_needed));
        self.read(move |now| now.back_up(history, &needed, out))
    }

    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(self.failed.cancelled())
    }

    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>> {
        Box::pin(std::future::pending())
    }

    fn reopenings(&self) -> watch::Receiver<u64> {
        watch::channel(0).1
    }

    fn close(&self) -> Answer<'_, ()> {
        Box::pin(async {
            let (reply, closed) = oneshot::channel();
            let sent = self.jobs.send(Job::Close(reply)).await.map_err(|_| self.gone());
            self.closing.cancel();
            sent?;
            let closed = closed.await.map_err(|_| StoreError::Closed)?;
            let committer = self.committer.lock().unwrap_or_else(PoisonError::into_inner).take();
            if let Some(committer) = committer {
                // It has answered, so it is about to return; its handle on the directory goes with it.
                let _ = tokio::task::spawn_blocking(move || committer.join()).await;
            }
            closed
        })
    }
}
