//! The links between a batch and the batches that take it back.

use aptix_model::id::BatchId;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use super::{StoreError, Transition};

/// Undos and redos of one batch, each of the one before, that are followed.
const DEPTH: usize = 64;

/// The batch that a batch takes back with this step, if the step has it take one back.
pub(super) fn reverted(batch: &BatchRecord, step: &Transition) -> Option<BatchId> {
    batch.reverts().filter(|_| step.to == BatchState::Applied)
}

/// The batches whose `reverted_by` changes when the batch `by` takes `reverts` back: that batch, and the one that it took back
/// in its turn, which is in effect again, and so on. The chain ends at a batch whose record is damaged: it keeps no report of
/// another batch from being stored.
pub(super) fn changed(
    by: BatchId,
    reverts: Option<BatchId>,
    find: impl Fn(BatchId) -> Result<Option<BatchRecord>, StoreError>,
) -> Result<Vec<BatchRecord>, StoreError> {
    let (mut changed, mut next) = (Vec::new(), reverts);
    let (mut former, mut now) = (None, Some(by));
    while changed.len() < DEPTH
        && let Some(mut batch) = next.map(|id| readable(find(id))).transpose()?.flatten()
    {
        // A batch that another one took back stays so; the newest one counts for the batch that is taken back now.
        if !changed.is_empty() && batch.reverted_by != former {
            break;
        }
        batch.reverted_by = now;
        (former, now) = if now.is_some() { (Some(batch.id), None) } else { (None, Some(batch.id)) };
        next = batch.reverts();
        changed.push(batch);
    }
    Ok(changed)
}

/// A batch, unless its record is damaged.
fn readable(found: Result<Option<BatchRecord>, StoreError>) -> Result<Option<BatchRecord>, StoreError> {
    match found {
        Err(error @ StoreError::Corrupt { .. }) => {
            tracing::warn!(%error, "the batch that is taken back is not linked to the one that takes it back");
            Ok(None)
        }
        found => found,
    }
}
