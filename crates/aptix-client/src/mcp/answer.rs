//! The answers of tools: a JSON object for programs, texts for models, in the form of each tool.

use std::borrow::Cow;

use aptix_model::batch::Batch;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId};
use aptix_model::preview::Preview;
use aptix_model::record::FileIds;
use aptix_model::report::{Report, Warning};
use aptix_model::state::BatchState;
use aptix_model::tools::catalogue::Selection;
use aptix_model::tools::create_file::Created;
use aptix_model::tools::preview::{Phase, Summary};
use aptix_model::tools::tool::Form;
use serde::Serialize;
use serde_json::{Value, json};

use crate::apply::Refusal;
use crate::present::answer::{ErrorAnswer, answer, errors};
use crate::present::file_answer::FileAnswer;
use crate::present::view::{BatchView, Stored, Undoes};

/// Bytes of diff that an answer may carry.
pub(super) const DIFF_BYTES: usize = 256 << 10;

/// The answer to a call.
#[derive(Debug)]
pub(super) struct ToolAnswer {
    /// For programs.
    pub(super) structured: Value,
    /// For models.
    pub(super) text: Vec<String>,
    pub(super) is_error: bool,
}

/// A batch that was to be applied.
pub(super) struct Tried {
    pub(super) batch: BatchId,
    pub(super) ids: Vec<FileIds>,
    /// The name of the root.
    pub(super) root: String,
    pub(super) outcome: Result<Report, Refusal>,
}

/// The tool that takes a document of a dialect.
fn tool_for(dialect: &str) -> Option<String> {
    let tool = Selection::all().taking(dialect.parse().ok()?)?;
    Some(tool.name.to_owned())
}

/// The envelope of `workspace_write_patch` (TUL-002 9).
#[derive(Serialize)]
struct InvokeResult<'a> {
    successful: bool,
    result: Option<PatchResult<'a>>,
    errors: Vec<ErrorAnswer<'a>>,
    warnings: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchResult<'a> {
    batch_id: String,
    batch_key: Option<&'a str>,
    batch_label: Option<&'a str>,
    files: Vec<FileAnswer<'a>>,
    diff: &'a str,
}

#[derive(Serialize)]
struct Refused<'a> {
    success: bool,
    state: &'static str,
    errors: Vec<ErrorAnswer<'a>>,
}

impl ToolAnswer {
    /// Leaves out corrected calls of tools that are not served.
    pub(super) fn within(mut self, tools: &Selection) -> Self {
        let mut is_changed = false;
        for error in self.structured.get_mut("errors").and_then(Value::as_array_mut).into_iter().flatten() {
            let Some(action) = error.get_mut("nextAction") else { continue };
            if action.get("tool").and_then(Value::as_str).is_some_and(|tool| tools.find(tool).is_err()) {
                *action = Value::Null;
                is_changed = true;
            }
        }
        if let Some(text) = self.text.first_mut().filter(|_| is_changed) {
            *text = self.structured.to_string();
        }
        self
    }

    /// Adds a warning about the workspace.
    pub(super) fn warn(&mut self, warning: &Warning) {
        self.text.push(warning_line(warning));
        if let Some(warnings) = self.structured.get_mut("warnings").and_then(Value::as_array_mut) {
            warnings.push(warning_object(warning));
        }
    }
}

fn warning_line(warning: &Warning) -> String {
    format!("warning: {}: {}", warning.code, warning.message)
}

fn warning_object(warning: &Warning) -> Value {
    json!({ "code": warning.code, "message": warning.message })
}

/// The answer of a document's tool; `warnings` are those of the document.
pub(super) fn of_document(form: Form, batch: &Batch, warnings: &[Warning], tried: &Tried) -> ToolAnswer {
    match form {
        Form::InvokeResult => envelope(&tried_view(batch, tried), warnings),
        Form::Created => created(batch, tried.outcome.as_ref()),
        Form::Batch | Form::Plain => {
            let mut answer = of_batch(batch, tried);
            answer.text.extend(warnings.iter().map(warning_line));
            answer
        }
    }
}

fn envelope(view: &BatchView<'_>, warnings: &[Warning]) -> ToolAnswer {
    let answer = answer(view, tool_for);
    let result = InvokeResult {
        successful: answer.success,
        result: answer.batch_id.filter(|_| answer.success).map(|batch_id| PatchResult {
            batch_id,
            batch_key: answer.batch_key,
            batch_label: answer.batch_label,
            files: answer.files,
            diff: answer.diff,
        }),
        errors: answer.errors,
        warnings: warnings.iter().map(warning_object).collect(),
    };
    serialized(&result, !answer.success)
}

