//! Keeps answers within one message. What a batch is submitted with always fits; what is left out of an answer that
//! grew by a report is, in this order, the diff, the content, the report's finer points, the author's texts, and all of
//! the report but its outcome.

use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::v1;
use prost::Message;

use crate::ids;

/// Room for what the server adds to a batch beside ids: its own id, state, revision, times.
const MARGIN: usize = 4096;

/// Room for what a message has around a batch.
const AROUND: usize = 1024;

/// The most that each id adds to a batch, with the lengths around it that grow.
const ID_BYTES: usize = 48;

/// Bytes that a batch may be submitted with.
const SUBMITTED: usize = MESSAGE_BYTES - AROUND - MARGIN;

/// Bytes of batches that one message surely carries.
pub(super) const ROOM: usize = MESSAGE_BYTES - AROUND;

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

/// Bytes of a batch that one message of a stream carries: streams are many, and their readers may be slow.
const TOLD_BYTES: usize = 64 << 10;

/// The batch, with as much of it as one message carries.
pub(super) fn fitted(mut batch: v1::Batch) -> v1::Batch {
    let steps = [without_diff, without_content, without_finer_points, without_texts, with_outcome_alone];
    batch.content_omitted |= fit(&mut batch, ROOM, &steps);
    batch
}

/// The batch, with as much of it as one message of a stream carries.
pub(super) fn told(mut batch: v1::Batch) -> v1::Batch {
    let steps = [without_content, without_diff, without_finer_points, with_outcome_alone, without_texts, without_files];
    batch.content_omitted |= fit(&mut batch, TOLD_BYTES, &steps);
    batch
}

/// The same, of a batch whose content was told before.
pub(super) fn told_again(mut batch: v1::Batch) -> v1::Batch {
    without_content(&mut batch);
    batch.content_omitted = true;
    told(batch)
}

/// The part of a batch, with as much of it as one message carries.
pub(super) fn fitted_part(mut part: v1::GetChangeResponse) -> v1::GetChangeResponse {
    part.content_omitted |= fit(&mut part, ROOM, &[without_report_details, without_part_content]);
    part
}

/// Leaves out one thing after the other until the message is small enough; answers whether anything was.
fn fit<M: Message>(message: &mut M, room: usize, steps: &[fn(&mut M)]) -> bool {
    for (done, leave_out) in steps.iter().enumerate() {
        if message.encoded_len() <= room {
            return done > 0;
        }
        leave_out(message);
    }
    true
}

fn without_diff(batch: &mut v1::Batch) {
    if let Some(report) = &mut batch.report {
        report.diff_omitted = report.diff_omitted || !report.diff.is_empty();
        report.diff.clear();
    }
}

fn without_content(batch: &mut v1::Batch) {
    if let Some(edit) = &mut batch.edit {
        // Without its action nothing would tell a quote from an edit of its file.
        edit.files.retain(|file| !matches!(file.action, Some(v1::file_patch::Action::Quote(_))));
    }
    for file in batch.edit.iter_mut().flat_map(|edit| &mut edit.files) {
        file.action = None;
    }
}

fn without_finer_points(batch: &mut v1::Batch) {
    if let Some(report) = &mut batch.report {
        report.files.clear();
        report.warnings.clear();
        report.failures.truncate(1);
        for failure in &mut report.failures {
            failure.nearest.clear();
            failure.next_action = None;
        }
    }
}

fn without_texts(batch: &mut v1::Batch) {
    let Some(edit) = &mut batch.edit else { return };
    edit.label.clear();
    edit.key.clear();
    for file in &mut edit.files {
        file.label.clear();
        file.key.clear();
    }
}

fn without_files(batch: &mut v1::Batch) {
    batch.edit = None;
}

fn with_outcome_alone(batch: &mut v1::Batch) {
    if let Some(report) = &mut batch.report {
        report.failures.clear();
    }
}

fn without_report_details(part: &mut v1::GetChangeResponse) {
    if let Some(file) = &mut part.file_report {
        file.warnings.clear();
        file.changes.clear();
    }
}

fn without_part_content(part: &mut v1::GetChangeResponse) {
    if let Some(file) = &mut part.file {
        file.action = None;
    }
}
