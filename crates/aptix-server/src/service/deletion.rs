//! The deletion of a workspace on the wire.

use aptix_model::failure::Failure;
use aptix_model::wire::{self, v1};

use crate::dispatcher::deletion::{Deleted, Preview};
use crate::store::deletion::Deletion;

/// Writes what a call did.
pub(super) fn deleted(deleted: Deleted) -> v1::DeleteWorkspaceResponse {
    let Deleted { tokens, deletion } = deleted;
    v1::DeleteWorkspaceResponse {
        batches: deletion.batches,
        bytes: deletion.bytes,
        open_batches: deletion.open_batches,
        open_batch_ids: Vec::new(),
        tokens: tokens.into_iter().map(|name| name.to_string()).collect(),
        has_begun: true,
        has_more: !deletion.is_done,
    }
}

/// Writes what a call would do.
pub(super) fn preview(preview: Preview) -> v1::DeleteWorkspaceResponse {
    let Preview { has_begun, bytes, open_batches, named } = preview;
    v1::DeleteWorkspaceResponse {
        bytes,
        open_batches,
        open_batch_ids: named.iter().map(ToString::to_string).collect(),
        has_begun,
        has_more: true,
        ..v1::DeleteWorkspaceResponse::default()
    }
}

/// Reads what a call did.
pub(super) fn read_deleted(response: &v1::DeleteWorkspaceResponse) -> Result<Deleted, Failure> {
    let v1::DeleteWorkspaceResponse { batches, bytes, open_batches, tokens, has_more, .. } = response;
    let deletion = Deletion { batches: *batches, bytes: *bytes, open_batches: *open_batches, is_done: !has_more };
    let tokens = tokens.iter().map(|name| wire::id("tokens", name)).collect::<Result<_, _>>()?;
    Ok(Deleted { tokens, deletion })
}

/// Reads what a call would do.
pub(super) fn read_preview(response: &v1::DeleteWorkspaceResponse) -> Result<Preview, Failure> {
    let named = response.open_batch_ids.iter().map(|id| wire::id("openBatchIds", id)).collect::<Result<_, _>>()?;
    let v1::DeleteWorkspaceResponse { has_begun, bytes, open_batches, .. } = *response;
    Ok(Preview { has_begun, bytes, open_batches, named })
}
