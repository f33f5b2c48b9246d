//! The files of a batch in the JSON object: each that was tried, with its status and that of its changes.

use std::borrow::Cow;

use serde::Serialize;

use super::words::{AskedFile, FileWords};
use super::{BatchResult, Failed};
use crate::report::{FileReport, FileStatus, Warning};
use crate::state::BatchState;

/// What became of a file.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct FileObject<'a> {
    file_patch_id: Option<String>,
    path: &'a str,
    doc_path: Option<Cow<'a, str>>,
    file_key: Option<&'a str>,
    file_label: Option<&'a str>,
    status: &'static str,
    renamed_to: Option<&'a str>,
    sha256_before: Option<String>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    normalized: Vec<&'static str>,
    warnings: Vec<FileWarning<'a>>,
    changes: Vec<ChangeObject<'a>>,
}

#[derive(Serialize, Debug)]
struct FileWarning<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct ChangeObject<'a> {
    change_id: Option<String>,
    change_key: Option<&'a str>,
    description: Option<&'a str>,
    failure: Option<usize>,
    tier: Option<&'static str>,
    candidates: Option<u32>,
    start_line: Option<u32>,
    end_line: Option<u32>,
}

/// A file of a batch.
#[derive(Clone, Copy)]
struct Place<'v, 'a> {
    failed: &'v Failed,
    index: usize,
    words: &'v FileWords<'a>,
}

/// The files of a batch, in its order.
pub(super) fn file_objects<'a>(result: &BatchResult<'a>) -> Vec<FileObject<'a>> {
    let failed = &result.failed();
    let files = result.words.files.iter().enumerate().map(|(index, words)| Place { failed, index, words });
    let objects = files.map(|place| match (result.report_of(place.index), &place.words.asked) {
        (Some(report), _) => done(result, place, report),
        (None, Some(asked)) => tried(result, place, asked),
        (None, None) => unknown(result, place),
    });
    objects.collect()
}

/// The word for a file's status.
#[must_use]
pub fn status(result: &BatchResult<'_>, failed: &Failed, index: usize) -> &'static str {
    if let Some(report) = result.report_of(index) {
        return report.status.word();
    }
    let asked = || result.words.files.get(index)?.asked.as_ref()?.status;
    match (result.state(), failed.files.contains(&index)) {
        // The report of a batch with very many files may be without them.
        (BatchState::Applied, is_failed) => asked().map_or(not_applied(is_failed), FileStatus::word),
        (_, is_failed) => not_applied(is_failed),
    }
}

const fn not_applied(is_failed: bool) -> &'static str {
    if is_failed { "failed" } else { "not_applied" }
}

/// A file of which nothing but its author's words is known.
fn unknown<'a>(result: &BatchResult<'a>, place: Place<'_, 'a>) -> FileObject<'a> {
    let Place { failed, index, words } = place;
    FileObject {
        file_patch_id: result.file_id(index).map(|id| id.to_string()),
        path: "",
        doc_path: None,
        file_key: words.key,
        file_label: words.label,
        status: status(result, failed, index),
        renamed_to: None,
        sha256_before: None,
        sha256: None,
        size_bytes: None,
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: changes(result, place, None),
    }
}

/// A file with what was done to it, or would be.
fn done<'a>(result: &BatchResult<'a>, place: Place<'_, 'a>, report: &'a FileReport) -> FileObject<'a> {
    let warning = |warning: &'a Warning| FileWarning { code: &warning.code, message: &warning.message };
    FileObject {
        path: &report.path,
        doc_path: Some(Cow::Borrowed(report.doc_path.as_str())).filter(|key| !key.is_empty()),
        renamed_to: report.renamed_to.as_deref(),
        sha256_before: report.sha256_before.map(String::from),
        sha256: report.written.map(|written| written.sha256.into()),
        size_bytes: report.written.map(|written| written.size_bytes),
        normalized: report.normalized.iter().map(|normalization| normalization.word()).collect(),
        warnings: report.warnings.iter().map(warning).collect(),
        changes: changes(result, place, Some(report)),
        ..unknown(result, place)
    }
}

/// A file to which nothing has happened.
fn tried<'a>(result: &BatchResult<'a>, place: Place<'_, 'a>, asked: &AskedFile<'a>) -> FileObject<'a> {
    let doc_path = asked.doc_path.clone();
    FileObject { path: asked.path, doc_path, renamed_to: asked.moved_to, ..unknown(result, place) }
}

fn changes<'a>(
    result: &BatchResult<'a>,
    Place { failed, index, words }: Place<'_, 'a>,
    report: Option<&FileReport>,
) -> Vec<ChangeObject<'a>> {
    let objects = (0..words.change_count).map(|change| {
        let certificate = report.and_then(|report| report.changes.get(change));
        let called = words.of_change(change);
        ChangeObject {
            change_id: result.change_id(index, change).map(|id| id.to_string()),
            change_key: called.key,
            description: called.description,
            failure: failed.changes.get(&(index, change)).copied(),
            tier: certificate.map(|found| found.tier.word()),
            candidates: certificate.map(|found| found.candidates),
            start_line: certificate.map(|found| found.start_line),
            end_line: certificate.map(|found| found.end_line),
        }
    });
    objects.collect()
}
