//! What commands print: the fixed JSON object, or text for people in which nothing can hide.

use std::fmt::Write as _;
use std::io::Write as _;
use std::sync::atomic::{AtomicBool, Ordering};

use anstyle::AnsiColor;
use aptix_model::batch::{Batch, FileEdit, FilePatch, GitKind, Presence, Target};
use aptix_model::failure::{Excerpt, Failure, NextAction, Visible};
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use aptix_model::record::FileIds;
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Report, Tier};
use aptix_model::state::BatchState;
use serde::Serialize;

use crate::apply::Refusal;

use super::Exit;
use super::described::described;
use super::diff::{Paths, ShownLine, show_diff, show_diff_under};
use super::progress;

/// Everything there is to say about one batch.
pub(super) struct Shown<'a> {
    pub(super) batch: &'a Batch,
    pub(super) dry_run: bool,
    /// How people are told which file it is.
    pub(super) paths: Paths,
    /// What the server made of it, if it was sent to one.
    pub(super) stored: Option<Stored<'a>>,
    /// What became of it; nothing while nothing has.
    pub(super) outcome: Result<Option<&'a Report>, &'a Refusal>,
}

/// A batch as the server knows it.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) id: BatchId,
    pub(super) state: BatchState,
    /// One entry for each file patch.
    pub(super) ids: &'a [FileIds],
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Answer<'a> {
    success: bool,
    batch_id: Option<String>,
    state: &'static str,
    dry_run: bool,
    files: Vec<FileAnswer<'a>>,
    errors: Vec<ErrorAnswer<'a>>,
    diff: &'a str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FileAnswer<'a> {
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

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ErrorAnswer<'a> {
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

/// How a command prints.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Form {
    /// For people.
    Text,
    /// One JSON object.
    Json,
}

impl Form {
    pub(super) const fn of(json: bool) -> Self {
        if json { Self::Json } else { Self::Text }
    }
}

/// Prints what there is to say about a batch.
pub(super) fn show(form: Form, shown: &Shown<'_>) -> Exit {
    progress::end();
    match form {
        Form::Json => print_json(shown),
        Form::Text => print_text(shown),
    }
}

/// Prints why there is nothing to say about any batch.
pub(super) fn show_refusal(form: Form, refusal: &Refusal) {
    let batch = Batch::default();
    show(form, &Shown { batch: &batch, dry_run: false, paths: Paths::InRoot, stored: None, outcome: Err(refusal) });
}

/// Prints the JSON object of a command that ended before it could say anything else; to people it is said elsewhere.
pub(super) fn show_broken_off(form: Form, why: &str) {
    if form == Form::Json {
        show_refusal(form, &Failure::new(Reason::Internal, why).into());
    }
}

/// Whether the one JSON object was printed, or is being printed.
static ANSWERED: AtomicBool = AtomicBool::new(false);

/// Prints the one JSON object about a batch.
fn print_json(shown: &Shown<'_>) -> Exit {
    let ids = |index| shown.stored.and_then(|stored| stored.ids.get(index));
    let patches = shown.batch.files.iter().enumerate();
    let asked;
    let (files, diff, errors) = match shown.outcome {
        Ok(Some(report)) => {
            let done = report.files.iter().zip(patches);
            let files = done.map(|(file, (index, patch))| file_answer(file, patch, ids(index)));
            (files.collect(), report.diff.as_str(), Vec::new())
        }
        Ok(None) => {
            asked = shown.batch.files.iter().map(described).collect::<String>();
            (patches.map(|(index, patch)| asked_answer(patch, ids(index))).collect(), asked.as_str(), Vec::new())
        }
        Err(refusal) => (Vec::new(), "", refusal.failures.iter().map(error_answer).collect()),
    };
    let state = match (shown.stored, shown.outcome.is_ok(), shown.dry_run) {
        (Some(stored), _, _) => stored.state.word(),
        (None, false, _) => "FAILED",
        (None, true, true) => "PREPARED",
        (None, true, false) => "APPLIED",
    };
    let ended_badly = matches!(state, "REJECTED" | "CANCELLED" | "EXPIRED");
    print_object(&Answer {
        success: shown.outcome.is_ok() && !ended_badly,
        batch_id: shown.stored.map(|stored| stored.id.to_string()),
        state,
        dry_run: shown.dry_run,
        files,
        errors,
        diff,
    })
}

