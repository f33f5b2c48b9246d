//! What a group changes, as the rows that are written.

use std::collections::{BTreeMap, BTreeSet};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, FilePatchId, RequestId, Revision, SessionId, WorkspaceId};
use aptix_model::path::{DocPath, RootedPath};
use aptix_model::record::{BatchRecord, Source};
use aptix_model::state::BatchState;

use super::rows::{Batch, Found, Holding, In, NewEvent, Put, Rows, Workspace};
use crate::store::CloudFile;
use crate::store::retention::blobs_of;
use crate::store::session::{self, is_in_flight};

/// The columns of a batch that follow from its record.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Columns {
    pub(super) newest: Revision,
    pub(super) is_open: bool,
    pub(super) in_flight: bool,
    /// Whether it is a prepared batch that failed.
    pub(super) is_refused: bool,
    pub(super) has_content: bool,
    pub(super) freed: Option<RequestId>,
    pub(super) hunk: Option<FilePatchId>,
    pub(super) session: Option<SessionId>,
    pub(super) reverts: Option<BatchId>,
    pub(super) replaces: Option<BatchId>,
    pub(super) reverted_by: Option<BatchId>,
    pub(super) expires: Option<u64>,
}

impl Columns {
    pub(super) fn of(batch: &BatchRecord) -> Self {
        let preparation = batch.preparation();
        Self {
            newest: batch.revision,
            is_open: batch.state.is_open(),
            in_flight: is_in_flight(batch.state) && session::of(&batch.origin).is_some(),
            is_refused: batch.state == BatchState::Failed && matches!(batch.source, Source::Prepared(_)),
            has_content: batch.removed_content.is_none(),
            freed: preparation.and_then(|preparation| preparation.freed.clone()),
            hunk: batch.hunk(),
            session: session::of(&batch.origin),
            reverts: batch.reverts(),
            replaces: preparation.and_then(|preparation| preparation.replaces),
            reverted_by: batch.reverted_by,
            expires: batch.expires().map(|expires| expires.0),
        }
    }

    /// Whether the row of a batch that was stored under this revision has all of it.
    pub(super) fn is_as_stored(&self, first: Revision) -> bool {
        let Self { newest, is_refused, freed, reverted_by, expires, .. } = self;
        *newest == first && !is_refused && freed.is_none() && reverted_by.is_none() && expires.is_none()
    }
}

/// A new batch as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct NewBatch {
    pub(super) workspace: WorkspaceId,
    pub(super) request: RequestId,
    pub(super) columns: Columns,
    pub(super) records: Batch,
}

/// A batch that changed, as it is written.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct ChangedBatch {
    pub(super) workspace: WorkspaceId,
    pub(super) first: Revision,
    pub(super) columns: Columns,
    pub(super) progress: Vec<u8>,
}

/// How the files with one key change.
#[derive(PartialEq, Eq, Debug, Default)]
pub(super) struct OfKey {
    /// Whether those are removed that are not named here.
    pub(super) is_cleared: bool,
    /// Each as it is written; `None` where it is removed.
    pub(super) files: BTreeMap<RootedPath, Option<CloudFile>>,
}

impl OfKey {
    /// Removes all of them, those too that were named before.
    fn clear(&mut self) {
        self.is_cleared = true;
        self.files.values_mut().for_each(|file| *file = None);
    }
}

/// What is written.
#[derive(Debug, Default)]
pub(super) struct Changes {
    pub(super) workspaces: BTreeMap<WorkspaceId, Workspace>,
    /// Workspaces whose rows this transaction created.
    pub(super) created: BTreeSet<WorkspaceId>,
    pub(super) new: BTreeMap<BatchId, NewBatch>,
    pub(super) changed: BTreeMap<BatchId, ChangedBatch>,
    pub(super) events: Vec<(WorkspaceId, NewEvent)>,
    pub(super) requests: BTreeMap<In<RequestId>, BatchId>,
    pub(super) hunks: BTreeMap<In<FilePatchId>, BatchId>,
    pub(super) sessions: BTreeMap<In<SessionId>, Option<Vec<u8>>>,
    pub(super) files: BTreeMap<In<DocPath>, OfKey>,
    /// How many more batches name a blob. How many files do is counted where they are written.
    pub(super) names: BTreeMap<In<Sha256Digest>, i64>,
    pub(super) batch_blobs: BTreeMap<(BatchId, Sha256Digest), u64>,
    /// Who holds the lease of a workspace, with which epoch.
    pub(super) holdings: BTreeMap<WorkspaceId, (u64, Holding)>,
}

