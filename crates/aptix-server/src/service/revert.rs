//! Taking a batch back: decodes the request, and bounds the batch that does it to what a message carries.

use std::sync::Arc;
use std::time::Instant;

use aptix_model::failure::Failure;
use aptix_model::record::BatchRecord;
use aptix_model::wire::{self, v1};

use super::submitted::{check_size, edit_bytes};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::revert::{Reversal, Reverts};
use crate::dispatcher::submit::log_repeated;

/// Stores the batch that takes another one back, or answers the one that is stored under the request id.
pub(super) async fn revert(
    dispatcher: &Arc<Dispatcher>,
    request: v1::RevertBatchRequest,
    began: Instant,
) -> Result<BatchRecord, Refusal> {
    match dispatcher.reversal(read(request)?).await? {
        Reverts::Before(stored) => {
            log_repeated(&stored, began);
            Ok(*stored)
        }
        Reverts::Anew(record) => {
            check_size(edit_bytes(&record.batch), &record.batch)?;
            dispatcher.keep(*record, began).await
        }
    }
}

fn read(request: v1::RevertBatchRequest) -> Result<Reversal, Failure> {
    let given = |text: String| Some(text).filter(|text| !text.is_empty());
    Ok(Reversal {
        workspace: wire::id("workspaceId", &request.workspace_id)?,
        of: wire::id("batchId", &request.batch_id)?,
        request_id: wire::id("requestId", &request.request_id)?,
        origin: request.origin.map(Into::into).unwrap_or_default(),
        reason: given(request.reason),
        author: given(request.author),
    })
}
