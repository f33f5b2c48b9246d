//! The tables on disk, and how they are read. A read sees one instant.

use std::os::unix::fs::DirBuilderExt;
use std::panic::catch_unwind;
use std::path::Path;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::BatchRecord;
use fjall::{Database, Guard, Keyspace, KeyspaceCreateOptions, KvSeparationOptions, Readable, Slice, Snapshot};
use tokio_util::bytes::Bytes;

use super::keys::{self, Key};
use super::record::{self, Marker};
use crate::store::{BatchSelector, CloudFile, Event, StoreError, UploadId};

/// The database and its two tables.
#[derive(Clone)]
pub(super) struct Tables {
    pub(super) db: Database,
    pub(super) records: Keyspace,
    pub(super) chunks: Keyspace,
}

/// Makes the error of something that the database did not do.
pub(super) fn failed(action: &'static str) -> impl Fn(fjall::Error) -> StoreError {
    move |error| StoreError::Failed { action, cause: error.to_string() }
}

fn missing(what: String) -> StoreError {
    StoreError::Corrupt { what, why: "it is missing although another record names it".to_owned() }
}

impl Tables {
    /// Opens the tables in a directory, makes them if there are none, and removes what unfinished uploads left.
    pub(super) fn open(dir: &Path) -> Result<Self, StoreError> {
        // What people write is in there: nobody else reads it.
        let made = std::fs::DirBuilder::new().recursive(true).mode(0o700).create(dir);
        made.map_err(|error| StoreError::Failed {
            action: "make the data directory",
            cause: format!("{}: {error}", dir.display()),
        })?;
        // Its reader panics on some damaged journals; to whoever starts the server that is damage like any other.
        let opened = catch_unwind(|| Database::builder(dir).open()).map_err(|_| StoreError::Corrupt {
            what: format!("the data directory {}", dir.display()),
            why: "its journal does not read".to_owned(),
        })?;
        let db = opened.map_err(|error| match error {
            fjall::Error::Locked => StoreError::Failed {
                action: "open the data directory",
                cause: format!("{} is in use by another server; give this one another --data-dir", dir.display()),
            },
            other => {
                StoreError::Failed { action: "open the data directory", cause: format!("{}: {other}", dir.display()) }
            }
        })?;
        let records = db.keyspace("records", KeyspaceCreateOptions::default).map_err(failed("open the records"))?;
        let separate = || KeyspaceCreateOptions::default().with_kv_separation(Some(KvSeparationOptions::default()));
        let chunks = db.keyspace("chunks", separate).map_err(failed("open the chunks"))?;
        let tables = Self { db, records, chunks };
        tables.remove_unfinished_uploads()?;
        Ok(tables)
    }

    fn remove_unfinished_uploads(&self) -> Result<(), StoreError> {
        for entry in self.records.prefix(keys::UPLOADS) {
            let value = entry.value().map_err(failed("list uploads"))?;
            self.remove_upload(UploadId(record::decode_id(&value)?.0))?;
        }
        Ok(())
    }

    /// Everything as it is at this instant.
    pub(super) fn now(&self) -> Instant<'_> {
        Instant { tables: self, snapshot: self.db.snapshot() }
    }
}

/// The tables at one instant.
pub(super) struct Instant<'a> {
    tables: &'a Tables,
    snapshot: Snapshot,
}

