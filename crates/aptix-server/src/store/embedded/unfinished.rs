//! Uploads that are not blobs yet. One of each blob can be resumed: a record under the blob's digest names it, and it outlives the
//! process. The others are dropped when the store is opened again.

use aptix_model::batch::BlobRef;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::record::UnixMillis;
use fjall::{Readable, Slice};
use tokio_util::bytes::Bytes;

use super::committer::{Put, View};
use super::instant::Instant;
use super::keys::{self, Key};
use super::record::{self, Marker};
use super::tables::failed;
use super::unnamed::begun;
use super::usage::change;
use crate::store::{StoreError, Unfinished, UploadId};

/// Makes an upload the one of its blob that can be resumed; answers the one before.
pub(super) fn claim(
    view: &View<'_>,
    upload: UploadId,
    workspace: &WorkspaceId,
    blob: BlobRef,
) -> Result<(Option<UploadId>, Vec<Put>), StoreError> {
    let key = keys::unfinished(workspace, &blob.sha256);
    let former = view.get(&key)?.map(|record| record::decode_marker(&record)).transpose()?;
    let marker = record::encode_marker(Marker { upload, size_bytes: blob.size_bytes });
    let replaced = former.map_or(0, |former| former.size_bytes);
    let puts = vec![
        Put::Record(key, marker),
        Put::Record(keys::upload(upload), record::encode_id(upload.0)),
        Put::Used(workspace.clone(), change(replaced, blob.size_bytes)),
    ];
    Ok((former.map(|former| former.upload).filter(|former| *former != upload), puts))
}

/// What ends that an upload can be resumed, if the record with this key names it.
pub(super) fn release(view: &View<'_>, upload: UploadId, key: &Key) -> Result<Vec<Put>, StoreError> {
    let found = view.get(key)?.map(|record| record::decode_marker(&record)).transpose()?;
    let Some(found) = found.filter(|found| found.upload == upload) else { return Ok(Vec::new()) };
    let used = keys::owner_of(key).map(|workspace| Put::Used(workspace, change(found.size_bytes, 0)));
    Ok(used.into_iter().chain([Put::RemoveRecord(key.clone())]).collect())
}

/// Makes an upload the workspace's blob, unless there is one already; answers whether it did.
pub(super) fn commit(
    view: &View<'_>,
    upload: UploadId,
    workspace: &WorkspaceId,
    blob: BlobRef,
) -> Result<(bool, Vec<Put>), StoreError> {
    let key = keys::blob(workspace, &blob.sha256);
    let mut puts = release(view, upload, &keys::unfinished(workspace, &blob.sha256))?;
    if view.get(&key)?.is_some() {
        return Ok((false, puts));
    }
    if blob.size_bytes > 0 {
        check(view, upload)?;
    }
    let marker = record::encode_marker(Marker { upload, size_bytes: blob.size_bytes });
    puts.extend([Put::Record(key, marker), Put::RemoveRecord(keys::upload(upload))]);
    puts.push(Put::Used(workspace.clone(), change(0, blob.size_bytes)));
    Ok((true, puts))
}

/// What keeps a chunk.
pub(super) fn put(view: &View<'_>, upload: UploadId, index: u32, bytes: &Bytes) -> Result<Vec<Put>, StoreError> {
    let mut puts = vec![Put::Chunk(keys::chunk(upload, index), Slice::from(&**bytes))];
    if index == 0 {
        puts.push(Put::Record(keys::upload(upload), record::encode_id(upload.0)));
    } else {
        check(view, upload)?;
    }
    Ok(puts)
}

/// Refuses an upload that was dropped meanwhile: by a sweep, or because the store was opened again.
pub(super) fn check(view: &View<'_>, upload: UploadId) -> Result<(), StoreError> {
    match view.get(&keys::upload(upload))? {
        Some(_) => Ok(()),
        None => {
            let cause = "its first bytes are gone, upload it again".to_owned();
            Err(StoreError::Failed { action: "keep an upload", cause })
        }
    }
}

impl Instant<'_> {
    /// The upload of a blob that can be resumed.
    pub(super) fn unfinished(&self, workspace: &WorkspaceId, blob: BlobRef) -> Result<Option<Unfinished>, StoreError> {
        let Some(record) = self.get(&keys::unfinished(workspace, &blob.sha256))? else { return Ok(None) };
        let Marker { upload, size_bytes } = record::decode_marker(&record)?;
        if size_bytes != blob.size_bytes || self.get(&keys::upload(upload))?.is_none() {
            return Ok(None);
        }
        let mut chunks: u32 = 0;
        for entry in self.snapshot.prefix(&self.tables.chunks, upload.0.as_bytes()) {
            let key = entry.key().map_err(failed("list chunks"))?;
            if *key != *keys::chunk(upload, chunks) {
                break;
            }
            chunks += 1;
        }
        // Every chunk but the last is whole.
        let Some(last) = chunks.checked_sub(1) else { return Ok(Some(Unfinished { upload, bytes: 0 })) };
        let rest = self.upload_chunk(upload, last)?.map_or(0, |chunk| chunk.len());
        Ok(Some(Unfinished { upload, bytes: u64::from(last) * CHUNK_BYTES as u64 + rest as u64 }))
    }

    /// One chunk of an upload.
    pub(super) fn upload_chunk(&self, upload: UploadId, index: u32) -> Result<Option<Bytes>, StoreError> {
        let chunk = self.snapshot.get(&self.tables.chunks, keys::chunk(upload, index));
        Ok(chunk.map_err(failed("read a chunk"))?.map(|chunk| Bytes::copy_from_slice(&chunk)))
    }

    /// The uploads that can be resumed and began before a time, with their keys.
    pub(super) fn unfinished_before(&self, before: UnixMillis) -> Result<Vec<(Key, UploadId)>, StoreError> {
        let mut found = Vec::new();
        for entry in self.snapshot.prefix(&self.tables.records, keys::UNFINISHED) {
            let (key, value) = entry.into_inner().map_err(failed("list uploads"))?;
            let upload = record::decode_marker(&value)?.upload;
            if begun(upload) < before {
                found.push((key.to_vec(), upload));
            }
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use aptix_model::digest::Sha256Digest;
    use aptix_model::id::Uuid;

    use super::super::{EmbeddedStore, QUEUE};
    use super::*;
    use crate::store::Store;

    /// Uploads that are given up all at once leave nothing behind, although the queue has no room for all of them.
    #[tokio::test]
    async fn uploads_that_are_given_up_go_although_the_queue_is_full() {
        let dir = tempfile::tempdir().unwrap();
        let store = EmbeddedStore::open(dir.path()).unwrap();
        let uploads: Vec<_> = (1..=2 * QUEUE as u128).map(|number| UploadId(Uuid::from_u128(number))).collect();
        for upload in &uploads {
            store.put_chunk(*upload, 0, Bytes::from_static(b"x")).await.unwrap();
        }
        uploads.iter().for_each(|upload| store.discard_upload(*upload));
        let left = || store.tables.records.prefix(keys::UPLOADS).count();
        let deadline = tokio::time::Instant::now() + std::time::Duration::from_secs(30);
        while left() > 0 {
            store.grant_lease("w".parse().unwrap(), Sha256Digest::EMPTY, Vec::new()).await.unwrap();
            assert!(tokio::time::Instant::now() < deadline, "{} uploads are left", left());
        }
        assert_eq!(store.tables.chunks.iter().count(), 0);
    }
}
