//! The items of a backup, how it begins and ends, and why one cannot be used.

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, HistoryId, Revision, WorkspaceId};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::session::Session;
use tokio_util::bytes::Bytes;

use crate::store::access::KeptToken;
use crate::store::records::retention_record::Trim;
use crate::store::retention::{Age, Notes};
use crate::store::{CloudFile, Event, Lease, StoreError};

/// The version of the file's format that this server writes, and the only one that it reads.
pub const VERSION: u64 = 1;

/// How a backup begins.
pub(super) const MAGIC: &[u8; 8] = b"APTIXBAK";

/// Bytes of a backup before its first item.
pub(super) const HEADER_BYTES: usize = 16;

/// Bytes that one item has at most; a batch and its report have far fewer.
pub(super) const ITEM_BYTES: usize = 256 << 20;

/// The kind of the item that ends a backup.
pub(super) const END: u8 = b'.';

/// Why a backup cannot be made or used, or a store cannot be migrated.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum BackupError {
    /// Its first bytes are not those of a backup.
    #[error("it is no backup of aptix-server, or its first {HEADER_BYTES} bytes are damaged")]
    NoBackup,
    /// It has a version that this server does not know.
    #[error(
        "it has version {found}, and this server reads version {VERSION}; use the version of aptix-server that wrote it, or a newer one"
    )]
    OtherVersion {
        /// Its version.
        found: u64,
    },
    /// Something in it is not what was written.
    #[error("damaged at byte {offset}: {why}")]
    Damaged {
        /// Where the damaged item begins, in bytes from the file's beginning.
        offset: u64,
        /// How it shows.
        why: String,
    },
    /// The system refused to read it.
    #[error("it cannot be read: {0}")]
    Unreadable(String),
    /// There is a file of its name.
    #[error("{path} exists; choose another name, or replace it with --force")]
    Exists {
        /// The file.
        path: String,
    },
    /// The system refused to write it.
    #[error("{path} cannot be written: {why}")]
    Unwritable {
        /// The file that it was to become.
        path: String,
        /// The error of the system.
        why: String,
    },
    /// The directory or the database that it is restored into has something in it.
    #[error("{dir} is not empty: it has {found}; restore into a new or empty one")]
    NotEmpty {
        /// The directory or the database.
        dir: String,
        /// What it has.
        found: String,
    },
    /// A server uses the store that is to be migrated.
    #[error("{place} is in use: {why}")]
    Served {
        /// Where the store is.
        place: String,
        /// By what, and what to do.
        why: String,
    },
    /// There is a store where one is to be migrated into.
    #[error("{place} has a store already: {why}; nothing was changed")]
    Occupied {
        /// Where the store is.
        place: String,
        /// Which one, and what to do.
        why: String,
    },
    /// The store that was written does not read as the one that it was copied from.
    #[error(
        "{place} differs from the source: {why}; no server opens it; hint: run the same command again, which copies that anew"
    )]
    Differs {
        /// Where the store is.
        place: String,
        /// The workspace in which it differs, if it is one.
        workspace: Option<WorkspaceId>,
        /// How it differs.
        why: String,
    },
    /// The store failed that it is made of, or into.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl BackupError {
    /// Whether it was refused before anything was changed, and is no failure of the system.
    #[must_use]
    pub const fn is_refusal(&self) -> bool {
        matches!(
            self,
            Self::Served { .. }
                | Self::Occupied { .. }
                | Self::NotEmpty { .. }
                | Self::Store(StoreError::InUse { .. } | StoreError::Unrestored { .. })
        )
    }
}

/// One item of a backup. Those of a workspace follow its [`Item::Workspace`], in the order of the variants.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) enum Item {
    /// The store; the first item.
    Store(StoreFacts),
    /// A token; before all workspaces.
    Token(KeptToken),
    /// A workspace; by id.
    Workspace(Box<WorkspaceFacts>),
    /// A session.
    Session(Session),
    /// A batch, with the revision that stored it; by that revision.
    Batch(Revision, Box<BatchRecord>),
    /// The newest batch of a plan, by the id that tools know the plan by.
    Plan(FilePatchId, BatchId),
    /// An event, with the event before of the same batch; without gap after the last one that was removed.
    Event(Box<Event>, Option<Revision>),
    /// A cloud file.
    File(CloudFile),
    /// A blob; its bytes follow.
    Blob(BlobRef),
    /// The next bytes of the blob before.
    Chunk(Bytes),
}

/// What is kept of the store as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) struct StoreFacts {
    /// The name of its history.
    pub(in crate::store) history: HistoryId,
    /// When the backup was begun.
    pub(in crate::store) taken: UnixMillis,
    /// The version of the server that made it.
    pub(in crate::store) server: String,
    /// Its age.
    pub(in crate::store) age: Option<Age>,
    /// Whether calls need a token.
    pub(in crate::store) tokens_needed: bool,
}

/// What is kept of a workspace as a whole.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(in crate::store) struct WorkspaceFacts {
    /// The workspace.
    pub(in crate::store) id: WorkspaceId,
    /// Its newest event.
    pub(in crate::store) newest: Revision,
    /// Digest of the commit of that event and all before it.
    pub(in crate::store) digest: Option<Sha256Digest>,
    /// Its newest lease.
    pub(in crate::store) lease: Lease,
    /// The names of its roots.
    pub(in crate::store) roots: Vec<String>,
    /// Up to where events and content were removed.
    pub(in crate::store) trim: Trim,
    /// How far it had come at some ages of the store.
    pub(in crate::store) notes: Notes,
}
