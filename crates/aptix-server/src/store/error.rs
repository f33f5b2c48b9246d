//! Why a store gave no answer.

use aptix_model::id::{Revision, WorkspaceId};

/// Why a store gave no answer. Refusals that a caller can cause are answers, not errors.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum StoreError {
    /// A write failed earlier, so nothing is written any more: what is on disk is no longer certain.
    #[error(
        "the store takes no writes since one failed: {cause}; hint: free space on its disk, or have its database take writes; it is tried again and again"
    )]
    ReadOnly {
        /// What failed then.
        cause: String,
    },
    /// A record is not what was written.
    #[error("the record of {what} is damaged: {why}; restore the store from a backup")]
    Corrupt {
        /// Which record.
        what: String,
        /// How it shows.
        why: String,
    },
    /// The wanted events were removed, because the workspace keeps them no longer.
    #[error("the events before revision {oldest} are no longer kept")]
    Compacted {
        /// The first one that is kept.
        oldest: Revision,
    },
    /// The workspace is being deleted: nothing can be stored in it, and it cannot be created.
    #[error("workspace {workspace} is being deleted")]
    BeingDeleted {
        /// The workspace.
        workspace: WorkspaceId,
    },
    /// Something that was acknowledged is not there any more.
    #[error(
        "the data directory lacks what was acknowledged: {}; nothing was changed. Restore it from a copy, or start with \
         --accept-loss: the journals are then copied aside, and what is left is served",
        listed(lost)
    )]
    Lost {
        /// What is missing, each by its name.
        lost: Vec<String>,
    },
    /// Its records have a format that this server does not know.
    #[error(
        "could not open the data directory: {dir} has format {found}, and this server reads formats 1 to {newest}; nothing was \
         changed. Start the version of aptix-server that wrote it, or a newer one, or give this one another --data-dir"
    )]
    OtherFormat {
        /// The data directory.
        dir: String,
        /// Its format.
        found: u64,
        /// The newest one that this server knows.
        newest: u64,
    },
    /// A copy of it has to be kept before it is upgraded, and there is no room for one.
    #[error(
        "could not upgrade the data directory {dir} to format {format}: a copy of it is kept, which takes {needed} bytes, and \
         {free} are free on its disk; nothing was changed. Free {} more bytes and start again",
        needed.saturating_sub(*free)
    )]
    NoRoom {
        /// The data directory.
        dir: String,
        /// The format it would have.
        format: u64,
        /// Bytes that the copy and the upgrade take.
        needed: u64,
        /// Bytes that are free.
        free: u64,
    },
    /// It was being restored from a backup, or migrated, and is not whole.
    #[error(
        "could not open {place}: a restore or a migration into it was cut off or is under way, and it is not whole; run the same \
         `aptix-server restore` or `aptix-server migrate` again, or give this server another store and remove this one"
    )]
    Unrestored {
        /// The data directory or the database.
        place: String,
    },
    /// Another process uses it.
    #[error(
        "could not open the data directory: {dir} is in use by another server or command; hint: stop the server or command that uses \
         it, or name another --data-dir"
    )]
    InUse {
        /// The data directory.
        dir: String,
    },
    /// Its tables have a version that this server does not know.
    #[error(
        "could not open the database: {database} has tables of version {found}, and this server knows versions up to {newest}; nothing \
         was changed. Start the version of aptix-server that made them, or a newer one"
    )]
    OtherSchema {
        /// The address of the database, without a password.
        database: String,
        /// The version of its tables.
        found: u64,
        /// The newest one that this server knows.
        newest: u64,
    },
    /// It has more to do than it does in time, or another write got in the way; nothing is wrong with it.
    #[error("the store is busy: {cause}; hint: call again")]
    Busy {
        /// What the call waited for.
        cause: String,
    },
    /// The bucket of its blobs cannot be reached, or refuses; everything else is served.
    #[error("the store cannot use the bucket of its blobs: {cause}; hint: call again")]
    NoBucket {
        /// Which bucket, and what failed.
        cause: String,
    },
    /// The system failed.
    #[error("the store could not {action}: {cause}")]
    Failed {
        /// What was tried.
        action: &'static str,
        /// The error of the system.
        cause: String,
    },
    /// The store was closed while the call waited.
    #[error("the store is closed")]
    Closed,
}

impl StoreError {
    /// Whether the same may be read later, or after another start: it is no finding about a record.
    #[must_use]
    pub const fn will_pass(&self) -> bool {
        matches!(self, Self::ReadOnly { .. } | Self::Busy { .. } | Self::NoBucket { .. } | Self::Closed)
    }
}

/// As many as people read.
fn listed(lost: &[String]) -> String {
    const SHOWN: usize = 20;
    let shown = lost.iter().take(SHOWN).map(String::as_str).collect::<Vec<_>>().join("; ");
    match lost.len().saturating_sub(SHOWN) {
        0 => shown,
        more => format!("{shown}; and {more} more, which `aptix-server verify` lists"),
    }
}
