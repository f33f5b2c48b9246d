//! Blobs on their way in. Bytes become a blob only when all of them came and have the announced digest. What came of a large blob
//! before its caller was cut off is kept, and another call goes on from there; of each blob one upload at a time is such a one.

use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use sha2::{Digest, Sha256};
use tokio_util::bytes::{Bytes, BytesMut};

use super::Dispatcher;
use super::claims::Claim;
use super::refusal::{Refusal, shutting_down};
use super::submit::Submission;
use super::transfer::{damaged, digest_of, no_place};
use crate::caller::Peer;
use crate::mint;
use crate::quota::{CallQuota, Held};
use crate::room::Place;
use crate::store::{Store, StoreError, UploadId};

/// Bytes of the largest blob.
pub const BLOB_BYTES: u64 = 256 << 20;

/// A blob on its way in. Unless it was finished, what came of it is dropped with it, or kept to be resumed.
pub struct Upload {
    store: Arc<dyn Store>,
    workspace: WorkspaceId,
    blob: BlobRef,
    /// Where the bytes go; `None` if the workspace has the blob already, then they are only checked.
    id: Option<UploadId>,
    /// Whether it is the one of its blob that can be resumed.
    claim: Option<Claim>,
    /// The room that it holds in its workspace.
    room: Option<Held>,
    hasher: Sha256,
    came: u64,
    waiting: BytesMut,
    chunks: u32,
    place: Place,
}

/// How much of a blob the server has.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Received {
    /// How many bytes, from its beginning.
    pub bytes: u64,
    /// Whether a call is uploading it.
    pub is_in_progress: bool,
}

impl Dispatcher {
    /// A place for an upload, which is taken before anything of it is known.
    ///
    /// # Errors
    /// When the server takes no more.
    pub async fn upload_place(&self, peer: &Peer) -> Result<Place, Refusal> {
        if self.closing.is_cancelled() {
            return Err(Refusal::denied(shutting_down()));
        }
        self.transfers.take_in_time(peer, 1).await.map_err(no_place)
    }

