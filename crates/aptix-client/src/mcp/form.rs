//! The question to a person, as a form that the client shows.

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use rmcp::model::{ElicitRequest, ElicitRequestParams, ElicitResult, ElicitationAction, ElicitationSchema};
use serde_json::{Value, json};

use super::consent::{Question, WAYS};
use crate::person::answer::{Answer, refusal};
use crate::person::rows::{Line, rows};
use crate::policy::places::Places;

/// Bytes of what is shown. A client need not show a longer text whole, and nobody agrees to what they were not shown.
const BYTES: usize = 16 << 10;
/// Columns: a client may hide what is to the right of them.
const COLUMNS: usize = 100;
/// What helps where a change is too long for a form.
const TOO_LONG: &str = "the change is too long for the client's form: split it, or ask the user to approve it on the page of \
                        `aptix mcp --review 127.0.0.1:0`, or with `aptix apply` at a terminal";
/// What helps where a form would show the client what it may not see.
const WITHHELD: &str = "clients are not shown this file: ask the user to approve the edit on the page of \
                        `aptix mcp --review 127.0.0.1:0`, or with `aptix apply` at a terminal";

/// The form that asks about a change. It names no place of this machine.
///
/// # Errors
/// The answer instead, where there can be no form.
pub(super) fn asking(question: &Question, places: &Places) -> Result<ElicitRequest, Answer> {
    if question.is_withheld {
        return Err(question.unasked(WITHHELD));
    }
    let message = message(question, places).ok_or_else(|| question.unasked(TOO_LONG))?;
    let schema = json!({
        "type": "object",
        "properties": {
            "approve": { "type": "boolean", "title": "Write this change", "default": false },
            "reason": { "type": "string", "title": "Why not", "description": "Reaches the author of the change" },
        },
        "required": ["approve"],
    });
    let schema = schema.as_object().cloned().unwrap_or_default();
    let requested_schema = ElicitationSchema::from_json_schema(schema).map_err(|error| {
        tracing::error!(%error, "the form is not in the protocol's shape");
        question.unasked(WAYS)
    })?;
    Ok(ElicitRequest::new(ElicitRequestParams::FormElicitationParams { meta: None, message, requested_schema }))
}

/// What a person answered in a form. Closing it says nothing about the change.
pub(super) fn answer(given: &ElicitResult) -> Answer {
    let content = |key| given.content.as_ref().and_then(|content| content.get(key));
    let reason = content("reason").and_then(Value::as_str).unwrap_or_default();
    match given.action {
        ElicitationAction::Accept if content("approve") == Some(&Value::Bool(true)) => Answer::yes(Vec::new()),
        ElicitationAction::Accept | ElicitationAction::Decline => Answer::no(refusal("change", reason)),
        // Closed, or something that a newer protocol has.
        _ => closed(),
    }
}

/// The answer where the question was closed without one.
pub(super) fn closed() -> Answer {
    let message = "a person has to agree, and the question was closed without an answer";
    Answer::no(Failure::new(Reason::ApprovalRequired, message).hint(WAYS))
}

/// Everything there is to see, what needs attention first; nothing if that is too long. It stands in a fence that nothing in it can close,
/// and long lines go on in marked rows: a client that renders the text hides no part of it.
fn message(question: &Question, places: &Places) -> Option<String> {
    let shown = &question.shown;
    let attention = shown.files.iter().filter_map(|file| file.attention.as_ref());
    let change = shown.files.iter().flat_map(|file| &file.lines).chain(&shown.unchanged);
    let mut all = String::new();
    for line in shown.head.iter().chain(attention).chain(change) {
        if all.len() + line.text.len() > BYTES {
            return None;
        }
        // Without its style, which is for terminals.
        let mut line = Line { kind: line.kind, text: line.text.clone(), ..Line::default() };
        places.name(&mut line.text);
        all.extend(rows(&[line], COLUMNS));
    }
    let longest = all.split(|char| char != '`').map(str::len).max().unwrap_or_default();
    let fence = "`".repeat(longest.max(2) + 1);
    let (totals, digest) = (&shown.totals, &shown.digest.text);
    Some(format!("A person has to agree to this change: {totals}.\n\n{fence}\n{all}{fence}\n{digest}\n"))
}