fn created(batch: &Batch, outcome: Result<&Report, &Refusal>) -> ToolAnswer {
    let path = batch.files.first().map_or("", |file| file.target.as_str());
    let result = match outcome {
        Ok(report) => match report.files.first() {
            Some(file) => Created::done(file),
            None => Created::refused(path, &[]),
        },
        Err(refusal) => Created::refused(path, &refusal.failures),
    };
    serialized(&result, outcome.is_err())
}

fn tried_view<'a>(batch: &'a Batch, tried: &'a Tried) -> BatchView<'a> {
    let state = if tried.outcome.is_ok() { BatchState::Applied } else { BatchState::Failed };
    BatchView {
        root: Some(&tried.root),
        stored: Some(Stored { id: tried.batch, state, ids: Cow::Borrowed(&tried.ids) }),
        ..BatchView::new(batch, tried.outcome.as_ref().map(Some))
    }
}

pub(super) fn of_batch(batch: &Batch, tried: &Tried) -> ToolAnswer {
    let mut answer = serialized(&answer(&tried_view(batch, tried), tool_for), tried.outcome.is_err());
    if tried.outcome.as_ref().is_ok_and(|report| report.diff_omitted) {
        answer.text.push(format!("the diff has more than {DIFF_BYTES} bytes and is left out"));
    }
    answer
}

/// A batch that took another one back.
pub(super) fn of_undone(batch: &Batch, tried: &Tried, undoes: Undoes<'_>) -> ToolAnswer {
    let view = BatchView { undoes: Some(undoes), ..tried_view(batch, tried) };
    serialized(&answer(&view, tool_for), false)
}

/// A batch that was applied before.
pub(super) fn of_kept(view: &BatchView<'_>) -> ToolAnswer {
    serialized(&answer(view, tool_for), false)
}

pub(super) fn of_plan(batch: &Batch, report: &Report, preview: &Preview, phase: Phase) -> ToolAnswer {
    let shown = BatchView { dry_run: true, ..BatchView::new(batch, Ok(Some(report))) };
    hunk_answer(&shown, preview, phase)
}

pub(super) fn of_applied(batch: &Batch, applied: &Tried, preview: &Preview, hunk: FilePatchId) -> ToolAnswer {
    hunk_answer(&tried_view(batch, applied), preview, Phase::Applied { hunk })
}

fn hunk_answer(shown: &BatchView<'_>, preview: &Preview, phase: Phase) -> ToolAnswer {
    let mut answer = serialized(&answer(shown, tool_for), false);
    let (hunk, expires) = match phase {
        Phase::Planned { hunk, expires } => (hunk, Some(expires.0)),
        Phase::Applied { hunk } => (hunk, None),
    };
    let summary = Summary::of(preview, phase);
    // A summary is texts and numbers: there is nothing in it that JSON or YAML could refuse.
    let (yaml, json) = (summary.to_yaml().unwrap_or_default(), serde_json::to_value(&summary).unwrap_or_default());
    if let Some(object) = answer.structured.as_object_mut() {
        object.insert("preview".to_owned(), json);
        object.insert("hunkId".to_owned(), hunk.to_string().into());
        if let Some(expires) = expires {
            object.insert("expiresAtMs".to_owned(), expires.into());
        }
    }
    let diff = preview.diff.clone().unwrap_or_else(|| format!("the diff has more than {DIFF_BYTES} bytes"));
    ToolAnswer { text: vec![yaml, diff], ..answer }
}

/// The answer of a call that changed nothing, in the form of its tool.
pub(super) fn refused(form: Form, failures: &[Failure]) -> ToolAnswer {
    let (batch, refusal) = (Batch::default(), Refusal::from(failures.to_vec()));
    let view = BatchView::new(&batch, Err(&refusal));
    match form {
        Form::Plain => {
            serialized(&Refused { success: false, state: "FAILED", errors: errors(failures, tool_for) }, true)
        }
        Form::Batch => serialized(&answer(&view, tool_for), true),
        Form::InvokeResult => envelope(&view, &[]),
        Form::Created => created(&batch, Err(&refusal)),
    }
}

/// An answer that is an object, and no other text than that.
pub(super) fn serialized(object: &impl Serialize, is_error: bool) -> ToolAnswer {
    // Answers are texts and numbers under fixed names: there is nothing in them that JSON could refuse.
    let structured = serde_json::to_value(object).unwrap_or_default();
    ToolAnswer { structured, text: vec![serde_json::to_string(object).unwrap_or_default()], is_error }
}
