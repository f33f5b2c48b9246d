//! What became of a batch, as the one JSON object with fixed keys that commands print and tools answer with.

use std::borrow::Cow;

use aptix_model::batch::{Batch, FileEdit, FilePatch, GitKind, Presence, Target};
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::id::BatchId;
use aptix_model::reason::Detail;
use aptix_model::record::FileIds;
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Report, Tier, Warning};
use aptix_model::state::BatchState;
use serde::Serialize;

use crate::apply::path_style::PathStyle;
use crate::apply::{Mode, Refusal};
use crate::present::description::described;

/// What is known about one batch, for people and programs.
pub struct BatchView<'a> {
    /// As its author wrote it.
    pub batch: &'a Batch,
    /// Whether it was only planned.
    pub dry_run: bool,
    /// How files are named for people.
    pub paths: PathStyle,
    /// What it is known as, where it is kept.
    pub stored: Option<Stored<'a>>,
    /// What became of it; `None` while it is open.
    pub outcome: Result<Option<&'a Report>, &'a Refusal>,
    /// About the workspace, or the document, as a whole.
    pub warnings: &'a [Warning],
}

impl<'a> BatchView<'a> {
    /// A batch that is kept nowhere, in a workspace of one root.
    #[must_use]
    pub const fn new(batch: &'a Batch, outcome: Result<Option<&'a Report>, &'a Refusal>) -> Self {
        Self { batch, dry_run: false, paths: PathStyle::InRoot, stored: None, outcome, warnings: &[] }
    }

    /// The warnings about the workspace, the document or the batch as a whole.
    pub fn all_warnings(&self) -> impl Iterator<Item = &'a Warning> {
        let of_report = self.outcome.ok().flatten().map_or(&[][..], |report| &report.warnings);
        self.warnings.iter().chain(of_report)
    }
}

/// A batch as the server knows it, or the history of this machine.
#[derive(Clone, Copy)]
pub struct Stored<'a> {
    /// Its id.
    pub id: BatchId,
    /// Its state.
    pub state: BatchState,
    /// One entry for each file patch; none where files have no ids.
    pub ids: &'a [FileIds],
}

impl Stored<'_> {
    /// A batch as the history knows it, if it was committed under a name and has changed anything.
    #[must_use]
    pub fn here(mode: Mode<'_>, report: &Report) -> Option<Self> {
        let has_changed = report.files.iter().any(|file| file.status != FileStatus::Unchanged);
        match mode {
            Mode::CommitNamed { batch } if has_changed => {
                Some(Self { id: batch, state: BatchState::Applied, ids: &[] })
            }
            _ => None,
        }
    }
}

/// The object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<'a> {
    pub(crate) success: bool,
    pub(crate) batch_id: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) dry_run: bool,
    pub(crate) files: Vec<FileAnswer<'a>>,
    pub(crate) errors: Vec<ErrorAnswer<'a>>,
    pub(crate) warnings: Vec<TopWarning<'a>>,
    pub(crate) diff: Cow<'a, str>,
}

/// What became of a file.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct FileAnswer<'a> {
    file_patch_id: Option<String>,
    path: &'a str,
    doc_path: Option<&'a str>,
    file_key: Option<&'a str>,
    status: &'static str,
    renamed_to: Option<&'a str>,
    sha256_before: Option<String>,
    sha256: Option<String>,
    size_bytes: Option<u64>,
    normalized: Vec<&'static str>,
    warnings: Vec<WarningAnswer<'a>>,
    changes: Vec<ChangeAnswer<'a>>,
}

/// A warning about the document, the batch or the workspace as a whole.
#[derive(Serialize)]
pub struct TopWarning<'a> {
    code: &'a str,
    message: &'a str,
    line: Option<usize>,
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
    tier: &'static str,
    candidates: u32,
    start_line: u32,
    end_line: u32,
}

/// Why nothing changed.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorAnswer<'a> {
    code: &'static str,
    detail: Option<&'static str>,
    message: String,
    hint: Option<&'a str>,
    path: Option<&'a str>,
    change_index: Option<usize>,
    line: Option<usize>,
    nearest: Vec<ExcerptAnswer<'a>>,
    current_sha256: Option<String>,
    next_action: Option<ActionAnswer>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ExcerptAnswer<'a> {
    start_line: usize,
    end_line: usize,
    text: &'a str,
}

#[derive(Serialize)]
struct ActionAnswer {
    tool: String,
    arguments: serde_json::Value,
}

