//! Refuses an edit that would not fit into one message once it has ids.

use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::fit::ROOM;

use crate::ids;

/// Room for what the server adds to a batch beside ids: its own id, state, revision, times.
const MARGIN: usize = 4096;

/// The most that each id adds to a batch, with the lengths around it that grow.
const ID_BYTES: usize = 48;

/// Bytes that a batch may be submitted with.
const SUBMITTED: usize = ROOM - MARGIN;

/// Refuses an edit that would not fit into one message together with its ids.
pub(super) fn check(edit_bytes: usize, batch: &Batch) -> Result<(), Failure> {
    let entries: usize = batch.files.iter().map(|patch| 1 + patch.edit.change_count()).sum();
    let bytes = edit_bytes.saturating_add(entries.saturating_mul(ID_BYTES));
    if bytes <= SUBMITTED && entries <= ids::ENTRIES {
        return Ok(());
    }
    let message = format!("the batch takes up to {bytes} bytes with its {entries} ids, a message carries {SUBMITTED}");
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::Document)
        .field("edit")
        .hint("upload large content as blobs, or split the batch"))
}
