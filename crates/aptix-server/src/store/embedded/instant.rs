//! How the tables are read. A read sees one instant; a record that cannot be read hides no other.

use std::collections::BTreeMap;
use std::ops::RangeBounds;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::id_block;
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, UnixMillis};
use fjall::{Iter, Readable, Slice, Snapshot};
use tokio_util::bytes::Bytes;

use super::batch_record;
use super::earliest_due::Scan;
use super::keys::{self, Key};
use super::marks::Marks;
use super::record::{self, Counters, Happened, Head, Marker};
use super::retention_record::{Trim, decode_trim};
use super::tables::{Tables, failed};
use crate::store::damaged::{Damaged, DamagedFile};
use crate::store::{
    BatchSelector, CloudFile, Due, DueKey, Event, Lease, Listed, ListedFile, ListedWorkspace, StoreError,
    WorkspaceCounts,
};

impl Tables {
    /// Everything as it is at this instant.
    pub(super) fn now(&self) -> Instant<'_> {
        Instant { tables: self, snapshot: self.db.snapshot() }
    }
}

fn missing(what: String) -> StoreError {
    StoreError::Corrupt { what, why: "it is missing although another record names it".to_owned() }
}

/// The tables at one instant.
pub(super) struct Instant<'a> {
    pub(super) tables: &'a Tables,
    pub(super) snapshot: Snapshot,
}

