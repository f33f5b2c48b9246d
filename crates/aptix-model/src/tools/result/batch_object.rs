//! What became of a batch, as the one JSON object with fixed keys that commands print and tools answer with.

use serde::Serialize;

use super::BatchResult;
use super::file_object::{FileObject, file_objects};
use crate::batch_event::EventFacts;
use crate::failure::{Excerpt, Failure};
use crate::reason::Detail;
use crate::report::Warning;

/// The object.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct BatchObject<'a> {
    pub(super) success: bool,
    pub(super) batch_id: Option<String>,
    pub(super) state: &'static str,
    pub(super) dry_run: bool,
    pub(super) batch_key: Option<&'a str>,
    pub(super) batch_label: Option<&'a str>,
    /// The batch that it takes back.
    pub(super) undoes: Option<&'a str>,
    pub(super) files: Vec<FileObject<'a>>,
    pub(super) errors: Vec<ErrorObject<'a>>,
    pub(super) warnings: Vec<TopWarning<'a>>,
    pub(super) diff: &'a str,
    /// Who did what to it, when and why; absent where no record was asked for, and where it is not known.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(super) steps: Vec<StepObject<'a>>,
    /// Of a record where no file has changed, what the batch asks for: in the manner of a diff, for readers.
    pub(super) asked: &'a str,
}

/// One step in the life of a batch.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct StepObject<'a> {
    event: &'static str,
    state: &'static str,
    unix_ms: u64,
    actor: &'static str,
    actor_name: Option<&'a str>,
    reason: Option<&'a str>,
}

/// A warning about the document, the batch or the workspace as a whole.
#[derive(Serialize, Debug)]
pub struct TopWarning<'a> {
    code: &'a str,
    message: &'a str,
    line: Option<usize>,
}

/// Why nothing changed, or a file did not.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
pub struct ErrorObject<'a> {
    code: &'static str,
    detail: Option<&'static str>,
    message: String,
    hint: Option<&'a str>,
    path: Option<&'a str>,
    doc_path: Option<&'a str>,
    file_index: Option<usize>,
    file_patch_id: Option<String>,
    file_key: Option<&'a str>,
    change_index: Option<usize>,
    change_id: Option<String>,
    change_key: Option<&'a str>,
    line: Option<usize>,
    nearest: Vec<ExcerptObject<'a>>,
    current_sha256: Option<String>,
    next_action: Option<ActionObject>,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct ExcerptObject<'a> {
    start_line: usize,
    end_line: usize,
    text: &'a str,
}

#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
struct ActionObject {
    tool: String,
    arguments: serde_json::Value,
}

/// The object about a batch. `taker` names what takes a document of a dialect, so that a corrected one can be
/// sent there.
#[must_use]
pub fn object<'a>(result: &'a BatchResult<'a>, taker: fn(&str) -> Option<String>) -> BatchObject<'a> {
    let report = result.outcome.ok().flatten();
    BatchObject {
        success: result.is_success(),
        batch_id: result.stored.as_ref().map(|stored| stored.id.to_string()),
        state: result.state().word(),
        dry_run: result.dry_run,
        batch_key: result.words.key,
        batch_label: result.words.label,
        undoes: result.undoes.as_deref(),
        files: file_objects(result),
        errors: batch_errors(result, taker),
        warnings: result.all_warnings().map(top_warning).collect(),
        diff: report.map_or("", |report| &report.diff),
        steps: result.steps.iter().map(step_object).collect(),
        asked: &result.asked,
    }
}

/// A step in the life of a batch, as every result shows it.
#[must_use]
pub fn step_object(step: &EventFacts) -> StepObject<'_> {
    StepObject {
        event: step.kind.word(),
        state: step.state.word(),
        unix_ms: step.at.0,
        actor: step.actor.kind.word(),
        actor_name: step.actor.name.as_deref(),
        reason: step.reason.as_deref(),
    }
}

fn top_warning(warning: &Warning) -> TopWarning<'_> {
    TopWarning { code: &warning.code, message: &warning.message, line: warning.line }
}

/// Why a batch was refused, with the ids and the author's words of each part that failed; `taker` as for [`object`].
fn batch_errors<'a>(result: &BatchResult<'a>, taker: fn(&str) -> Option<String>) -> Vec<ErrorObject<'a>> {
    let mut objects = errors(result.failures(), taker);
    for (error, failure) in objects.iter_mut().zip(result.failures()) {
        let place = result.file_of(failure).and_then(|index| Some((index, result.words.files.get(index)?)));
        let Some((index, file)) = place else { continue };
        error.file_patch_id = result.file_id(index).map(|id| id.to_string());
        error.file_key = file.key.or(error.file_key);
        if let Some(change) = result.change_of(failure) {
            error.change_id = result.change_id(index, change).map(|id| id.to_string());
            error.change_key = file.of_change(change).key.or(error.change_key);
        }
    }
    objects
}

/// Why nothing changed, where no batch is known; `taker` as for [`object`].
#[must_use]
pub fn errors<'a>(failures: &'a [Failure], taker: fn(&str) -> Option<String>) -> Vec<ErrorObject<'a>> {
    let excerpt = |at: &'a Excerpt| ExcerptObject { start_line: at.start_line, end_line: at.end_line, text: &at.text };
    let objects = failures.iter().map(|failure| ErrorObject {
        code: failure.reason.code(),
        detail: failure.detail.map(Detail::code),
        message: match &failure.field {
            Some(field) => format!("{field}: {}", failure.message),
            None => failure.message.clone(),
        },
        hint: failure.hint.as_deref(),
        path: failure.path.as_deref(),
        doc_path: failure.doc_path.as_deref(),
        file_index: failure.file_index,
        file_patch_id: None,
        file_key: failure.file_key.as_deref(),
        change_index: failure.change_index,
        change_id: None,
        change_key: failure.change_key.as_deref(),
        line: failure.line,
        nearest: failure.nearest.iter().map(excerpt).collect(),
        current_sha256: failure.current_sha256.map(String::from),
        next_action: failure.next_action.as_ref().and_then(|action| {
            let arguments = serde_json::from_str(&action.document).ok()?;
            Some(ActionObject { tool: taker(&action.dialect)?, arguments })
        }),
    });
    objects.collect()
}
