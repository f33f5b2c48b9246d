//! Keeps batches within one message. What a batch is submitted with always fits; what is left out of an answer that
//! grew by a report is, in this order, the diff, the content, and the report's finer points.

use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::v1;
use prost::Message;

use crate::ids;

/// Room for what a message has around a batch, and for what the server adds to one.
const MARGIN: usize = 4096;

/// The most that each id adds to a batch, with the lengths around it that grow.
const ID_BYTES: usize = 48;

/// Bytes of a batch that one message surely carries.
pub(super) const ROOM: usize = MESSAGE_BYTES - MARGIN;

/// Refuses an edit that would not fit into one message together with its ids.
pub(super) fn check(edit_bytes: usize, batch: &Batch) -> Result<(), Failure> {
    let entries: usize = batch
        .files
        .iter()
        .map(|patch| match &patch.edit {
            aptix_model::batch::FileEdit::LinePatch(patch) => 1 + patch.changes.len(),
            aptix_model::batch::FileEdit::CreateFile(_) => 1,
        })
        .sum();
    let bytes = edit_bytes.saturating_add(entries.saturating_mul(ID_BYTES));
    if bytes <= ROOM && entries <= ids::ENTRIES {
        return Ok(());
    }
    let message = format!("the batch takes up to {bytes} bytes with its {entries} ids, a message carries {ROOM}");
    Err(Failure::new(Reason::TooLarge, message)
        .detail(Detail::Document)
        .field("edit")
        .hint("upload large content as blobs, or split the batch"))
}

/// The batch, with as much of it as one message carries.
pub(super) fn fitted(mut batch: v1::Batch) -> v1::Batch {
    for leave_out in [without_diff, without_content, without_finer_points] {
        if batch.encoded_len() <= ROOM {
            break;
        }
        leave_out(&mut batch);
    }
    batch
}

fn without_diff(batch: &mut v1::Batch) {
    if let Some(report) = &mut batch.report {
        report.diff_omitted = report.diff_omitted || !report.diff.is_empty();
        report.diff.clear();
    }
}

fn without_content(batch: &mut v1::Batch) {
    for file in batch.edit.iter_mut().flat_map(|edit| &mut edit.files) {
        file.action = None;
    }
}

fn without_finer_points(batch: &mut v1::Batch) {
    if let Some(report) = &mut batch.report {
        report.files.clear();
        report.failures.truncate(1);
        report.failures.iter_mut().for_each(|failure| failure.nearest.clear());
    }
}
