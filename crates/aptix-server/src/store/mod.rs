//! The interface to the store of batches, events, cloud files and blobs.
//!
//! It speaks of domain values only. What a write answers is durable, and nothing is visible to a reader before it
//! is. Nothing here assumes that one process has the store for itself: a caller that changes a batch states what it must
//! be before.

use std::io::Write;
use std::pin::Pin;
use std::time::Duration;

use aptix_model::batch::BlobRef;
use aptix_model::batch_event::EventFacts;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId, HistoryId, RequestId, Revision, SessionId, TokenName, Uuid, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::token::{Ended, Token};
use tokio::sync::watch;
use tokio_util::bytes::Bytes;

use self::access::{KeptToken, TokenAdded, Tokens};
use self::backup_summary::Summary;
use self::damaged::{Damaged, DamagedFile};
use self::deletion::Deletion;
pub use self::error::StoreError;
pub use self::file::{CloudFile, FileUpdate, Twins};
use self::fleet::{
    Company, Grant, Granted, Hints, Holder, LeaseName, Lifetime, Looked, Member, ServerId, UsedByOthers,
};
pub use self::lease::{Lease, LeaseProof};
use self::retention::{Age, Retained, Retention};
use self::session::{ModeChange, ModeChanged, SessionState};
pub use self::space::Space;
pub use self::step::{LocalAppended, LocalBatch, Transition, Transitioned};
use crate::quota::used::Used;

pub mod access;
mod append;
pub mod backup;
mod backup_summary;
pub mod bucket_address;
mod chain;
pub mod damaged;
pub mod deletion;
mod disk;
pub mod embedded;
mod error;
mod file;
pub mod fleet;
pub mod healing;
mod lease;
mod links;
pub mod memory;
#[cfg(feature = "postgres")]
pub mod migration;
#[cfg(feature = "postgres")]
pub mod postgres;
mod records;
pub mod retention;
pub mod session;
pub mod size;
mod space;
mod step;
pub mod wrapper;

/// What a store will answer.
pub type Answer<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// What came of storing a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Appended {
    /// It is stored.
    New(Box<BatchRecord>),
    /// Its request id was used before; nothing was stored.
    Known(Box<Known>),
    /// The batch that it was to replace is not prepared any more, or there is none; nothing was stored.
    NotReplaced(Option<Box<BatchRecord>>),
    /// Its session may not write at present: the failure that says so; nothing was stored.
    Restricted(Box<Failure>),
}

/// Two batches under one request id.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Known {
    /// The batch it was used for.
    pub stored: BatchRecord,
    /// The batch that was to be stored now.
    pub offered: BatchRecord,
}

/// A batch that expires, and when.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Due {
    /// When it expires, by the server's clock, and its id: its position in the order of expiry.
    pub key: DueKey,
    /// Its workspace.
    pub workspace: WorkspaceId,
}

/// The position of a batch in the order of expiry: when it expires, then its id.
pub type DueKey = (UnixMillis, BatchId);

/// Something that happened in a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Event {
    /// Its number.
    pub revision: Revision,
    /// The batch it happened to.
    pub batch: BatchId,
    /// Digest of the commit of this event and all before it; `None` for an event of an earlier version, and in a list of
    /// batches.
    pub digest: Option<Sha256Digest>,
    /// What happened; `None` for an event of an earlier version, and in a list of batches.
    pub facts: Option<EventFacts>,
}

impl Event {
    /// An entry of a list of batches.
    #[must_use]
    pub const fn listed(revision: Revision, batch: BatchId) -> Self {
        Self { revision, batch, digest: None, facts: None }
    }
}

/// An entry of a list: a record that cannot be read hides no other.
pub type Listed = Result<Event, Damaged>;

/// Selects one batch of a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BatchSelector {
    /// By its id.
    Id(BatchId),
    /// By what it was submitted under, or, if it was prepared, let be applied under.
    Request(RequestId),
    /// The newest batch of a plan, by the id that tools know the plan by.
    Hunk(FilePatchId),
}

/// What a store counts of a workspace.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct WorkspaceCounts {
    /// Its newest event; 0 if there is none.
    pub newest: Revision,
    /// Digest of the commit of that event and all before it; `None` if there is none, or it is of an earlier version.
    pub digest: Option<Sha256Digest>,
    /// How many of its batches have not ended; those whose state cannot be read are not counted.
    pub open_batches: u64,
}

