//! One file patch or change of a batch as a message: that entry alone, with its own report, failures and diff.

use aptix_model::failure::Failure;
use aptix_model::report::{FileReport, Report, diff_part};
use aptix_model::wire::v1;

use crate::dispatcher::read::Part;

/// The answer to a request for a part of a batch.
pub(super) fn message(part: Part) -> v1::GetChangeResponse {
    let Part { batch: mut record, file, change } = part;
    let report = record.report.take();
    let state = v1::BatchState::from(record.state).into();
    record.batch.quotes.clear();
    if let Some(patch) = record.batch.files.get(file).cloned() {
        record.batch.files = vec![patch];
        record.ids = record.ids.get(file).cloned().into_iter().collect();
    }
    if let (Some(change), Some(patch), Some(ids)) = (change, record.batch.files.first_mut(), record.ids.first_mut()) {
        patch.edit.keep_change(change);
        ids.changes = ids.changes.get(change).copied().into_iter().collect();
    }
    let (batch_id, content_omitted) = (record.id.to_string(), record.removed_content.is_some());
    let mut edit = v1::Batch::from(record).edit.unwrap_or_default();
    let Became { file_report, failures, diff } = report.map(|report| became(report, file, change)).unwrap_or_default();
    v1::GetChangeResponse {
        batch_id,
        state,
        file: edit.files.pop(),
        file_report: file_report.map(Into::into),
        file_index: position(file),
        change_index: change.map(position),
        content_omitted,
        failures: failures.into_iter().map(Into::into).collect(),
        diff,
    }
}

/// What became of a part.
#[derive(Default)]
struct Became {
    file_report: Option<FileReport>,
    failures: Vec<Failure>,
    diff: String,
}

fn became(mut report: Report, file: usize, change: Option<usize>) -> Became {
    let is_about = |failure: &Failure| {
        failure.file_index == Some(file) && change.is_none_or(|change| failure.change_index == Some(change))
    };
    let diff = diff_part::of_file(&report, file).to_owned();
    let mut file_report = (file < report.files.len()).then(|| report.files.swap_remove(file));
    let diff = match (change, &mut file_report) {
        (Some(change), Some(file)) => {
            file.changes = file.changes.get(change).copied().into_iter().collect();
            file.changes.first().map_or_else(String::new, |change| diff_part::of_change(&diff, change))
        }
        _ => diff,
    };
    Became { file_report, failures: report.failures.into_iter().filter(is_about).collect(), diff }
}

fn position(index: usize) -> u32 {
    u32::try_from(index).unwrap_or(u32::MAX)
}