impl Changes {
    pub(super) fn is_empty(&self) -> bool {
        self.workspaces.is_empty()
            && self.changed.is_empty()
            && self.sessions.is_empty()
            && self.files.is_empty()
            && self.requests.is_empty()
    }

    /// The bytes of what is written of batches.
    pub(super) fn bytes(&self) -> usize {
        let new = self.new.values().map(|new| new.records.content.len() + new.records.progress.len());
        new.sum::<usize>() + self.changed.values().map(|changed| changed.progress.len()).sum::<usize>()
    }

    /// Takes over what a write changes, so that the next one decides by it.
    pub(super) fn apply(&mut self, rows: &mut Rows, puts: Vec<Put>) {
        for put in puts {
            match put {
                Put::Workspace(id, row) => {
                    self.workspaces.insert(id.clone(), (*row).clone());
                    rows.workspaces.insert(id, Some(*row));
                }
                Put::New(batch, records) => self.add(rows, &batch, records),
                Put::Changed(batch, records) => self.change(rows, &batch, records),
                Put::InFlight(key, more) => {
                    if let Some(in_flight) = rows.sessions.get_mut(&key).and_then(|of| of.in_flight.as_mut()) {
                        *in_flight += more;
                    }
                }
                Put::Event(workspace, event) => self.events.push((workspace, *event)),
                Put::Request(key, batch) => {
                    rows.requests.insert(key.clone(), Some(batch));
                    self.requests.insert(key, batch);
                }
                Put::Hunk(key, batch) => {
                    rows.hunks.insert(key.clone(), Some(batch));
                    self.hunks.insert(key, batch);
                }
                Put::Session(key, record) => {
                    rows.sessions.entry(key.clone()).or_default().record.clone_from(&record);
                    self.sessions.insert(key, record);
                }
                Put::File(workspace, file) => self.put_file(workspace, file),
                Put::RemoveFile(key, path) => drop(self.files.entry(key).or_default().files.insert(path, None)),
                Put::RemoveFiles(key) => self.files.entry(key).or_default().clear(),
                Put::Holding(workspace, epoch, holding) => {
                    // It is this server's own from now on.
                    rows.held.insert(workspace.clone(), None);
                    self.holdings.insert(workspace, (epoch, *holding));
                }
            }
        }
    }

    fn add(&mut self, rows: &mut Rows, batch: &BatchRecord, records: Batch) {
        for blob in blobs_of(&batch.batch) {
            if self.batch_blobs.insert((batch.id, blob.sha256), blob.size_bytes).is_none() {
                *self.names.entry((batch.workspace.clone(), blob.sha256)).or_default() += 1;
            }
        }
        rows.batches.insert(batch.id, Found::Batch(records.clone()));
        let (workspace, request) = (batch.workspace.clone(), batch.request_id.clone());
        self.new.insert(batch.id, NewBatch { workspace, request, columns: Columns::of(batch), records });
    }

    fn change(&mut self, rows: &mut Rows, batch: &BatchRecord, records: Batch) {
        let columns = Columns::of(batch);
        match self.new.get_mut(&batch.id) {
            Some(new) => (new.columns, new.records) = (columns, records.clone()),
            None => {
                let (workspace, first, progress) = (batch.workspace.clone(), records.first, records.progress.clone());
                self.changed.insert(batch.id, ChangedBatch { workspace, first, columns, progress });
            }
        }
        rows.batches.insert(batch.id, Found::Batch(records));
    }

    /// Has a file be kept.
    pub(super) fn put_file(&mut self, workspace: WorkspaceId, file: CloudFile) {
        let of_key = self.files.entry((workspace, file.doc_path.clone())).or_default();
        of_key.files.insert(file.path.clone(), Some(file));
    }
}
