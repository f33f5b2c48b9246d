//! The bytes that a batch takes in a store.

use aptix_model::record::BatchRecord;

use super::records::batch_record::{encode_batch, encode_state};

/// The bytes of a batch as every store counts them: of the records that the embedded store has of it, with its report and its plan,
/// without the blobs that it names.
#[must_use]
pub fn stored_bytes(batch: &BatchRecord) -> u64 {
    (encode_batch(batch).len() + encode_state(batch).len()) as u64
}