/// The object about a batch. `taker` names what takes a document of a dialect, so that a corrected one can be
/// sent there.
#[must_use]
pub fn answer<'a>(view: &BatchView<'a>, taker: fn(&str) -> Option<String>) -> Answer<'a> {
    let ids = |index| view.stored.and_then(|stored| stored.ids.get(index));
    let patches = view.batch.files.iter().enumerate();
    let (files, diff, errors) = match view.outcome {
        Ok(Some(report)) => {
            let done = report.files.iter().zip(patches);
            let files = done.map(|(file, (index, patch))| file_answer(file, patch, ids(index)));
            (files.collect(), Cow::Borrowed(report.diff.as_str()), Vec::new())
        }
        Ok(None) => {
            let asked = view.batch.files.iter().flat_map(described).collect::<Vec<_>>();
            let asked = Cow::Owned(String::from_utf8_lossy(&asked).into_owned());
            (patches.map(|(index, patch)| asked_answer(patch, ids(index))).collect(), asked, Vec::new())
        }
        Err(refusal) => (Vec::new(), Cow::Borrowed(""), errors(&refusal.failures, taker)),
    };
    let state = match (view.stored, view.outcome.is_ok(), view.dry_run) {
        (Some(stored), _, _) => stored.state.word(),
        (None, false, _) => "FAILED",
        (None, true, true) => "PREPARED",
        (None, true, false) => "APPLIED",
    };
    let ended_badly = matches!(state, "REJECTED" | "CANCELLED" | "EXPIRED");
    Answer {
        success: view.outcome.is_ok() && !ended_badly,
        batch_id: view.stored.map(|stored| stored.id.to_string()),
        state,
        dry_run: view.dry_run,
        files,
        errors,
        warnings: view
            .all_warnings()
            .map(|warning| TopWarning { code: &warning.code, message: &warning.message, line: warning.line })
            .collect(),
        diff,
    }
}

/// Why nothing changed; `taker` as for [`answer`].
#[must_use]
pub fn errors<'a>(failures: &'a [Failure], taker: fn(&str) -> Option<String>) -> Vec<ErrorAnswer<'a>> {
    let excerpt = |at: &'a Excerpt| ExcerptAnswer { start_line: at.start_line, end_line: at.end_line, text: &at.text };
    let answers = failures.iter().map(|failure| ErrorAnswer {
        code: failure.reason.code(),
        detail: failure.detail.map(Detail::code),
        message: match &failure.field {
            Some(field) => format!("{field}: {}", failure.message),
            None => failure.message.clone(),
        },
        hint: failure.hint.as_deref(),
        path: failure.path.as_deref(),
        change_index: failure.change_index,
        line: failure.line,
        nearest: failure.nearest.iter().map(excerpt).collect(),
        current_sha256: failure.current_sha256.map(String::from),
        next_action: failure.next_action.as_ref().and_then(|action| {
            let arguments = serde_json::from_str(&action.document).ok()?;
            Some(ActionAnswer { tool: taker(&action.dialect)?, arguments })
        }),
    });
    answers.collect()
}

fn file_answer<'a>(file: &'a FileReport, patch: &'a FilePatch, ids: Option<&FileIds>) -> FileAnswer<'a> {
    FileAnswer {
        file_patch_id: ids.map(|ids| ids.file.to_string()),
        path: &file.path,
        doc_path: Some(&file.doc_path),
        file_key: patch.key.as_deref(),
        status: file.status.word(),
        renamed_to: file.renamed_to.as_deref(),
        sha256_before: file.sha256_before.map(String::from),
        sha256: file.written.map(|written| written.sha256.into()),
        size_bytes: file.written.map(|written| written.size_bytes),
        normalized: file.normalized.iter().map(|normalization| normalization.word()).collect(),
        warnings: file
            .warnings
            .iter()
            .map(|warning| WarningAnswer { code: &warning.code, message: &warning.message })
            .collect(),
        changes: change_answers(file.changes.iter().take(patch.edit.change_count()), patch, ids),
    }
}

/// A file to which nothing has happened yet: what is asked for, and no lines of a new text.
fn asked_answer<'a>(patch: &'a FilePatch, ids: Option<&FileIds>) -> FileAnswer<'a> {
    const NOWHERE: ChangeReport = ChangeReport { tier: Tier::Exact, candidates: 0, start_line: 0, end_line: 0 };
    FileAnswer {
        file_patch_id: ids.map(|ids| ids.file.to_string()),
        path: patch.target.as_str(),
        doc_path: match &patch.target {
            Target::DocPath(path) => Some(path),
            Target::Path(_) | Target::Readings(_) => None,
        },
        file_key: patch.key.as_deref(),
        status: asked_status(&patch.edit).word(),
        renamed_to: patch.edit.moved_to(),
        sha256_before: None,
        sha256: None,
        size_bytes: None,
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: change_answers(std::iter::repeat_n(&NOWHERE, patch.edit.change_count()), patch, ids),
    }
}

fn change_answers<'a>(
    reports: impl Iterator<Item = &'a ChangeReport>,
    patch: &'a FilePatch,
    ids: Option<&FileIds>,
) -> Vec<ChangeAnswer<'a>> {
    let answers = reports.enumerate().map(|(index, report)| {
        // No other dialect has words of its author about a change.
        let change = if let FileEdit::LinePatch(lines) = &patch.edit { lines.changes.get(index) } else { None };
        ChangeAnswer {
            change_id: ids.and_then(|ids| Some(ids.changes.get(index)?.to_string())),
            change_key: change.and_then(|change| change.key.as_deref()),
            description: change.and_then(|change| change.description.as_deref()),
            tier: report.tier.word(),
            candidates: report.candidates,
            start_line: report.start_line,
            end_line: report.end_line,
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
        | FileEdit::ContextPatch(_) => FileStatus::Modified,
    }
}