    /// How much of a blob there is.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn received(&self, workspace: WorkspaceId, blob: BlobRef) -> Result<Received, StoreError> {
        let is_in_progress = self.uploads.is_taken(&workspace, blob.sha256);
        let sizes = self.store.blob_sizes(workspace.clone(), vec![blob.sha256]).await?;
        let bytes = match sizes.first().copied().flatten() {
            Some(size) => size,
            None => self.store.unfinished_upload(workspace, blob).await?.map_or(0, |found| found.bytes),
        };
        Ok(Received { bytes, is_in_progress })
    }

    /// Begins to take a blob, or goes on behind the bytes before `offset`; from an agent, under the lease whose secret has this
    /// digest, and then also where the workspace has no room.
    ///
    /// # Errors
    /// When it is announced too large, the lease is lost, the workspace has no room, or there is nothing to resume there.
    pub async fn upload(
        &self,
        place: Place,
        workspace: WorkspaceId,
        (blob, offset): (BlobRef, u64),
        (lease, quota): (Option<Sha256Digest>, &CallQuota),
    ) -> Result<Upload, Refusal> {
        if blob.size_bytes > BLOB_BYTES {
            return Err(Refusal::denied(too_large(&blob)));
        }
        if lease.is_some() && self.store.lease(workspace.clone()).await?.secret != lease {
            let failure = Failure::new(Reason::LeaseLost, "the lease of the upload is not in force")
                .hint("watch the workspace again, then upload under the new lease");
            return Err(Refusal::denied(failure));
        }
        let sizes = self.store.blob_sizes(workspace.clone(), vec![blob.sha256]).await?;
        let known = sizes.first().copied().flatten();
        // An agent's blobs belong to what is under way.
        if known.is_none() && lease.is_none() {
            self.check_disk()?;
        }
        let mut upload = Upload {
            store: Arc::clone(&self.store),
            id: None,
            claim: None,
            room: None,
            hasher: Sha256::new(),
            came: 0,
            waiting: BytesMut::new(),
            chunks: 0,
            place,
            workspace,
            blob,
        };
        if let Some(size) = known {
            return upload.after(offset, size).await;
        }
        // An upload that is resumed is counted since it began.
        if offset == 0 && lease.is_none() {
            upload.room = self.room_for_blob(quota, &upload.workspace, blob).await?;
        }
        // What fits into one chunk is sent again as fast.
        let is_large = blob.size_bytes > CHUNK_BYTES as u64;
        upload.claim = if is_large { self.uploads.take(&upload.workspace, blob.sha256) } else { None };
        if offset > 0 {
            if is_large && upload.claim.is_none() {
                return Err(Refusal::denied(in_progress(&blob)));
            }
            let found = self.store.unfinished_upload(upload.workspace.clone(), blob).await?;
            upload.id = found.map(|found| found.upload);
            return upload.after(offset, found.map_or(0, |found| found.bytes)).await;
        }
        let id = UploadId(mint::uuid_at(self.clock.now()));
        if upload.claim.is_some() {
            self.store.claim_upload(id, upload.workspace.clone(), blob).await?;
            // From now on the store counts it.
            upload.room = None;
        }
        upload.id = Some(id);
        Ok(upload)
    }

    /// Keeps contents of a batch as blobs; when this answers, they are durable. Nothing is kept for the retry of a batch that is stored:
    /// the answer is that batch, whatever room there is.
    ///
    /// # Errors
    /// When the server takes no more, the request id has another content, or the store fails.
    pub async fn keep_contents(
        &self,
        peer: &Peer,
        submission: &Submission,
        contents: Vec<(BlobRef, Bytes)>,
    ) -> Result<Option<BatchRecord>, Refusal> {
        if contents.is_empty() {
            return Ok(None);
        }
        if let Some(stored) = self.stored_before(submission).await? {
            return Ok(Some(stored));
        }
        for (blob, bytes) in contents {
            self.keep_content(peer, &submission.workspace, blob, bytes).await?;
        }
        Ok(None)
    }

    /// Keeps content of a batch as a blob; when this answers, it is durable.
    ///
    /// # Errors
    /// When the server takes no more, or the store fails.
    pub async fn keep_content(
        &self,
        peer: &Peer,
        workspace: &WorkspaceId,
        blob: BlobRef,
        bytes: Bytes,
    ) -> Result<(), Refusal> {
        let place = self.upload_place(peer).await?;
        let mut upload = self.upload(place, workspace.clone(), (blob, 0), (None, &peer.quota)).await?;
        upload.push(bytes).await?;
        upload.finish().await.map(drop)
    }
}

impl Upload {
    /// Goes on behind the first `offset` bytes, of which there are so many.
    async fn after(mut self, offset: u64, there: u64) -> Result<Self, Refusal> {
        if offset > there {
            return Err(Refusal::denied(behind(&self.blob, offset, there)));
        }
        let chunk_bytes = CHUNK_BYTES as u64;
        while self.came < offset {
            let index = u32::try_from(self.came / chunk_bytes).unwrap_or(u32::MAX);
            let mut chunk = self.chunk(index).await?;
            let left = offset - self.came;
            if left < chunk.len() as u64 {
                chunk.truncate(usize::try_from(left).unwrap_or(usize::MAX));
            }
            self.hasher.update(&chunk);
            self.came += chunk.len() as u64;
            if chunk.len() == CHUNK_BYTES {
                self.chunks = index + 1;
            } else if self.id.is_some() {
                // It is written again with what comes.
                self.waiting.extend_from_slice(&chunk);
            }
            self.place.moved();
        }
        Ok(self)
    }

