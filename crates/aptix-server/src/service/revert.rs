//! Taking a batch back: decodes the request, and bounds the batch that does it to what a message carries.

use std::sync::Arc;
use std::time::Instant;

use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::record::{BatchRecord, Sent};
use aptix_model::wire::{self, v1};

use super::submitted::{check_size, edit_bytes};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::revert::{Reversal, Reverts};
use crate::dispatcher::submit::log_repeated;
use crate::quota::CallQuota;

/// Stores the batch that takes another one back, or answers the one that is stored under the request id.
pub(super) async fn revert(
    dispatcher: &Arc<Dispatcher>,
    (request, sent): (v1::RevertBatchRequest, Sent),
    quota: &CallQuota,
    began: Instant,
) -> Result<BatchRecord, Refusal> {
    match dispatcher.reversal(read(request, sent)?).await? {
        Reverts::Before(stored) => {
            log_repeated(&stored, began);
            Ok(*stored)
        }
        Reverts::Anew(record) => {
            check_room(&record.batch)?;
            dispatcher.keep(*record, quota, began).await
        }
    }
}

/// Refuses a batch that takes another one back, and would not fit into one message together with its ids.
pub(super) fn check_room(batch: &Batch) -> Result<(), Failure> {
    check_size(edit_bytes(batch), batch)
        .map_err(|failure| failure.hint("edit the files instead, or ask the user to undo the batch on the workstation"))
}

fn read(request: v1::RevertBatchRequest, sent: Sent) -> Result<Reversal, Failure> {
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(Reversal {
        workspace: wire::id("workspaceId", &request.workspace_id)?,
        of: wire::id("batchId", &request.batch_id)?,
        request_id: wire::id("requestId", &request.request_id)?,
        origin: request.origin.map(Into::into).unwrap_or_default(),
        reason: given(request.reason),
        author: given(request.author),
        sent,
    })
}

#[cfg(test)]
mod tests {
    use aptix_model::batch::{FileEdit, FilePatch, Target};

    use super::*;

    /// A batch that is taken back can be neither split nor given in blobs.
    #[test]
    fn a_revert_that_is_too_large_names_what_is_possible() {
        let file =
            FilePatch { target: Target::Path("x".repeat(4 << 20)), key: None, label: None, edit: FileEdit::DeleteFile };
        let hint = check_room(&Batch { files: vec![file], ..Batch::default() }).unwrap_err().hint.unwrap();
        assert!(hint.contains("undo") && !hint.contains("split") && !hint.contains("blobs"), "{hint}");
    }
}