impl Instant<'_> {
    pub(super) fn get(&self, key: &Key) -> Result<Option<Slice>, StoreError> {
        self.tables.reads.record();
        self.snapshot.get(&self.tables.records, key).map_err(failed("read a record"))
    }

    /// The records whose keys are in a range.
    pub(super) fn range(&self, keys: impl RangeBounds<Key>) -> Iter {
        self.tables.reads.range();
        self.snapshot.range(&self.tables.records, keys)
    }

    /// The records whose keys begin like this.
    pub(super) fn prefix(&self, prefix: impl AsRef<[u8]>) -> Iter {
        self.tables.reads.range();
        self.snapshot.prefix(&self.tables.records, prefix)
    }

    /// The counters of a workspace. Where their record is damaged, what was last acknowledged replaces it.
    fn counters(&self, workspace: &WorkspaceId) -> Result<Option<Counters>, StoreError> {
        let read = self.get(&keys::workspace(workspace)).and_then(|record| match record {
            Some(record) => record::decode_counters(&record).map(Some),
            None => Ok(None),
        });
        read.or_else(|error| self.tables.known(workspace).map(Some).ok_or(error))
    }

    /// The counters that the record of a workspace has, if it can be read.
    pub(super) fn counters_of(&self, workspace: &WorkspaceId) -> Option<Counters> {
        let record = self.get(&keys::workspace(workspace)).ok().flatten()?;
        record::decode_counters(&record).ok()
    }

    /// The newest commit.
    pub(super) fn head(&self) -> Result<Head, StoreError> {
        self.get(&keys::HEAD.to_vec())?.map_or(Ok(Head::default()), |record| record::decode_head(&record))
    }

    /// Every workspace that there is or that a mark names, without those that are being deleted; by its mark where its own record cannot be read.
    pub(super) fn every_workspace(&self, marks: Option<&Marks>) -> BTreeMap<WorkspaceId, Counters> {
        let marked = marks.into_iter().flat_map(|marks| marks.workspaces());
        let mut found: BTreeMap<_, _> = marked.map(|(workspace, counters)| (workspace.clone(), counters)).collect();
        for entry in self.prefix(keys::WORKSPACES) {
            let Ok((key, value)) = entry.into_inner() else { break };
            found.extend(keys::workspace_of(&key).zip(record::decode_counters(&value).ok()));
        }
        let read = |(workspace, marked)| {
            let counters = self.counters_of(&workspace).unwrap_or(marked);
            (workspace, counters)
        };
        let deleted = self.every_deletion();
        found.into_iter().filter(|(workspace, _)| !deleted.contains(workspace)).map(read).collect()
    }

    pub(super) fn counts(&self, workspace: &WorkspaceId) -> Result<Option<WorkspaceCounts>, StoreError> {
        let Some(Counters { newest, digest, open, .. }) = self.counters(workspace)? else { return Ok(None) };
        let open_batches = open.map_or_else(|| self.count_open(workspace, newest), Ok)?;
        Ok(Some(WorkspaceCounts { newest, digest, open_batches }))
    }

    pub(super) fn workspaces(
        &self,
        after: Option<&WorkspaceId>,
        limit: usize,
    ) -> Result<Vec<ListedWorkspace>, StoreError> {
        let first = after.map_or_else(|| keys::WORKSPACES.to_vec(), keys::after_workspace);
        let mut listed = Vec::new();
        for entry in self.range(first..) {
            let key = entry.key().map_err(failed("list workspaces"))?;
            if listed.len() == limit || !key.starts_with(keys::WORKSPACES) {
                break;
            }
            let Some(workspace) = keys::workspace_of(&key) else { continue };
            let counts = self.counts(&workspace);
            let counts = counts.inspect_err(|error| tracing::error!(WorkspaceId = %workspace, %error, "not counted"));
            listed.push((workspace, counts.ok().flatten()));
        }
        Ok(listed)
    }

    /// Batches whose time is over, in the order of expiry, after a position. Skips an entry that cannot be read.
    pub(super) fn due(
        &self,
        now: UnixMillis,
        after: Option<DueKey>,
        limit: usize,
        scan: Scan,
    ) -> Result<Vec<Due>, StoreError> {
        let begin = after.map_or_else(|| keys::due_from(scan.from), |(expires, id)| keys::due(expires, id));
        // Where it begins later, it does not learn what is first.
        let mut scan = Some(scan).filter(|_| after.is_none());
        let mut found = Vec::new();
        for entry in self.range(begin..) {
            let (key, value) = entry.into_inner().map_err(failed("list prepared batches"))?;
            if !key.starts_with(keys::DUE) {
                break;
            }
            let Some(key) = keys::due_of(&key).filter(|key| after != Some(*key)) else { continue };
            if let Some(scan) = scan.take() {
                scan.end(Some(key.0));
            }
            if found.len() == limit || key.0 > now {
                break;
            }
            let workspace = record::decode_texts(&value).ok().and_then(|texts| texts.first()?.parse().ok());
            let Some(workspace) = workspace else { continue };
            if !self.is_deleted(&workspace)? {
                found.push(Due { key, workspace });
            }
        }
        if let Some(scan) = scan {
            scan.end(None);
        }
        Ok(found)
    }

    pub(super) fn newest(&self, workspace: &WorkspaceId) -> Result<Option<Revision>, StoreError> {
        Ok(self.counters(workspace)?.map(|counters| counters.newest))
    }

    pub(super) fn roots(&self, workspace: &WorkspaceId) -> Result<Vec<String>, StoreError> {
        self.get(&keys::roots(workspace))?.map_or_else(|| Ok(Vec::new()), |record| record::decode_texts(&record))
    }

    pub(super) fn lease(&self, workspace: &WorkspaceId) -> Result<Lease, StoreError> {
        Ok(self.counters(workspace)?.unwrap_or_default().lease)
    }

    pub(super) fn event(&self, workspace: &WorkspaceId, revision: Revision) -> Result<Option<Happened>, StoreError> {
        self.get(&keys::event(workspace, revision))?.map(|record| record::decode_event(&record)).transpose()
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
            BatchSelector::Hunk(hunk) => match self.get(&keys::hunk(workspace, *hunk))? {
                Some(record) => record::decode_id(&record)?,
                None => id_block::batch_id(hunk.0),
            },
        };
        let Some(batch) = self.get(&keys::batch(id))? else { return Ok(None) };
        let state = self.get(&keys::state(id))?.ok_or_else(|| missing(format!("the state of batch {id}")))?;
        let mut stored = batch_record::decode_batch(id, &batch, &state)?;
        if stored.workspace != *workspace {
            return Ok(None);
        }
        stored.is_restricted = self.is_restricted(&stored)?;
        Ok(Some(stored))
    }

    /// Batches in the order of their first revisions, newest first. Only batches have entries here, so what cannot be read
    /// is found by looking at each revision.
    pub(super) fn batches(
        &self,
        workspace: &WorkspaceId,
        before: Revision,
        limit: usize,
    ) -> Result<Vec<Listed>, StoreError> {
        let newest = self.newest(workspace)?.unwrap_or_default();
        let range = keys::listed(workspace, Revision(0))..keys::listed(workspace, before);
        let mut listed = Vec::new();
        for entry in self.range(range).rev().take(limit) {
            let Ok((key, value)) = entry.into_inner() else {
                let last = listed.last().map_or(before.min(newest.next()), revision_of);
                return self.batches_one_by_one(workspace, last, limit, listed);
            };
            listed.extend(keys::revision_of(&key).map(|revision| listed_entry(revision, record::decode_id(&value))));
        }
        Ok(listed)
    }

    fn batches_one_by_one(
        &self,
        workspace: &WorkspaceId,
        before: Revision,
        limit: usize,
        mut listed: Vec<Listed>,
    ) -> Result<Vec<Listed>, StoreError> {
        for revision in (1..before.0).rev().map(Revision) {
            if listed.len() >= limit {
                break;
            }
            match self.get(&keys::listed(workspace, revision)) {
                Ok(None) => {}
                Ok(Some(value)) => listed.push(listed_entry(revision, record::decode_id(&value))),
                Err(error) => listed.push(Err(Damaged { revision, why: error.to_string() })),
            }
        }
        Ok(listed)
    }

    /// The events of a batch, newest first, as far as one that can be read leads to the next.
    pub(super) fn steps(
        &self,
        workspace: &WorkspaceId,
        id: BatchId,
        newest: Revision,
    ) -> Result<Vec<Event>, StoreError> {
        let (mut steps, mut at) = (Vec::new(), Some(newest));
        while let Some(revision) = at {
            let Ok(Some(happened)) = self.event(workspace, revision) else { break };
            let Happened { batch, digest, facts, previous } = happened;
            if batch != id {
                break;
            }
            steps.push(Event { revision, batch, digest, facts });
            // Every step leads to an older one, so this ends.
            at = previous.filter(|previous| *previous < revision);
        }
        Ok(steps)
    }

    /// Events in their order. Revisions have no gap: what is not found, or cannot be read, is reported in its place.
    pub(super) fn events(
        &self,
        workspace: &WorkspaceId,
        after: Revision,
        limit: usize,
    ) -> Result<Vec<Listed>, StoreError> {
        let newest = self.newest(workspace)?.unwrap_or_default();
        let Trim { upto, .. } = self.trim(workspace)?;
        if after < upto {
            return Err(StoreError::Compacted { oldest: upto.next() });
        }
        self.events_up_to(workspace, after, newest, limit)
    }

    /// As [`Self::events`], up to a revision.
    pub(super) fn events_up_to(
        &self,
        workspace: &WorkspaceId,
        after: Revision,
        newest: Revision,
        limit: usize,
    ) -> Result<Vec<Listed>, StoreError> {
        let Some(first) = after.0.checked_add(1) else { return Ok(Vec::new()) };
        let range = keys::event(workspace, Revision(first))..=keys::event(workspace, newest);
        if first > newest.0 {
            return Ok(Vec::new());
        }
        let mut events = Vec::new();
        let mut found = self.range(range);
        let mut next = found.next();
        for revision in (first..=newest.0).take(limit).map(Revision) {
            let entry = match next.take().map(fjall::Guard::into_inner) {
                Some(Ok((key, value))) if keys::revision_of(&key) == Some(revision) => {
                    next = found.next();
                    record::decode_event(&value).map(Some)
                }
                // The range stops at what cannot be read, and may begin behind a gap.
                _ => self.event(workspace, revision),
            };
            events.push(match entry {
                Ok(Some(event)) => Ok(Event { revision, batch: event.batch, digest: event.digest, facts: event.facts }),
                Ok(None) => Err(Damaged { revision, why: "the event is missing".to_owned() }),
                Err(error) => Err(Damaged { revision, why: error.to_string() }),
            });
        }
        Ok(events)
    }

    pub(super) fn file(&self, workspace: &WorkspaceId, path: &RootedPath) -> Result<Option<CloudFile>, StoreError> {
        self.get(&keys::file(workspace, path))?.map(|record| record::decode_file(&record)).transpose()
    }

    pub(super) fn files_with_key(
        &self,
        workspace: &WorkspaceId,
        doc_path: &DocPath,
    ) -> Result<Vec<CloudFile>, StoreError> {
        let Some(paths) = self.get(&keys::paths(workspace, doc_path))? else { return Ok(Vec::new()) };
        let file = |path| self.file(workspace, &path)?.ok_or_else(|| missing(format!("the cloud file {path}")));
        record::decode_paths(&paths)?.into_iter().map(file).collect()
    }

    pub(super) fn files(
        &self,
        workspace: &WorkspaceId,
        after: Option<&RootedPath>,
        limit: usize,
    ) -> Result<Vec<ListedFile>, StoreError> {
        let all = keys::files(workspace);
        let mut first = after.map_or_else(|| all.clone(), |after| keys::file(workspace, after));
        if after.is_some() {
            // The smallest key after this one.
            first.push(0);
        }
        let entries = self.range(first..);
        let mut files = Vec::new();
        for entry in entries.take(limit) {
            let (key, value) = entry.into_inner().map_err(failed("list files"))?;
            if !key.starts_with(&all) {
                break;
            }
            let path = key.get(all.len()..).and_then(|path| RootedPath::new(str::from_utf8(path).ok()?).ok());
            files.push(match (record::decode_file(&value), path) {
                (Ok(file), Some(path)) if file.path == path => Ok(file),
                (Ok(_), Some(path)) => Err(DamagedFile { path, why: "it is the record of another file".to_owned() }),
                (Err(error), Some(path)) => Err(DamagedFile { path, why: error.to_string() }),
                // A key that is no path has no place in the list.
                (_, None) => continue,
            });
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
        self.upload_chunk(marker.upload, index)
    }
}

