//! Which uploads that can be resumed go on now: of each blob one, so that no two calls write the same chunks.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, PoisonError};

use aptix_model::digest::Sha256Digest;
use aptix_model::id::WorkspaceId;

/// The blobs of which an upload goes on that can be resumed.
#[derive(Debug, Default)]
pub(super) struct Claims(Mutex<HashSet<(WorkspaceId, Sha256Digest)>>);

/// The right to be the upload of a blob that can be resumed.
pub(super) struct Claim {
    claims: Arc<Claims>,
    blob: (WorkspaceId, Sha256Digest),
}

impl Claims {
    /// The claim of a blob, unless another upload has it.
    pub(super) fn take(self: &Arc<Self>, workspace: &WorkspaceId, digest: Sha256Digest) -> Option<Claim> {
        let blob = (workspace.clone(), digest);
        let is_free = self.0.lock().unwrap_or_else(PoisonError::into_inner).insert(blob.clone());
        is_free.then(|| Claim { claims: Arc::clone(self), blob })
    }

    /// Whether an upload has the claim of a blob.
    pub(super) fn is_taken(&self, workspace: &WorkspaceId, digest: Sha256Digest) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).contains(&(workspace.clone(), digest))
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        self.claims.0.lock().unwrap_or_else(PoisonError::into_inner).remove(&self.blob);
    }
}