/// A workspace in a list; without its counts if they cannot be read.
pub type ListedWorkspace = (WorkspaceId, Option<WorkspaceCounts>);

/// An entry of a list of files: a record that cannot be read hides no other.
pub type ListedFile = Result<CloudFile, DamagedFile>;

/// Names an upload while its bytes are not yet a blob.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct UploadId(pub Uuid);

/// An upload that can be resumed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Unfinished {
    /// Its name.
    pub upload: UploadId,
    /// How many bytes there are of it, from the beginning.
    pub bytes: u64,
}

/// Keeps what the server must not forget. A store over another one is a [`wrapper::Wrapper`].
pub trait Store: Send + Sync + 'static {
    /// Keeps a batch under the workspace's next revision, not the one in the record, unless its request id is known or its session
    /// may not write; creates a new session in the same step. A prepared batch that takes the place of another is kept only if that
    /// one is prepared, and is withdrawn in the same step, or has failed. A store that removes blobs keeps nothing that names one which
    /// is not there, here and in the next two calls.
    fn append(&self, batch: BatchRecord) -> Answer<'_, Appended>;

    /// Keeps a batch of the workstation itself under the next revision, with its files, linked with the batch it took back.
    fn append_local(&self, local: LocalBatch) -> Answer<'_, LocalAppended>;

    /// Takes one step, if the batch is in the expected state, and its session may write or the step does not let it go ahead.
    fn transition(&self, step: Transition) -> Answer<'_, Transitioned>;

    /// A session of the workspace as it is now; `None` if there is none.
    fn session(&self, workspace: WorkspaceId, session: SessionId) -> Answer<'_, Option<SessionState>>;

    /// Changes the mode of a session, or notes that it changes once nothing is in flight.
    fn set_mode(&self, change: ModeChange) -> Answer<'_, ModeChanged>;

    /// Every token.
    fn tokens(&self) -> Answer<'_, Tokens>;

    /// Keeps a new token, unless its name was ever used, or it is for a workspace that there is not.
    fn add_token(&self, token: KeptToken) -> Answer<'_, TokenAdded>;

    /// Ends a token, unless it has ended; answers how it is now, or `None` if there is none of this name.
    fn end_token(&self, name: TokenName, ended: Ended) -> Answer<'_, Option<Token>>;

    /// Creates a workspace; answers whether there was none.
    fn create_workspace(&self, workspace: WorkspaceId) -> Answer<'_, bool>;

    /// Names the history of this store: minted when the store is created, kept by copies of it.
    fn history(&self) -> HistoryId;

    /// Grants the workspace's next lease to the holder of the secret with this SHA-256, who serves the roots of these names;
    /// answers its epoch, the first is 1. Creates the workspace if there is none.
    fn grant_lease(&self, workspace: WorkspaceId, secret: Sha256Digest, roots: Vec<String>) -> Answer<'_, u64>;

    /// The names of the workspace's roots, as the newest lease has them; empty if no lease had any.
    fn roots(&self, workspace: WorkspaceId) -> Answer<'_, Vec<String>>;

    /// The workspace's newest lease.
    fn lease(&self, workspace: WorkspaceId) -> Answer<'_, Lease>;

    /// Digest of the commit of an event and all before it, also of the last one that was removed; `None` if there is no such event, if it is of an earlier
    /// version, or if its record cannot be read.
    fn digest(&self, workspace: WorkspaceId, revision: Revision) -> Answer<'_, Option<Sha256Digest>>;

    /// The workspace's newest revision; `None` if there is no such workspace.
    fn newest(&self, workspace: WorkspaceId) -> Answer<'_, Option<Revision>>;

    /// What is counted of the workspace; `None` if there is no such workspace.
    fn counts(&self, workspace: WorkspaceId) -> Answer<'_, Option<WorkspaceCounts>>;

    /// The bytes that the workspace stores: of its batches as [`size::stored_bytes`] counts them, of its blobs, each once, and what was announced
    /// of uploads that can be resumed. 0 if there is no such workspace. The store has the sum: it does not add them up.
    fn used_bytes(&self, workspace: WorkspaceId) -> Answer<'_, u64>;

    /// The space of the file system that it writes to; `None` if it writes to none.
    fn space(&self) -> Answer<'_, Option<Space>>;

    /// Every workspace that a batch or an agent made known, by id; only those after an id, if one is given.
    fn workspaces(&self, after: Option<WorkspaceId>, limit: usize) -> Answer<'_, Vec<ListedWorkspace>>;

    /// Batches of all workspaces whose time is over, in the order of expiry; only those after a position, if one is given. Lists
    /// batches whose records are damaged, too, and skips an entry that is damaged itself.
    fn due(&self, now: UnixMillis, after: Option<DueKey>, limit: usize) -> Answer<'_, Vec<Due>>;

    /// One batch of the workspace.
    fn batch(&self, workspace: WorkspaceId, which: BatchSelector) -> Answer<'_, Option<BatchRecord>>;

    /// The workspace's batches, newest first, each with its first revision; only those before a revision, if one is
    /// given.
    fn batches(&self, workspace: WorkspaceId, before: Option<Revision>, limit: usize) -> Answer<'_, Vec<Listed>>;

    /// The workspace's events after a revision, in their order; [`StoreError::Compacted`] where the next one is no longer kept.
    fn events(&self, workspace: WorkspaceId, after: Revision, limit: usize) -> Answer<'_, Vec<Listed>>;

    /// The events of one batch, newest first, from that with this revision on; those that no record which can be read leads to are
    /// left out.
    fn steps(&self, workspace: WorkspaceId, batch: BatchId, newest: Revision) -> Answer<'_, Vec<Event>>;

    /// The file with this path.
    fn file(&self, workspace: WorkspaceId, path: RootedPath) -> Answer<'_, Option<CloudFile>>;

    /// Every file with this key; more than one where paths differ only in case.
    fn files_with_key(&self, workspace: WorkspaceId, doc_path: DocPath) -> Answer<'_, Vec<CloudFile>>;

    /// The workspace's files by path; only those after a path, if one is given.
    fn files(&self, workspace: WorkspaceId, after: Option<RootedPath>, limit: usize) -> Answer<'_, Vec<ListedFile>>;

    /// For each digest, how many bytes its blob has; `None` if the workspace has no such blob.
    fn blob_sizes(&self, workspace: WorkspaceId, digests: Vec<Sha256Digest>) -> Answer<'_, Vec<Option<u64>>>;

    /// One chunk of a blob, counted from 0; `None` past the last, or if there is no such blob. The bytes are not
    /// checked against the digest: the caller that has them all does that.
    fn blob_chunk(&self, workspace: WorkspaceId, digest: Sha256Digest, index: u32) -> Answer<'_, Option<Bytes>>;

    /// Makes an upload the one of its blob that can be resumed, also after the store is opened again; the one before is dropped.
    fn claim_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()>;

    /// The upload of a blob that can be resumed; `None` if there is none of this size.
    fn unfinished_upload(&self, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, Option<Unfinished>>;

    /// Ends that an upload can be resumed, and drops it.
    fn release_upload(&self, upload: UploadId, workspace: WorkspaceId, digest: Sha256Digest) -> Answer<'_, ()>;

    /// One chunk of an upload that can be resumed, counted from 0; `None` past the last. The bytes are not checked.
    fn upload_chunk(&self, upload: UploadId, index: u32) -> Answer<'_, Option<Bytes>>;

    /// Takes a chunk of an upload, counted from 0: the next one, or one again. It need not be durable yet.
    fn put_chunk(&self, upload: UploadId, index: u32, bytes: Bytes) -> Answer<'_, ()>;

    /// Makes an upload, whose bytes were verified, the workspace's blob. If there is one already, that stays and the
    /// upload is dropped.
    fn commit_upload(&self, upload: UploadId, workspace: WorkspaceId, blob: BlobRef) -> Answer<'_, ()>;

    /// Removes blobs that came before a time, that no batch and no file names, and that no caller learnt of since, and uploads
    /// that began before it and were not finished; answers how many. A store that keeps them for ever answers 0.
    fn sweep_blobs(&self, before: UnixMillis) -> Answer<'_, usize>;

    /// Adds the time that passed since this was called last to the age of the store, and answers it. `passed` is `None` at the first
    /// call since a start: the time before does not count.
    fn grow_older(&self, passed: Option<Duration>) -> Answer<'_, Age>;

    /// Removes what a workspace keeps no longer, in small steps, each of which is whole by itself; a bounded number of them.
    fn retain(&self, order: Retention) -> Answer<'_, Retained>;

    /// Begins to delete a workspace, durably, and ends the tokens for it alone in the same step; answers their names, or `None` if there
    /// is no such workspace. Until the deletion is done, every read answers as if there were no such workspace, and every
    /// write in it fails with [`StoreError::BeingDeleted`]. Changes nothing if the deletion has begun. Refused while the lease is held.
    fn begin_deletion(&self, workspace: WorkspaceId, ended: Ended) -> Answer<'_, Option<Vec<TokenName>>>;

    /// Removes a bounded part of a workspace that is being deleted, as one step; `None` if there is no such deletion. Once it is
    /// done, the workspace can be created anew.
    fn continue_deletion(&self, workspace: WorkspaceId) -> Answer<'_, Option<Deletion>>;

    /// Every workspace whose deletion has begun and is not done, by id.
    fn deletions(&self) -> Answer<'_, Vec<WorkspaceId>>;

    /// Writes a [`backup`] of everything that is kept at this instant. Writes go on meanwhile, and are not in it. What fails to be
    /// written, or turns out to be lost, ends it without the end that a whole backup has.
    fn back_up(&self, out: Box<dyn Write + Send>) -> Answer<'_, Summary>;

    /// Drops what came of an upload that nobody claimed. Does its best at once; what is left is removed when the store is opened
    /// again.
    fn discard_upload(&self, upload: UploadId);

    /// Waits until the store takes no more writes because one failed; for ever while all is well.
    fn failed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Waits until the store takes writes; for ever once a write failed, where that takes another start to mend.
    fn healed(&self) -> Pin<Box<dyn Future<Output = ()> + Send + '_>>;

    /// Counts how often the store was opened again. After that it may have what a write failed to acknowledge: readers look anew.
    fn reopenings(&self) -> watch::Receiver<u64>;

    /// Waits until everything taken is written, and takes nothing more.
    fn close(&self) -> Answer<'_, ()>;

    /// Whether several servers may be on this store at one time. The calls below are made of such a store alone; one that a server
    /// has for itself answers them as if there were no other.
    fn is_shared(&self) -> bool {
        false
    }

    /// What others change from now on, as far as it is known at once; `None` where only [`Store::look`] tells.
    fn hints(&self) -> Option<Hints> {
        None
    }

    /// Tells the other servers what is used of this one; it may be lost, as every hint.
    fn tell(&self, used: Used) {
        let _ = used;
    }

    /// What others tell of what is used of them; `None` where they cannot.
    fn told(&self) -> Option<UsedByOthers> {
        None
    }

    /// Counts a server among those that live, until its time is over.
    fn join(&self, member: Member, lifetime: Lifetime) -> Answer<'_, Company> {
        let _ = (member, lifetime);
        Box::pin(async { Ok(Company::default()) })
    }

    /// Has a server count among those that live for longer; `None` if its time was over.
    fn renew(&self, server: ServerId, lifetime: Lifetime) -> Answer<'_, Option<Company>> {
        let _ = (server, lifetime);
        Box::pin(async { Ok(Some(Company::default())) })
    }

    /// Ends that a server counts among those that live: the leases that it holds are free at once.
    fn leave(&self, server: ServerId) -> Answer<'_, ()> {
        let _ = server;
        Box::pin(async { Ok(()) })
    }

    /// Grants the workspace's next lease like [`Store::grant_lease`], unless another agent holds it through another server that lives:
    /// which of its own agents hold one is for the asking server to know.
    fn take_lease(&self, grant: Grant) -> Answer<'_, Granted> {
        let granted = self.grant_lease(grant.workspace, grant.secret, grant.holder.presence.roots);
        Box::pin(async { Ok(Granted::Epoch(granted.await?)) })
    }

    /// Ends that leases are held, each if it is the newest of its workspace.
    fn release_leases(&self, leases: Vec<LeaseName>) -> Answer<'_, ()> {
        let _ = leases;
        Box::pin(async { Ok(()) })
    }

    /// Who serves a workspace, if that is through a server that lives, and that server.
    fn holder(&self, workspace: WorkspaceId) -> Answer<'_, Option<(Holder, Member)>> {
        let _ = workspace;
        Box::pin(async { Ok(None) })
    }

    /// How far each of these workspaces has come, and whether tokens changed.
    fn look(&self, workspaces: Vec<WorkspaceId>) -> Answer<'_, Looked> {
        let seen = vec![None; workspaces.len()];
        Box::pin(async { Ok(Looked { seen, tokens: 0 }) })
    }
}
