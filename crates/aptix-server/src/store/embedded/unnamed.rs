//! Unnamed blobs, which no batch and no file names: found at one instant, and removed by the committer unless a caller asked
//! about them lately.

use std::collections::{HashMap, HashSet};
use std::sync::{Mutex, MutexGuard, PoisonError};

use aptix_model::batch::Content;
use aptix_model::digest::Sha256Digest;
use aptix_model::id::{BatchId, Uuid, WorkspaceId};
use aptix_model::record::{BatchRecord, UnixMillis};
use fjall::Readable;

use super::batch_record;
use super::committer::{Put, View};
use super::instant::Instant;
use super::keys;
use super::record::{self, Marker};
use super::tables::failed;
use super::usage::change;
use crate::store::{FileUpdate, StoreError, UploadId};

/// A blob of a workspace.
pub(super) type Named = (WorkspaceId, Sha256Digest);

/// What is known of blobs beside what is stored.
#[derive(Debug, Default)]
pub(super) struct Attention(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// When a caller last learnt that a blob is there: a batch that names it may be on its way.
    asked: HashMap<Named, UnixMillis>,
    /// What batches and files began to name since the sweep that is under way began; `None` while there is none.
    named: Option<HashSet<Named>>,
    /// What the sweep that is under way, or the last one, removed: no caller learns any more that it is there.
    removed: HashSet<Named>,
}

impl Attention {
    fn lock(&self) -> MutexGuard<'_, Known> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a caller learns now that a blob is there; answers whether it stays.
    pub(super) fn notice(&self, workspace: &WorkspaceId, digest: Sha256Digest, now: UnixMillis) -> bool {
        let (mut known, blob) = (self.lock(), (workspace.clone(), digest));
        let stays = !known.removed.contains(&blob);
        if stays {
            known.asked.insert(blob, now);
        }
        stays
    }

    /// Notes that a caller learns now how much of a blob there is: it may go on with the upload.
    pub(super) fn notice_upload(&self, workspace: &WorkspaceId, digest: Sha256Digest, now: UnixMillis) {
        self.lock().asked.insert((workspace.clone(), digest), now);
    }

    /// Whether nobody asked about an upload of this blob since a time.
    pub(super) fn is_given_up(&self, blob: &Named, before: UnixMillis) -> bool {
        self.lock().asked.get(blob).is_none_or(|asked| *asked < before)
    }

    /// The workspace gets this blob, if it does not have it.
    pub(super) fn came(&self, workspace: &WorkspaceId, digest: Sha256Digest, now: UnixMillis) {
        let (mut known, blob) = (self.lock(), (workspace.clone(), digest));
        known.removed.remove(&blob);
        known.asked.insert(blob, now);
    }

    /// A sweep begins: what was asked before it counts no more. Called by the committer, so that the sweep finds in the store what began
    /// to name a blob before, and here what does so later.
    pub(super) fn begin(&self, before: UnixMillis) {
        let mut known = self.lock();
        known.asked.retain(|_, asked| *asked >= before);
        known.named = Some(HashSet::new());
        known.removed.clear();
    }

    /// The sweep ends: nothing is removed until another one begins.
    fn end(&self) {
        self.lock().named = None;
    }

    /// Whether a blob may be removed; from now on no caller learns that it is there.
    fn remove(&self, blob: &Named, before: UnixMillis) -> bool {
        let mut known = self.lock();
        let is_named = known.named.as_ref().is_none_or(|named| named.contains(blob));
        if is_named || known.asked.get(blob).is_some_and(|asked| *asked >= before) {
            return false;
        }
        known.removed.insert(blob.clone());
        true
    }

    fn name(&self, workspace: &WorkspaceId, digests: impl Iterator<Item = Sha256Digest>) {
        if let Some(named) = &mut self.lock().named {
            named.extend(digests.map(|digest| (workspace.clone(), digest)));
        }
    }

    /// A batch is about to be stored.
    pub(super) fn name_in_batch(&self, batch: &BatchRecord) {
        self.name(&batch.workspace, named_by(batch));
    }

    /// Files are about to be stored.
    pub(super) fn name_in_files(&self, workspace: &WorkspaceId, files: &[FileUpdate]) {
        self.name(workspace, files.iter().filter_map(|file| Some(file.content?.sha256)));
    }
}

/// A sweep that is under way; it ends when this is dropped. One that was given up has written nothing behind this.
pub(super) struct Sweep<'a>(pub(super) &'a Attention);

impl Drop for Sweep<'_> {
    fn drop(&mut self) {
        self.0.end();
    }
}

/// Refuses what names a blob that is not there: it was removed after it was looked for.
pub(super) fn are_there(
    view: &View<'_>,
    workspace: &WorkspaceId,
    named: impl Iterator<Item = Sha256Digest>,
) -> Result<(), StoreError> {
    for digest in named {
        if view.get(&keys::blob(workspace, &digest))?.is_none() {
            let cause = format!("{digest} is not there, upload it again");
            return Err(StoreError::Failed { action: "keep what names a blob", cause });
        }
    }
    Ok(())
}

/// The blobs that a batch names.
pub(super) fn named_by(batch: &BatchRecord) -> impl Iterator<Item = Sha256Digest> + '_ {
    batch.batch.files.iter().filter_map(|patch| match patch.edit.content()? {
        Content::Blob(blob) => Some(blob.sha256),
        Content::Text(_) => None,
    })
}