/// Prints a JSON object, unless there was one already: work that was broken off may still come to its end.
pub(super) fn print_object(object: &impl Serialize) -> Exit {
    if ANSWERED.swap(true, Ordering::SeqCst) {
        return Exit::Done;
    }
    match serde_json::to_string_pretty(object) {
        Ok(text) => print(&(text + "\n")),
        Err(error) => {
            say(&format!("error: cannot print the answer: {error}"));
            Exit::Environment
        }
    }
}

/// What the author wrote about a change, where the dialect has room for it.
fn words_of(patch: &FilePatch, change: usize) -> Words<'_> {
    match &patch.edit {
        FileEdit::LinePatch(lines) => lines.changes.get(change).map_or(Words::default(), |change| Words {
            key: change.key.as_deref(),
            description: change.description.as_deref(),
        }),
        _ => Words::default(),
    }
}

#[derive(Clone, Copy, Default)]
struct Words<'a> {
    key: Option<&'a str>,
    description: Option<&'a str>,
}

fn change_id(ids: Option<&FileIds>, index: usize) -> Option<String> {
    Some(ids?.changes.get(index)?.to_string())
}

fn file_answer<'a>(file: &'a FileReport, patch: &'a FilePatch, ids: Option<&FileIds>) -> FileAnswer<'a> {
    let changes = file.changes.iter().take(patch.edit.change_count()).enumerate();
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
        changes: changes
            .map(|(index, done)| change_answer(done, words_of(patch, index), change_id(ids, index)))
            .collect(),
    }
}

/// A file to which nothing has happened yet: what is asked for, and no lines of a new text.
fn asked_answer<'a>(patch: &'a FilePatch, ids: Option<&FileIds>) -> FileAnswer<'a> {
    const NOWHERE: ChangeReport = ChangeReport { tier: Tier::Exact, candidates: 0, start_line: 0, end_line: 0 };
    let changes = 0..patch.edit.change_count();
    FileAnswer {
        file_patch_id: ids.map(|ids| ids.file.to_string()),
        path: patch.target.as_str(),
        doc_path: match &patch.target {
            Target::DocPath(path) => Some(path),
            Target::Path(_) => None,
        },
        file_key: patch.key.as_deref(),
        status: asked_status(&patch.edit).word(),
        renamed_to: patch.edit.moved_to(),
        sha256_before: None,
        sha256: None,
        size_bytes: None,
        normalized: Vec::new(),
        warnings: Vec::new(),
        changes: changes.map(|index| change_answer(&NOWHERE, words_of(patch, index), change_id(ids, index))).collect(),
    }
}

/// What becomes of a file that nobody has seen yet, as far as the edit tells.
fn asked_status(edit: &FileEdit) -> FileStatus {
    match edit {
        FileEdit::DeleteFile => FileStatus::Deleted,
        FileEdit::GitPatch(patch) => match patch.kind {
            GitKind::Modify => FileStatus::Modified,
            GitKind::Create | GitKind::Copy { .. } => FileStatus::Created,
            GitKind::Delete => FileStatus::Deleted,
            GitKind::Rename { .. } => FileStatus::Renamed,
        },
        FileEdit::ContextPatch(patch) if patch.move_to.is_some() => FileStatus::Renamed,
        FileEdit::CreateFile(_) => FileStatus::Created,
        FileEdit::WriteFile(write) if write.presence != Presence::Present => FileStatus::Created,
        FileEdit::WriteFile(_)
        | FileEdit::LinePatch(_)
        | FileEdit::SearchPatch(_)
        | FileEdit::Replacements(_)
        | FileEdit::AnchorEdit(_)
        | FileEdit::ContextPatch(_) => FileStatus::Modified,
    }
}

fn change_answer<'a>(done: &ChangeReport, words: Words<'a>, change_id: Option<String>) -> ChangeAnswer<'a> {
    ChangeAnswer {
        change_id,
        change_key: words.key,
        description: words.description,
        tier: done.tier.word(),
        candidates: done.candidates,
        start_line: done.start_line,
        end_line: done.end_line,
    }
}

fn error_answer(failure: &Failure) -> ErrorAnswer<'_> {
    ErrorAnswer {
        code: failure.reason.code(),
        detail: failure.detail.map(aptix_model::reason::Detail::code),
        message: match &failure.field {
            Some(field) => format!("{field}: {}", failure.message),
            None => failure.message.clone(),
        },
        hint: failure.hint.as_deref(),
        path: failure.path.as_deref(),
        change_index: failure.change_index,
        line: failure.line,
        nearest: failure.nearest.iter().map(excerpt_answer).collect(),
        current_sha256: failure.current_sha256.map(String::from),
        next_action: failure.next_action.as_ref().and_then(action_answer),
    }
}