    /// A chunk that came before: of the blob, or of what is not one yet.
    async fn chunk(&self, index: u32) -> Result<Bytes, Refusal> {
        let chunk = match self.id {
            Some(id) => self.store.upload_chunk(id, index).await?,
            None => self.store.blob_chunk(self.workspace.clone(), self.blob.sha256, index).await?,
        };
        let missing = || damaged(&self.blob.sha256, "a chunk is missing");
        Ok(chunk.filter(|chunk| !chunk.is_empty()).ok_or_else(missing)?)
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    /// When more come than were announced, or the store fails.
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), Refusal> {
        self.place.moved();
        self.came += bytes.len() as u64;
        if self.came > self.blob.size_bytes {
            let failure = self.other_size("nothing was kept; announce the size of the bytes that are sent");
            return Err(self.refused(failure).await);
        }
        self.hasher.update(&bytes);
        if self.id.is_some() {
            self.waiting.extend_from_slice(&bytes);
            while self.waiting.len() >= CHUNK_BYTES {
                let chunk = self.waiting.split_to(CHUNK_BYTES).freeze();
                self.put(chunk).await?;
            }
        }
        Ok(())
    }

    fn other_size(&self, hint: &str) -> Failure {
        let message = format!("the blob is announced with {} bytes, {} came", self.blob.size_bytes, self.came);
        Failure::new(Reason::HashFailed, message).field("blob.sizeBytes").hint(hint)
    }

    /// The refusal of bytes that are not those of the blob: nothing of them is kept.
    async fn refused(&mut self, failure: Failure) -> Refusal {
        if let (Some(id), Some(_)) = (self.id, &self.claim) {
            let released = self.store.release_upload(id, self.workspace.clone(), self.blob.sha256).await;
            if let Err(error) = released {
                return error.into();
            }
            self.id = None;
        }
        Refusal::denied(failure)
    }

    async fn put(&mut self, chunk: Bytes) -> Result<(), Refusal> {
        if let Some(id) = self.id {
            self.store.put_chunk(id, self.chunks, chunk).await?;
            self.chunks += 1;
        }
        Ok(())
    }

    /// Makes what came the workspace's blob; when this answers, it is durable.
    ///
    /// # Errors
    /// When the bytes are not what was announced, then nothing of them is kept; when they are too few, or the store fails.
    pub async fn finish(mut self) -> Result<BlobRef, Refusal> {
        // A call that its caller gave up ends like this too.
        if self.came < self.blob.size_bytes {
            let hint = match self.claim {
                Some(_) => "send the rest: StatUpload answers from which offset on",
                None => "nothing was kept; announce the size of the bytes that are sent",
            };
            return Err(Refusal::denied(self.other_size(hint)));
        }
        let found = digest_of(std::mem::take(&mut self.hasher));
        if found != self.blob.sha256 {
            let message = format!("the blob is announced with the digest {}, its bytes have {found}", self.blob.sha256);
            let failure = Failure::new(Reason::HashFailed, message).field("blob.sha256");
            let hint = "nothing was kept; announce the digest of the bytes that are sent";
            return Err(self.refused(failure.hint(hint)).await);
        }
        if !self.waiting.is_empty() {
            let rest = std::mem::take(&mut self.waiting).freeze();
            self.put(rest).await?;
        }
        // Taken first: once the store was asked, it may have done it, and nothing must be discarded any more.
        if let Some(id) = self.id.take() {
            self.store.commit_upload(id, self.workspace.clone(), self.blob).await?;
        }
        Ok(self.blob)
    }
}

impl Drop for Upload {
    fn drop(&mut self) {
        // What can be resumed stays.
        if let (Some(id), None) = (self.id, &self.claim) {
            self.store.discard_upload(id);
        }
    }
}

fn too_large(blob: &BlobRef) -> Failure {
    let message = format!("the blob is announced with {} bytes, at most {BLOB_BYTES} are taken", blob.size_bytes);
    Failure::new(Reason::TooLarge, message).detail(Detail::File).field("blob.sizeBytes")
}

fn behind(blob: &BlobRef, offset: u64, there: u64) -> Failure {
    let message =
        format!("the server has {there} bytes of the blob {}, and the upload begins at {offset}", blob.sha256);
    let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UploadOffset).field("start.offset");
    failure.hint("go on from the offset that StatUpload answers")
}

fn in_progress(blob: &BlobRef) -> Failure {
    let message = format!("another call uploads the blob {}", blob.sha256);
    let hint = "ask StatUpload later, or upload the blob from the start";
    Failure::new(Reason::ResourceExhausted, message).hint(hint)
}