/// When an upload began.
pub(super) fn begun(upload: UploadId) -> UnixMillis {
    UnixMillis(u64::try_from(upload.0.as_u128() >> 80).unwrap_or(u64::MAX))
}

/// Blobs that may be removed.
type Found = HashMap<Named, Marker>;

/// Records that cannot be read, and may name any blob of their workspaces.
#[derive(Default)]
struct Unreadable {
    workspaces: HashSet<WorkspaceId>,
    /// Batches whose workspaces are looked up.
    batches: HashSet<BatchId>,
    records: usize,
    first: Option<StoreError>,
}

impl Unreadable {
    fn note(&mut self, error: StoreError) {
        self.records += 1;
        self.first.get_or_insert(error);
    }
}

impl Instant<'_> {
    /// Every blob that came before a time and that no batch and no file of its workspace names. A batch or a file that cannot be
    /// read may name any blob of its workspace: those stay, and one warning is logged.
    pub(super) fn unnamed(&self, before: UnixMillis) -> Result<Vec<(Named, Marker)>, StoreError> {
        let (mut found, mut unreadable) = (HashMap::new(), Unreadable::default());
        for entry in self.snapshot.prefix(&self.tables.records, keys::BLOBS) {
            let (key, value) = entry.into_inner().map_err(failed("list blobs"))?;
            let Some(blob) = keys::blob_of(&key) else { continue };
            match record::decode_marker(&value) {
                Ok(marker) if begun(marker.upload) < before => drop(found.insert(blob, marker)),
                Ok(_) => {}
                Err(error) => unreadable.note(error),
            }
        }
        if !found.is_empty() {
            self.keep_named_by_files(&mut found, &mut unreadable)?;
            self.keep_named_by_batches(&mut found, &mut unreadable)?;
            self.keep_of_unreadable(&mut found, &mut unreadable)?;
        }
        if let Some(error) = &unreadable.first {
            let (records, workspaces) = (unreadable.records, unreadable.workspaces.len());
            tracing::warn!(records, workspaces, %error, "blobs are kept that damaged records may name");
        }
        Ok(found.into_iter().collect())
    }

    fn keep_named_by_files(&self, found: &mut Found, unreadable: &mut Unreadable) -> Result<(), StoreError> {
        for entry in self.snapshot.prefix(&self.tables.records, keys::FILES) {
            let (key, value) = entry.into_inner().map_err(failed("list files"))?;
            let Some(workspace) = keys::workspace_of_file(&key) else { continue };
            match record::decode_file(&value) {
                Ok(file) => drop(found.remove(&(workspace, file.content.sha256))),
                Err(error) => {
                    unreadable.note(error);
                    unreadable.workspaces.insert(workspace);
                }
            }
        }
        Ok(())
    }

    fn keep_named_by_batches(&self, found: &mut Found, unreadable: &mut Unreadable) -> Result<(), StoreError> {
        for entry in self.snapshot.prefix(&self.tables.records, keys::BATCHES) {
            let (key, value) = entry.into_inner().map_err(failed("list batches"))?;
            let Some(id) = key.get(1..).and_then(|id| Uuid::from_slice(id).ok()).map(BatchId) else { continue };
            match self.decoded(id, &value) {
                Ok(batch) => {
                    for digest in named_by(&batch) {
                        found.remove(&(batch.workspace.clone(), digest));
                    }
                }
                Err(error) => {
                    unreadable.note(error);
                    unreadable.batches.insert(id);
                }
            }
        }
        Ok(())
    }

    fn decoded(&self, id: BatchId, value: &[u8]) -> Result<BatchRecord, StoreError> {
        let missing = || StoreError::Corrupt { what: format!("batch {id}"), why: "its state is missing".to_owned() };
        batch_record::decode_batch(id, value, &self.get(&keys::state(id))?.ok_or_else(missing)?)
    }

    /// Keeps the blobs of workspaces with records that cannot be read; all blobs, if the list of batches does not have the workspace
    /// of one of them.
    fn keep_of_unreadable(&self, found: &mut Found, unreadable: &mut Unreadable) -> Result<(), StoreError> {
        if !unreadable.batches.is_empty() {
            for entry in self.snapshot.prefix(&self.tables.records, keys::LISTED) {
                let (key, value) = entry.into_inner().map_err(failed("list batches"))?;
                let listed = record::decode_id(&value).ok().zip(keys::workspace_of_listed(&key));
                let listed = listed.filter(|(id, _)| unreadable.batches.remove(id));
                unreadable.workspaces.extend(listed.map(|(_, workspace)| workspace));
            }
        }
        if unreadable.batches.is_empty() {
            found.retain(|(workspace, _), _| !unreadable.workspaces.contains(workspace));
        } else {
            found.clear();
        }
        Ok(())
    }
}

/// Turns a blob back into an upload that is to be discarded; answers whether it did.
pub(super) fn unname(
    view: &View<'_>,
    attention: &Attention,
    (blob, marker): &(Named, Marker),
    before: UnixMillis,
) -> Result<(bool, Vec<Put>), StoreError> {
    let key = keys::blob(&blob.0, &blob.1);
    let same = view.get(&key)?.map(|record| record::decode_marker(&record)).transpose()? == Some(*marker);
    if !same || !attention.remove(blob, before) {
        return Ok((false, Vec::new()));
    }
    let note = Put::Record(keys::upload(marker.upload), record::encode_id(marker.upload.0));
    let used = Put::Used(blob.0.clone(), change(marker.size_bytes, 0));
    Ok((true, vec![Put::RemoveRecord(key), note, used]))
}
