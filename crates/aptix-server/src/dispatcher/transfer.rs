//! Blobs on their way in and out. Bytes become a blob only when all of them came and have the announced digest; bytes
//! that no longer have it are never handed out.

use std::sync::Arc;

use aptix_model::batch::BlobRef;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::CHUNK_BYTES;
use aptix_model::reason::{Detail, Reason};
use sha2::{Digest, Sha256};
use tokio_util::bytes::{Bytes, BytesMut};
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::refusal::{Refusal, full, not_found, shutting_down};
use super::stream::{FeedEnd, Items, Outlet, Stop};
use crate::caller::Peer;
use crate::mint;
use crate::room::{Full, Place};
use crate::store::{Store, StoreError, UploadId};

/// Bytes of the largest blob.
pub const BLOB_BYTES: u64 = 256 << 20;

/// A blob on its way in. What came of it is dropped with it, unless it was finished.
pub struct Upload {
    store: Arc<dyn Store>,
    workspace: WorkspaceId,
    blob: BlobRef,
    /// Where the bytes go; `None` if the workspace has the blob already, then they are only checked.
    id: Option<UploadId>,
    hasher: Sha256,
    came: u64,
    waiting: BytesMut,
    chunks: u32,
    place: Place,
}

impl Dispatcher {
    /// Which of these blobs the workspace does not have, in the order asked.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn missing_blobs(
        &self,
        workspace: WorkspaceId,
        digests: Vec<Sha256Digest>,
    ) -> Result<Vec<Sha256Digest>, StoreError> {
        let sizes = self.store.blob_sizes(workspace, digests.clone()).await?;
        Ok(digests.into_iter().zip(sizes).filter(|(_, size)| size.is_none()).map(|(digest, _)| digest).collect())
    }

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

    /// Begins to take a blob; from an agent, under the lease whose secret has this digest.
    ///
    /// # Errors
    /// When it is announced too large, or the lease is lost.
    pub async fn upload(
        &self,
        place: Place,
        workspace: WorkspaceId,
        blob: BlobRef,
        lease: Option<Sha256Digest>,
    ) -> Result<Upload, Refusal> {
        if blob.size_bytes > BLOB_BYTES {
            let message =
                format!("the blob is announced with {} bytes, at most {BLOB_BYTES} are taken", blob.size_bytes);
            let failure = Failure::new(Reason::TooLarge, message).detail(Detail::File);
            return Err(Refusal::denied(failure.field("blob.sizeBytes")));
        }
        if lease.is_some() && self.store.lease(workspace.clone()).await?.secret != lease {
            let failure = Failure::new(Reason::LeaseLost, "the lease of the upload is not in force")
                .hint("watch the workspace again, then upload under the new lease");
            return Err(Refusal::denied(failure));
        }
        let sizes = self.store.blob_sizes(workspace.clone(), vec![blob.sha256]).await?;
        let known = sizes.first().copied().flatten().is_some();
        Ok(Upload {
            store: Arc::clone(&self.store),
            workspace,
            blob,
            id: (!known).then(|| UploadId(mint::uuid())),
            hasher: Sha256::new(),
            came: 0,
            waiting: BytesMut::new(),
            chunks: 0,
            place,
        })
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
        let mut upload = self.upload(self.upload_place(peer).await?, workspace.clone(), blob, None).await?;
        upload.push(bytes).await?;
        upload.finish().await.map(drop)
    }

    /// Hands out a blob, chunk by chunk.
    ///
    /// # Errors
    /// When the workspace has no such blob, or the server takes no more.
    pub async fn download(
        self: &Arc<Self>,
        peer: &Peer,
        workspace: WorkspaceId,
        digest: Sha256Digest,
    ) -> Result<Items<Bytes>, Refusal> {
        let place = self.transfers.take_in_time(peer, 1).await.map_err(no_place)?;
        let sizes = self.store.blob_sizes(workspace.clone(), vec![digest]).await?;
        let Some(size) = sizes.first().copied().flatten() else {
            return Err(Refusal::denied(not_found(&workspace, &format!("blob {digest}"))));
        };
        let (outlet, stream) = Outlet::open(CancellationToken::new(), self.ending.clone()).await?;
        let this = Arc::clone(self);
        self.tasks.spawn(async move {
            let end = tokio::select! {
                handed_out = this.hand_out(workspace, digest, size, &outlet, &place) => handed_out.err().flatten(),
                () = place.cut.cancelled() => Some(FeedEnd::Slow),
            };
            outlet.finish(end);
            drop(place);
        });
        Ok(stream)
    }

    async fn hand_out(
        &self,
        workspace: WorkspaceId,
        digest: Sha256Digest,
        size: u64,
        outlet: &Outlet<Bytes>,
        place: &Place,
    ) -> Result<(), Stop> {
        if size == 0 {
            return self.hand_over(outlet, Bytes::new()).await;
        }
        let stop = |error: StoreError| Some(error.into());
        let (mut hasher, mut left) = (Sha256::new(), size);
        for index in 0.. {
            let chunk = self.store.blob_chunk(workspace.clone(), digest, index).await.map_err(stop)?;
            let chunk = chunk.ok_or_else(|| stop(damaged(&digest, "a chunk is missing")))?;
            hasher.update(&chunk);
            left = left.saturating_sub(chunk.len() as u64);
            // The last chunk is held back until the whole is known to be right.
            if left == 0 && digest_of(hasher.clone()) != digest {
                return Err(stop(damaged(&digest, "its bytes have another digest")));
            }
            self.hand_over(outlet, chunk).await?;
            place.moved();
            if left == 0 {
                break;
            }
        }
        Ok(())
    }
}

impl Upload {
    /// Takes the next bytes.
    ///
    /// # Errors
    /// When more come than were announced, or the store fails.
    pub async fn push(&mut self, bytes: Bytes) -> Result<(), Refusal> {
        self.place.moved();
        self.came += bytes.len() as u64;
        if self.came > self.blob.size_bytes {
            return Err(self.other_size());
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

    fn other_size(&self) -> Refusal {
        let message = format!("the blob is announced with {} bytes, {} came", self.blob.size_bytes, self.came);
        let failure = Failure::new(Reason::HashFailed, message).field("blob.sizeBytes");
        Refusal::denied(failure.hint("nothing was kept; announce the size of the bytes that are sent"))
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
    /// When the bytes are not what was announced, or the store fails; then nothing is kept.
    pub async fn finish(mut self) -> Result<BlobRef, Refusal> {
        if self.came != self.blob.size_bytes {
            return Err(self.other_size());
        }
        let found = digest_of(std::mem::take(&mut self.hasher));
        if found != self.blob.sha256 {
            let message = format!("the blob is announced with the digest {}, its bytes have {found}", self.blob.sha256);
            let failure = Failure::new(Reason::HashFailed, message).field("blob.sha256");
            let hint = "nothing was kept; announce the digest of the bytes that are sent";
            return Err(Refusal::denied(failure.hint(hint)));
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
        if let Some(id) = self.id {
            self.store.discard_upload(id);
        }
    }
}

fn no_place(found: Full) -> Refusal {
    Refusal::denied(full("transfers", found))
}

fn digest_of(hasher: Sha256) -> Sha256Digest {
    Sha256Digest::from_bytes(hasher.finalize().into())
}

fn damaged(digest: &Sha256Digest, why: &str) -> StoreError {
    StoreError::Corrupt { what: format!("blob {digest}"), why: why.to_owned() }
}