/// The command that takes the corrected document, and the document.
fn action_answer(action: &NextAction) -> Option<ActionAnswer> {
    let arguments = serde_json::from_str(&action.document).ok()?;
    Some(ActionAnswer { tool: format!("aptix apply --dialect {}", action.dialect), arguments })
}

fn excerpt_answer(excerpt: &Excerpt) -> ExcerptAnswer<'_> {
    ExcerptAnswer { start_line: excerpt.start_line, end_line: excerpt.end_line, text: &excerpt.text }
}

/// Prints the diff and one line a file to stdout, or what is wrong to stderr.
fn print_text(shown: &Shown<'_>) -> Exit {
    let mut head = String::new();
    if let Some(stored) = shown.stored {
        let label = shown.batch.label.as_deref().unwrap_or_default();
        let _ = writeln!(head, "batch {} {} {}", stored.id, stored.state, Visible(label));
    }
    match shown.outcome {
        Ok(Some(report)) => print(&(head + &text_of(report, shown.dry_run, shown.paths))),
        Ok(None) => {
            show_diff(&mut head, &shown.batch.files.iter().map(described).collect::<String>());
            print(&head)
        }
        Err(refusal) => {
            print(&head);
            refusal.failures.iter().for_each(|failure| say(text_of_failure(failure).trim_end()));
            Exit::Refused
        }
    }
}

fn text_of(report: &Report, dry_run: bool, paths: Paths) -> String {
    let mut text = String::new();
    let changed = report.files.iter().filter(|file| file.status != FileStatus::Unchanged);
    let names: Vec<_> = changed.map(|file| paths.name(&file.path, &file.doc_path)).collect();
    match paths {
        Paths::InRoot => show_diff(&mut text, &report.diff),
        Paths::WithRoot => show_diff_under(&mut text, &report.diff, &names),
    }
    let would = if dry_run { "would be " } else { "" };
    for file in &report.files {
        let _ = write!(text, "{would}{} {}", file.status.word(), Visible(&paths.name(&file.path, &file.doc_path)));
        if let Some(path) = &file.renamed_to {
            let _ = write!(text, " to {}", Visible(&paths.name(path, &file.doc_path)));
        }
        text.push('\n');
        for warning in &file.warnings {
            let _ = writeln!(text, "  warning: {}: {}", warning.code, Visible(&warning.message));
        }
        for normalization in &file.normalized {
            let _ = writeln!(text, "  normalized: {}", normalization.word());
        }
    }
    text
}

fn text_of_failure(failure: &Failure) -> String {
    let style = AnsiColor::Red.on_default().bold();
    let mut text = format!("{style}error:{style:#} {}\n", ShownLine(&failure.to_string()));
    for excerpt in &failure.nearest {
        for (number, line) in (excerpt.start_line..).zip(excerpt.text.split('\n')) {
            let _ = writeln!(text, "  {number:>6} | {}", ShownLine(line));
        }
    }
    if let Some(digest) = failure.current_sha256 {
        let _ = writeln!(text, "  the file's SHA-256 is {digest}");
    }
    if failure.next_action.is_some() {
        text.push_str("  with --json comes the document corrected, ready to be sent\n");
    }
    if let Some(hint) = &failure.hint {
        let _ = writeln!(text, "  hint: {}", ShownLine(hint));
    }
    text
}

/// Prints to stdout, without colour where it is not wanted. Somebody who stopped listening is not an error.
pub(super) fn print(text: &str) -> Exit {
    let choice = anstream::AutoStream::choice(&std::io::stdout());
    let mut shown = anstream::AutoStream::new(Vec::new(), choice);
    match shown.write_all(text.as_bytes()) {
        Ok(()) => print_bytes(&shown.into_inner()),
        failed => printed(failed),
    }
}

/// Prints a file's bytes to stdout, as they are.
pub(super) fn print_bytes(bytes: &[u8]) -> Exit {
    let mut stdout = std::io::stdout().lock();
    printed(stdout.write_all(bytes).and_then(|()| stdout.flush()))
}

fn printed(written: std::io::Result<()>) -> Exit {
    match written {
        Err(error) if error.kind() != std::io::ErrorKind::BrokenPipe => {
            say(&format!("error: cannot write to stdout: {error}"));
            Exit::Environment
        }
        _ => Exit::Done,
    }
}

/// Prints a line to stderr.
pub(super) fn say(text: &str) {
    progress::make_way();
    // There is nowhere left to complain to.
    let _ = writeln!(anstream::stderr().lock(), "{text}");
}
