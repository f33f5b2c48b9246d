//! What became of a batch, as the one JSON object with fixed keys that commands print and tools answer with.

use aptix_model::batch_event::StepRecord;
use aptix_model::failure::{Excerpt, Failure};
use aptix_model::reason::Detail;
use aptix_model::report::Warning;
use aptix_model::state::BatchState;
use serde::Serialize;

use super::file_answer::{FileAnswer, file_answers};
use super::text::asked;
use super::view::BatchView;

/// The object.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Answer<'a> {
    pub(crate) success: bool,
    pub(crate) batch_id: Option<String>,
    pub(crate) state: &'static str,
    pub(crate) dry_run: bool,
    pub(crate) batch_key: Option<&'a str>,
    pub(crate) batch_label: Option<&'a str>,
    /// The batch that it takes back.
    pub(crate) undoes: Option<String>,
    pub(crate) files: Vec<FileAnswer<'a>>,
    pub(crate) errors: Vec<ErrorAnswer<'a>>,
    pub(crate) warnings: Vec<TopWarning<'a>>,
    pub(crate) diff: &'a str,
    /// Who did what to it, when and why; absent where no server was asked for a record.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) steps: Vec<StepAnswer<'a>>,
    /// Of a record where no file has changed, what the batch asks for: in the manner of a diff, for readers.
    pub(crate) asked: String,
}

/// One step in the life of a batch.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct StepAnswer<'a> {
    event: &'static str,
    state: &'static str,
    unix_ms: u64,
    actor: &'static str,
    actor_name: Option<&'a str>,
    reason: Option<&'a str>,
}

/// A warning about the document, the batch or the workspace as a whole.
#[derive(Serialize)]
pub struct TopWarning<'a> {
    code: &'a str,
    message: &'a str,
    line: Option<usize>,
}

/// Why nothing changed, or a file did not.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ErrorAnswer<'a> {
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
#[serde(rename_all = "camelCase")]
struct ActionAnswer {
    tool: String,
    arguments: serde_json::Value,
}

/// The object about a batch. `taker` names what takes a document of a dialect, so that a corrected one can be
/// sent there.
#[must_use]
pub fn answer<'a>(view: &BatchView<'a>, taker: fn(&str) -> Option<String>) -> Answer<'a> {
    let state = view.state();
    let has_failed = matches!(
        state,
        BatchState::Failed | BatchState::Rejected | BatchState::Partial | BatchState::Cancelled | BatchState::Expired
    );
    let report = view.outcome.ok().flatten();
    Answer {
        success: view.outcome.is_ok() && !has_failed,
        batch_id: view.stored.as_ref().map(|stored| stored.id.to_string()),
        state: state.word(),
        dry_run: view.dry_run,
        batch_key: view.subject.key(),
        batch_label: view.subject.label(),
        undoes: view.undoes.as_ref().map(|undone| undone.id.to_string()),
        files: file_answers(view),
        errors: batch_errors(view, taker),
        warnings: view.all_warnings().map(top_warning).collect(),
        diff: report.map_or("", |report| &report.diff),
        steps: view.steps.iter().map(step_answer).collect(),
        asked: if view.is_record && report.is_none() { asked(view.subject) } else { String::new() },
    }
}

fn step_answer(step: &StepRecord) -> StepAnswer<'_> {
    let facts = &step.facts;
    StepAnswer {
        event: facts.kind.word(),
        state: facts.state.word(),
        unix_ms: facts.at.0,
        actor: facts.actor.kind.word(),
        actor_name: facts.actor.name.as_deref(),
        reason: facts.reason.as_deref(),
    }
}

fn top_warning(warning: &Warning) -> TopWarning<'_> {
    TopWarning { code: &warning.code, message: &warning.message, line: warning.line }
}

/// Why a batch was refused, with what each part that failed is known as; `taker` as for [`answer`].
fn batch_errors<'a>(view: &BatchView<'a>, taker: fn(&str) -> Option<String>) -> Vec<ErrorAnswer<'a>> {
    let files = view.subject.files();
    let mut answers = errors(view.failures(), taker);
    for (error, failure) in answers.iter_mut().zip(view.failures()) {
        let Some((index, file)) = view.file_of(failure).and_then(|index| Some((index, files.get(index)?))) else {
            continue;
        };
        error.file_patch_id = view.file_id(index).map(|id| id.to_string());
        error.file_key = file.key;
        if let Some(change) = view.change_of(failure) {
            error.change_id = view.change_id(index, change).map(|id| id.to_string());
            error.change_key = file.of_change(change).0;
        }
    }
    answers
}

/// Why nothing changed, where no batch is known; `taker` as for [`answer`].
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
        doc_path: failure.doc_path.as_deref(),
        file_index: failure.file_index,
        file_patch_id: None,
        file_key: None,
        change_index: failure.change_index,
        change_id: None,
        change_key: None,
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
