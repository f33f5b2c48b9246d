//! What a backup has in it, in numbers.

use aptix_model::digest::Sha256Digest;
use aptix_model::record::UnixMillis;

/// What a backup has in it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Summary {
    /// When it was begun, by the server's clock.
    pub taken: Option<UnixMillis>,
    /// Workspaces.
    pub workspaces: u64,
    /// Batches of all workspaces.
    pub batches: u64,
    /// Events that are kept.
    pub events: u64,
    /// Cloud files.
    pub files: u64,
    /// Blobs.
    pub blobs: u64,
    /// Bytes of all blobs.
    pub blob_bytes: u64,
    /// Sessions.
    pub sessions: u64,
    /// Tokens, also those that have ended.
    pub tokens: u64,
    /// Bytes of the backup.
    pub bytes: u64,
    /// Digest of the whole: its last 32 bytes.
    pub digest: Option<Sha256Digest>,
}

impl std::fmt::Display for Summary {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { workspaces, batches, events, files, blobs, blob_bytes, sessions, tokens, .. } = self;
        write!(
            out,
            "workspaces {workspaces}, batches {batches}, events {events}, sessions {sessions}, files {files}, blobs {blobs} \
             ({blob_bytes} bytes), tokens {tokens}"
        )
    }
}