impl Instant<'_> {
    fn get(&self, key: &Key) -> Result<Option<Slice>, StoreError> {
        self.snapshot.get(&self.tables.records, key).map_err(failed("read a record"))
    }

    pub(super) fn newest(&self, workspace: &WorkspaceId) -> Result<Option<Revision>, StoreError> {
        let record = self.get(&keys::workspace(workspace))?;
        record.map(|record| Ok(record::decode_counters(&record)?.newest)).transpose()
    }

    pub(super) fn batch(
        &self,
        workspace: &WorkspaceId,
        which: &BatchSelector,
    ) -> Result<Option<BatchRecord>, StoreError> {
        let id = match which {
            BatchSelector::Id(id) => *id,
            BatchSelector::Request(request) => match self.get(&keys::request(workspace, request))? {
                Some(record) => record::decode_id(&record)?,
                None => return Ok(None),
            },
        };
        let Some(batch) = self.get(&keys::batch(id))? else { return Ok(None) };
        let standing = self.get(&keys::standing(id))?.ok_or_else(|| missing(format!("where batch {id} stands")))?;
        let stored = record::decode_batch(id, &batch, &standing)?;
        Ok((stored.workspace == *workspace).then_some(stored))
    }

    pub(super) fn batches(
        &self,
        workspace: &WorkspaceId,
        before: Revision,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let range = keys::listed(workspace, Revision(0))..keys::listed(workspace, before);
        self.snapshot.range(&self.tables.records, range).rev().take(limit).map(numbered).collect()
    }

    pub(super) fn events(
        &self,
        workspace: &WorkspaceId,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Event>, StoreError> {
        let Some(first) = after.0.checked_add(1).map(Revision) else { return Ok(Vec::new()) };
        let range = keys::event(workspace, first)..=keys::event(workspace, Revision(u64::MAX));
        self.snapshot.range(&self.tables.records, range).take(limit).map(numbered).collect()
    }

    pub(super) fn file(&self, workspace: &WorkspaceId, path: &RootedPath) -> Result<Option<CloudFile>, StoreError> {
        self.get(&keys::file(workspace, path))?.map(|record| record::decode_file(&record)).transpose()
    }

    pub(super) fn files_with_key(
        &self,
        workspace: &WorkspaceId,
        doc_path: &DocPath,
    ) -> Result<Vec<CloudFile>, StoreError> {
        let paths = self.snapshot.prefix(&self.tables.records, keys::file_keys(workspace, doc_path));
        paths
            .map(|entry| {
                let path = record::decode_path(&entry.value().map_err(failed("list files"))?)?;
                self.file(workspace, &path)?.ok_or_else(|| missing(format!("the cloud file {path}")))
            })
            .collect()
    }

    pub(super) fn files(
        &self,
        workspace: &WorkspaceId,
        after: Option<&RootedPath>,
        limit: usize,
    ) -> Result<Vec<CloudFile>, StoreError> {
        let all = keys::files(workspace);
        let mut first = after.map_or_else(|| all.clone(), |after| keys::file(workspace, after));
        if after.is_some() {
            // The smallest key after this one.
            first.push(0);
        }
        let entries = self.snapshot.range(&self.tables.records, first..);
        let mut files = Vec::new();
        for entry in entries.take(limit) {
            let (key, value) = entry.into_inner().map_err(failed("list files"))?;
            if !key.starts_with(&all) {
                break;
            }
            files.push(record::decode_file(&value)?);
        }
        Ok(files)
    }

    fn marker(&self, workspace: &WorkspaceId, digest: &Sha256Digest) -> Result<Option<Marker>, StoreError> {
        self.get(&keys::blob(workspace, digest))?.map(|record| record::decode_marker(&record)).transpose()
    }

    pub(super) fn blob_size(&self, workspace: &WorkspaceId, digest: &Sha256Digest) -> Result<Option<u64>, StoreError> {
        Ok(self.marker(workspace, digest)?.map(|marker| marker.size_bytes))
    }

    pub(super) fn blob_chunk(
        &self,
        workspace: &WorkspaceId,
        digest: &Sha256Digest,
        index: u32,
    ) -> Result<Option<Bytes>, StoreError> {
        let Some(marker) = self.marker(workspace, digest)? else { return Ok(None) };
        let chunk = self.snapshot.get(&self.tables.chunks, keys::chunk(marker.upload, index));
        Ok(chunk.map_err(failed("read a chunk"))?.map(|chunk| Bytes::copy_from_slice(&chunk)))
    }
}

fn numbered(entry: Guard) -> Result<Event, StoreError> {
    let (key, value) = entry.into_inner().map_err(failed("list events"))?;
    let batch = record::decode_id(&value)?;
    let revision =
        keys::revision_of(&key).ok_or_else(|| missing(format!("the revision of batch {}", BatchId(batch.0))))?;
    Ok(Event { revision, batch })
}
