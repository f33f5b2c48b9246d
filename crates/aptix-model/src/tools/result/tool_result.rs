//! The results of tools: a JSON object for programs, texts for models, in the form of each tool.

use serde::Serialize;
use serde_json::{Value, json};

use super::BatchResult;
use super::batch_object::{ErrorObject, errors, object};
use super::file_object::FileObject;
use super::words::BatchWords;
use crate::failure::Failure;
use crate::preview::Preview;
use crate::report::Warning;
use crate::tools::catalogue::Selection;
use crate::tools::create_file::Created;
use crate::tools::preview::{Phase, Summary};
use crate::tools::tool::Form;

/// What to do where a planned edit does not fit its file any more.
pub const PREPARE_AGAIN: &str =
    "prepare the edit again, with existing_hunk_id to take this one's place, look at it, then apply it";

/// Bytes of diff that a result may carry.
pub const DIFF_BYTES: usize = 256 << 10;

/// The result of a call.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ToolResult {
    /// For programs.
    pub structured: Value,
    /// For models.
    pub text: Vec<String>,
    /// Whether the call was refused.
    pub is_error: bool,
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
    errors: Vec<ErrorObject<'a>>,
    warnings: Vec<Value>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PatchResult<'a> {
    batch_id: String,
    batch_key: Option<&'a str>,
    batch_label: Option<&'a str>,
    files: Vec<FileObject<'a>>,
    diff: &'a str,
}

#[derive(Serialize)]
struct Refused<'a> {
    success: bool,
    state: &'static str,
    errors: Vec<ErrorObject<'a>>,
}

impl ToolResult {
    /// Leaves out corrected calls of tools that are not served.
    #[must_use]
    pub fn within(mut self, tools: &Selection) -> Self {
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
    pub fn warn(&mut self, warning: &Warning) {
        self.text.push(warning_line(warning));
        if let Some(warnings) = self.structured.get_mut("warnings").and_then(Value::as_array_mut) {
            warnings.push(warning_object(warning));
        }
    }

    /// Leaves out what became of each file, and says so: for a way that the whole result is too large for.
    pub fn leave_out_files(&mut self) {
        for place in ["/files", "/result/files"] {
            if let Some(files) = self.structured.pointer_mut(place) {
                *files = json!([]);
            }
        }
        let message = "the answer is too large with its files, which are left out: look at the files with read_file";
        self.warn(&Warning { code: "FILES_OMITTED".to_owned(), message: message.to_owned(), line: None });
        if let Some(text) = self.text.first_mut() {
            *text = self.structured.to_string();
        }
    }
}

fn warning_line(warning: &Warning) -> String {
    format!("warning: {}: {}", warning.code, warning.message)
}

fn warning_object(warning: &Warning) -> Value {
    json!({ "code": warning.code, "message": warning.message })
}

/// The result of a document's tool; `warnings` are those of the document.
#[must_use]
pub fn of_document(form: Form, result: &BatchResult<'_>, warnings: &[Warning]) -> ToolResult {
    match form {
        Form::InvokeResult => envelope(result, warnings),
        Form::Created => created(result),
        Form::Batch | Form::Plain => {
            let mut answer = of_batch(result);
            answer.text.extend(warnings.iter().map(warning_line));
            answer
        }
    }
}

fn envelope(result: &BatchResult<'_>, warnings: &[Warning]) -> ToolResult {
    let batch = object(result, tool_for);
    let envelope = InvokeResult {
        successful: batch.success,
        result: batch.batch_id.filter(|_| batch.success).map(|batch_id| PatchResult {
            batch_id,
            batch_key: batch.batch_key,
            batch_label: batch.batch_label,
            files: batch.files,
            diff: batch.diff,
        }),
        errors: batch.errors,
        warnings: warnings.iter().map(warning_object).collect(),
    };
    serialized(&envelope, !batch.success)
}

fn created(result: &BatchResult<'_>) -> ToolResult {
    let asked = result.words.files.first().and_then(|file| file.asked.as_ref());
    let created = match result.report_of(0) {
        Some(file) => Created::done(file),
        None => Created::refused(asked.map_or("", |file| file.path), result.failures()),
    };
    serialized(&created, result.outcome.is_err())
}

/// The object about a batch that was applied or refused.
#[must_use]
pub fn of_batch(result: &BatchResult<'_>) -> ToolResult {
    let mut answer = serialized(&object(result, tool_for), result.outcome.is_err());
    if result.outcome.ok().flatten().is_some_and(|report| report.diff_omitted) {
        answer.text.push(format!("the diff has more than {DIFF_BYTES} bytes and is left out"));
    }
    answer
}

/// The object about a batch that was applied before, or that took another one back.
#[must_use]
pub fn of_record(result: &BatchResult<'_>) -> ToolResult {
    serialized(&object(result, tool_for), false)
}

/// The result of a call that planned an edit, or applied one that was planned: with its preview, which an agent of an earlier
/// version does not report.
#[must_use]
pub fn of_previewed(result: &BatchResult<'_>, preview: Option<&Preview>, phase: Phase) -> ToolResult {
    let mut answer = serialized(&object(result, tool_for), false);
    let (hunk, expires) = match phase {
        Phase::Planned { hunk, expires } => (hunk, Some(expires.0)),
        Phase::Applied { hunk } => (hunk, None),
    };
    if let Some(object) = answer.structured.as_object_mut() {
        object.insert("hunkId".to_owned(), hunk.to_string().into());
        if let Some(expires) = expires {
            object.insert("expiresAtMs".to_owned(), expires.into());
        }
    }
    let Some(preview) = preview else {
        answer.text = vec![answer.structured.to_string()];
        return answer;
    };
    let summary = Summary::of(preview, phase);
    // A summary is texts and numbers: there is nothing in it that JSON or YAML could refuse.
    let (yaml, json) = (summary.to_yaml().unwrap_or_default(), serde_json::to_value(&summary).unwrap_or_default());
    if let Some(object) = answer.structured.as_object_mut() {
        object.insert("preview".to_owned(), json);
    }
    let diff = preview.diff.clone().unwrap_or_else(|| format!("the diff has more than {DIFF_BYTES} bytes"));
    ToolResult { text: vec![yaml, diff], ..answer }
}

/// The result of a call that changed nothing, in the form of its tool.
#[must_use]
pub fn refused(form: Form, failures: &[Failure]) -> ToolResult {
    let result = BatchResult::new(BatchWords::default(), Err(failures));
    match form {
        Form::Plain => {
            serialized(&Refused { success: false, state: "FAILED", errors: errors(failures, tool_for) }, true)
        }
        Form::Batch => serialized(&object(&result, tool_for), true),
        Form::InvokeResult => envelope(&result, &[]),
        Form::Created => created(&result),
    }
}

/// Whether a text is the JSON object of a result.
#[must_use]
pub fn is_object(structured: &str) -> bool {
    serde_json::from_str::<serde_json::Map<String, Value>>(structured).is_ok()
}

/// A result that is an object, and no other text than that.
#[must_use]
pub fn serialized(object: &impl Serialize, is_error: bool) -> ToolResult {
    // Results are texts and numbers under fixed names: there is nothing in them that JSON could refuse.
    let structured = serde_json::to_value(object).unwrap_or_default();
    ToolResult { structured, text: vec![serde_json::to_string(object).unwrap_or_default()], is_error }
}
