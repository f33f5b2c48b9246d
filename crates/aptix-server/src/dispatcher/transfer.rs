//! Blobs on their way out, and which there are. Bytes that no longer have their digest are never handed out.

use std::sync::Arc;

use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;
use sha2::{Digest, Sha256};
use tokio_util::bytes::Bytes;
use tokio_util::sync::CancellationToken;

use super::Dispatcher;
use super::refusal::{Refusal, full, not_found};
use super::stream::{FeedEnd, Items, Outlet, Stop};
use crate::caller::Peer;
use crate::room::{Full, Place};
use crate::store::StoreError;

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
            let Some(chunk) = chunk else {
                self.not_deleted(&workspace).await.map_err(stop)?;
                return Err(stop(damaged(&digest, "a chunk is missing")));
            };
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

pub(super) fn no_place(found: Full) -> Refusal {
    Refusal::denied(full("transfers", found))
}

pub(super) fn digest_of(hasher: Sha256) -> Sha256Digest {
    Sha256Digest::from_bytes(hasher.finalize().into())
}

pub(super) fn damaged(digest: &Sha256Digest, why: &str) -> StoreError {
    StoreError::Corrupt { what: format!("blob {digest}"), why: why.to_owned() }
}