impl Instant<'_> {
    /// Up to where a workspace's events were removed. Where the record of that is damaged, the events themselves show it.
    pub(super) fn trim(&self, workspace: &WorkspaceId) -> Result<Trim, StoreError> {
        let Some(record) = self.get(&keys::trim(workspace))? else { return Ok(Trim::default()) };
        if let Ok(trim) = decode_trim(&record) {
            return Ok(trim);
        }
        let range = keys::event(workspace, Revision(0))..=keys::event(workspace, Revision(u64::MAX));
        let first = self.range(range).next();
        let first = first.map(fjall::Guard::key).transpose().map_err(failed("list events"))?;
        let first = first.and_then(|key| keys::revision_of(&key)).unwrap_or_default();
        Ok(Trim { upto: Revision(first.0.saturating_sub(1)), ..Trim::default() })
    }

    /// Digest of the commit of an event that is kept, or of the last one that was removed.
    pub(super) fn digest(&self, workspace: &WorkspaceId, revision: Revision) -> Option<Sha256Digest> {
        match self.event(workspace, revision) {
            Ok(Some(event)) => event.digest,
            _ => self.trim(workspace).ok().filter(|trim| trim.upto == revision)?.digest,
        }
    }
}

fn listed_entry(revision: Revision, batch: Result<aptix_model::id::BatchId, StoreError>) -> Listed {
    match batch {
        Ok(batch) => Ok(Event::listed(revision, batch)),
        Err(error) => Err(Damaged { revision, why: error.to_string() }),
    }
}

fn revision_of(listed: &Listed) -> Revision {
    match listed {
        Ok(event) => event.revision,
        Err(damaged) => damaged.revision,
    }
}
