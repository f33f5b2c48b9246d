//! The files of a batch in the JSON object: each that was tried, with what became of it and of its changes.

use std::borrow::Cow;

use aptix_model::batch::{FileEdit, GitKind, Presence, Target};
use aptix_model::report::{FileReport, FileStatus, Warning};
use aptix_model::state::BatchState;
use serde::Serialize;

use super::view::{Asked, BatchView, Failed, FileWords};

/// What became of a file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileAnswer<'a> {
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
    warnings: Vec<WarningAnswer<'a>>,
    changes: Vec<ChangeAnswer<'a>>,
}

#[derive(Serialize)]
struct WarningAnswer<'a> {
    code: &'a str,
    message: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangeAnswer<'a> {
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
struct Place<'a, 'v> {
    failed: &'v Failed,
    index: usize,
    words: FileWords<'a>,
}

/// The files of a batch, in its order.
pub(super) fn file_answers<'a>(view: &BatchView<'a>) -> Vec<FileAnswer<'a>> {
    let failed = &view.failed();
    let files = view.subject.files().into_iter().enumerate().map(|(index, words)| Place { failed, index, words });
    let answers = files.map(|place| match (view.report_of(place.index), place.words.asked) {
        (Some(report), _) => done(view, place, report),
        (None, Some(asked)) => tried(view, place, asked),
        (None, None) => unknown(view, place),
    });
    answers.collect()
}

/// What became of a file: its status, its word.
pub(super) fn status(view: &BatchView<'_>, failed: &Failed, index: usize, asked: Option<Asked<'_>>) -> &'static str {
    if let Some(report) = view.report_of(index) {
        return report.status.word();
    }
    match (view.state(), asked) {
        // The report of a batch with very many files may be without them.
        (BatchState::Applied, Some(Asked::Patch(patch))) => asked_status(&patch.edit).word(),
        _ if failed.files.contains(&index) => "failed",
        _ => "not_applied",
    }
}

/// A file of which nothing but its author's words is known.
fn unknown<'a>(view: &BatchView<'a>, place: Place<'a, '_>) -> FileAnswer<'a> {
    let Place { failed, index, words } = place;
    FileAnswer {
        file_patch_id: view.file_id(index).map(|id| id.to_string()),
        path: "",
        doc_path: None,
        file_key: words.key,
        file_label: words.label,
        status: status(view, failed, index, words.asked),
        renamed_to: None,
        sha256_before: None,
        sha256: None,
        size_bytes: None,
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: changes(view, place, None),
    }
}

/// A file with what was done to it, or would be.
fn done<'a>(view: &BatchView<'a>, place: Place<'a, '_>, report: &'a FileReport) -> FileAnswer<'a> {
    let warning = |warning: &'a Warning| WarningAnswer { code: &warning.code, message: &warning.message };
    FileAnswer {
        path: &report.path,
        doc_path: Some(Cow::Borrowed(report.doc_path.as_str())).filter(|key| !key.is_empty()),
        renamed_to: report.renamed_to.as_deref(),
        sha256_before: report.sha256_before.map(String::from),
        sha256: report.written.map(|written| written.sha256.into()),
        size_bytes: report.written.map(|written| written.size_bytes),
        normalized: report.normalized.iter().map(|normalization| normalization.word()).collect(),
        warnings: report.warnings.iter().map(warning).collect(),
        changes: changes(view, place, Some(report)),
        ..unknown(view, place)
    }
}

/// A file to which nothing has happened.
fn tried<'a>(view: &BatchView<'a>, place: Place<'a, '_>, asked: Asked<'a>) -> FileAnswer<'a> {
    let (path, doc_path) = asked_of(view, asked);
    FileAnswer { path, doc_path, renamed_to: asked.moved_to(), ..unknown(view, place) }
}

/// The path of a file that was not looked at, and its lower-case key if the root is known.
pub(super) fn named<'a>(view: &BatchView<'_>, target: &'a Target) -> (&'a str, Option<Cow<'a, str>>) {
    let text = target.as_str();
    match target {
        Target::DocPath(_) => (view.paths.of_key(text), Some(Cow::Borrowed(text))),
        Target::Path(_) | Target::Readings(_) => (text, view.paths.key(text, view.root).map(Cow::Owned)),
    }
}

/// As [`named`], of the file that something is asked of.
pub(super) fn asked_of<'a>(view: &BatchView<'_>, asked: Asked<'a>) -> (&'a str, Option<Cow<'a, str>>) {
    match asked {
        Asked::Patch(patch) => named(view, &patch.target),
        Asked::Refused(file) => (&file.path, file.doc_path.as_deref().map(Cow::Borrowed)),
    }
}

fn changes<'a>(
    view: &BatchView<'a>,
    Place { failed, index, words }: Place<'a, '_>,
    report: Option<&FileReport>,
) -> Vec<ChangeAnswer<'a>> {
    let answers = (0..words.change_count).map(|change| {
        let certificate = report.and_then(|report| report.changes.get(change));
        let (change_key, description) = words.of_change(change);
        ChangeAnswer {
            change_id: view.change_id(index, change).map(|id| id.to_string()),
            change_key,
            description,
            failure: failed.changes.get(&(index, change)).copied(),
            tier: certificate.map(|found| found.tier.word()),
            candidates: certificate.map(|found| found.candidates),
            start_line: certificate.map(|found| found.start_line),
            end_line: certificate.map(|found| found.end_line),
        }
    });
    answers.collect()
}

/// What becomes of a file that was not read yet, as far as the edit alone determines it.
fn asked_status(edit: &FileEdit) -> FileStatus {
    let by_git = |first: &GitKind, last: &GitKind| match (first, last) {
        (_, GitKind::Delete) => FileStatus::Deleted,
        (GitKind::Create | GitKind::Copy { .. }, _) => FileStatus::Created,
        _ => FileStatus::Modified,
    };
    match edit {
        _ if edit.moved_to().is_some() => FileStatus::Renamed,
        FileEdit::DeleteFile => FileStatus::Deleted,
        FileEdit::GitPatch(patch) => by_git(&patch.kind, &patch.kind),
        FileEdit::GitSeries(parts) => parts
            .first()
            .zip(parts.last())
            .map_or(FileStatus::Modified, |(first, last)| by_git(&first.kind, &last.kind)),
        FileEdit::CreateFile(_) => FileStatus::Created,
        FileEdit::WriteFile(write) if write.presence != Presence::Present => FileStatus::Created,
        FileEdit::WriteFile(_)
        | FileEdit::LinePatch(_)
        | FileEdit::SearchPatch(_)
        | FileEdit::EditorCommands(_)
        | FileEdit::Replacements(_)
        | FileEdit::AnchorEdit(_)
        | FileEdit::ContextPatch(_)
        | FileEdit::LocalChange => FileStatus::Modified,
    }
}
