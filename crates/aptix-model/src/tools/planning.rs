//! What the prepare-first tools share: the words of their descriptions, and how their arguments become an edit (WS-MOD 2.1, 4.2).

use std::borrow::Cow;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::Deserialize;

use super::arguments::{Words, word};
use super::tool::Call;
use crate::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, FileEdit, FilePatch, Occurrence, Target};
use crate::documents::fields::given;
use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::id::FilePatchId;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};

/// What every prepare tool says about its answer.
macro_rules! planned {
    () => {
        "\n\nOutput: a YAML summary with hunk_id, expires_at_ms (one hour), the lines of the place (evidence), \
         normalized.* flags, a style_warning about blank lines where there is one; and the unified diff. A later \
         message applies it with apply_file_modification."
    };
}

pub(super) use planned;

/// How an anchor is compared with a line.
pub(super) const MATCHES: Words<AnchorMatch> = &[
    ("", AnchorMatch::Contains),
    ("contains", AnchorMatch::Contains),
    ("equals", AnchorMatch::Equals),
    ("regex", AnchorMatch::Regex),
];

/// An occurrence as a caller writes it: a number or a word.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number from 1, or \"last\"; 0 or empty for none")]
pub(super) enum Which {
    Number(Whole),
    Word(String),
}

impl JsonSchema for Which {
    fn schema_name() -> Cow<'static, str> {
        "Which".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({ "type": ["integer", "string"], "minimum": 0, "maximum": u32::MAX })
    }
}

/// The edit of one file at a place in it.
pub(super) fn patch(path: &str, place: AnchorPlace, content: String) -> FilePatch {
    let edit = FileEdit::AnchorEdit(AnchorEdit { place, content });
    FilePatch { target: Target::Path(document_spelling(path)), key: None, label: None, edit }
}

/// The call that plans an edit; `existing` names the plan that it replaces.
pub(super) fn prepare(
    path: &str,
    place: AnchorPlace,
    content: String,
    existing: Option<String>,
) -> Result<Call, Failure> {
    let existing = given(existing).map(|id| hunk_id("existing_hunk_id", &id)).transpose()?;
    Ok(Call::Prepare { patch: patch(path, place, content), existing })
}

/// Parses the id of a plan.
pub(super) fn hunk_id(field: &str, text: &str) -> Result<FilePatchId, Failure> {
    text.parse().map_err(|error| {
        Failure::new(Reason::InvalidRequest, format!("{error}"))
            .detail(Detail::IdFormat)
            .field(field)
            .hint("give the hunk_id that preparing the edit gave; ids are never chosen")
    })
}

/// The anchor that a call describes.
pub(super) fn anchor(text: String, matching: AnchorMatch, which: Option<Which>) -> Result<Anchor, Failure> {
    Ok(Anchor { text, matching, occurrence: occurrence(which)? })
}

/// Parses `match`.
pub(super) fn matching(text: Option<&str>) -> Result<AnchorMatch, Failure> {
    let hint = "match says how the anchor is compared: contains (the default), equals or regex";
    word("match", text, MATCHES, hint)
}

fn occurrence(which: Option<Which>) -> Result<Option<Occurrence>, Failure> {
    let word = match which {
        None => return Ok(None),
        Some(Which::Number(Whole(number))) => number.to_string(),
        Some(Which::Word(word)) => word,
    };
    match (word.as_str(), word.parse()) {
        ("", _) | (_, Ok(0)) => Ok(None),
        ("last", _) => Ok(Some(Occurrence::Last)),
        (_, Ok(number)) => Ok(Some(Occurrence::Number(number))),
        (_, Err(_)) => {
            let shown: String = word.chars().take(40).collect();
            Err(Failure::new(Reason::InvalidRequest, format!("{shown:?} is no occurrence"))
                .detail(Detail::Occurrence)
                .field("occurrence")
                .hint("count from 1, or say last; leave it out if the anchor fits one line"))
        }
    }
}
