//! The calls of the prepare-first tools: an edit to plan, or a planned one to apply (WS-MOD 2.1, 4.2).
//!
//! Providers that require every field send fill-in values; each of these means that the field was left out.

use std::format;
use std::string::{String, ToString};

use serde::Deserialize;

use crate::batch::{Anchor, AnchorEdit, AnchorMatch, AnchorPlace, FileEdit, FilePatch, Occurrence, Target};
use crate::documents::fields::given;
use crate::documents::json;
use crate::failure::Failure;
use crate::id::FilePatchId;
use crate::path::document_spelling;
use crate::reason::{Detail, Reason};

/// The tools, by name.
pub const TOOLS: [&str; 7] = [
    "prepare_file_range_edit",
    "prepare_file_append",
    "prepare_file_insert_after",
    "prepare_file_insert_before",
    "prepare_file_block_replace",
    "overwrite_entire_file",
    "apply_file_modification",
];

/// Tools that there were before: what they did is prepared now, then applied (WS-MOD 1).
const GONE: [(&str, &str); 5] = [
    ("append_file", "prepare_file_append"),
    ("insert_after", "prepare_file_insert_after"),
    ("insert_before", "prepare_file_insert_before"),
    ("replace_block", "prepare_file_block_replace"),
    ("apply_block_replace", "apply_file_modification"),
];

/// What a call asks for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Call {
    /// To plan an edit, in the place of an earlier plan if one is named.
    Prepare {
        /// The edit.
        patch: FilePatch,
        /// The plan whose place it takes.
        existing: Option<FilePatchId>,
    },
    /// To write a planned edit.
    Apply {
        /// The plan.
        hunk: FilePatchId,
    },
    /// To write a whole file without a plan.
    Overwrite {
        /// The edit.
        patch: FilePatch,
    },
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RangeEdit {
    path: String,
    range: String,
    content: String,
    existing_hunk_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Append {
    path: String,
    content: String,
    existing_hunk_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Insert {
    path: String,
    anchor: String,
    content: String,
    #[serde(rename = "match")]
    matching: Option<String>,
    occurrence: Option<Which>,
    existing_hunk_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BlockReplace {
    path: String,
    start_anchor: String,
    end_anchor: String,
    content: String,
    include_anchors: Option<bool>,
    #[serde(rename = "match")]
    matching: Option<String>,
    occurrence: Option<Which>,
    existing_hunk_id: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Overwrite {
    path: String,
    content: String,
    content_format: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Apply {
    hunk_id: String,
}

/// An occurrence as it is written: a number or a word.
#[derive(Deserialize)]
#[serde(untagged, expecting = "expected a number from 1, or \"last\"; 0 or empty for none")]
enum Which {
    Number(u32),
    Word(String),
}

/// Reads the arguments of a call of the tool with this name.
///
/// # Errors
/// When there is no such tool, or the arguments do not have its shape.
pub fn parse(tool: &str, arguments: &str) -> Result<Call, Failure> {
    match tool {
        "prepare_file_range_edit" => {
            let call: RangeEdit = json::from_str(arguments)?;
            let (start_line, end_line) = range(&call.range)?;
            prepare(&call.path, AnchorPlace::Range { start_line, end_line }, call.content, call.existing_hunk_id)
        }
        "prepare_file_append" => {
            let call: Append = json::from_str(arguments)?;
            prepare(&call.path, AnchorPlace::Append, call.content, call.existing_hunk_id)
        }
        "prepare_file_insert_after" | "prepare_file_insert_before" => {
            let call: Insert = json::from_str(arguments)?;
            let anchor = Anchor {
                text: call.anchor,
                matching: matching(call.matching.as_deref())?,
                occurrence: occurrence(call.occurrence)?,
            };
            let place = if tool.ends_with("after") { AnchorPlace::After(anchor) } else { AnchorPlace::Before(anchor) };
            prepare(&call.path, place, call.content, call.existing_hunk_id)
        }
        "prepare_file_block_replace" => {
            let call: BlockReplace = json::from_str(arguments)?;
            let matching = matching(call.matching.as_deref())?;
            let start = Anchor { text: call.start_anchor, matching, occurrence: occurrence(call.occurrence)? };
            let end = Anchor { text: call.end_anchor, matching, occurrence: None };
            let takes_anchors = !call.include_anchors.unwrap_or(true);
            let place = AnchorPlace::Between { start, end, takes_anchors };
            prepare(&call.path, place, call.content, call.existing_hunk_id)
        }
        "overwrite_entire_file" => {
            let call: Overwrite = json::from_str(arguments)?;
            let place = AnchorPlace::Whole { content_format: given(call.content_format) };
            Ok(Call::Overwrite { patch: patch(&call.path, place, call.content) })
        }
        "apply_file_modification" => {
            let call: Apply = json::from_str(arguments)?;
            Ok(Call::Apply { hunk: hunk_id("hunk_id", &call.hunk_id)? })
        }
        _ => Err(unknown_tool(tool, &TOOLS)),
    }
}

/// Refuses a call of a tool that is none of these.
#[must_use]
pub fn unknown_tool(tool: &str, tools: &[&str]) -> Failure {
    let shown: String = tool.chars().take(40).collect();
    let failure =
        Failure::new(Reason::InvalidRequest, format!("there is no tool {shown:?}")).detail(Detail::UnknownOperation);
    match GONE.iter().find(|(gone, _)| *gone == tool) {
        Some((_, now)) => failure.hint(format!("it was removed; use {now}")),
        None => match json::nearest(tool, tools.iter().copied()) {
            Some(near) => failure.hint(format!("did you mean {near}?")),
            None => failure.hint(format!("the tools are {}", tools.join(", "))),
        },
    }
}

fn patch(path: &str, place: AnchorPlace, content: String) -> FilePatch {
    let edit = FileEdit::AnchorEdit(AnchorEdit { place, content });
    FilePatch { target: Target::Path(document_spelling(path)), key: None, label: None, edit }
}

fn prepare(path: &str, place: AnchorPlace, content: String, existing: Option<String>) -> Result<Call, Failure> {
    let existing = given(existing).map(|id| hunk_id("existing_hunk_id", &id)).transpose()?;
    Ok(Call::Prepare { patch: patch(path, place, content), existing })
}

fn hunk_id(field: &str, text: &str) -> Result<FilePatchId, Failure> {
    text.parse().map_err(|error| {
        Failure::new(Reason::InvalidRequest, format!("{error}"))
            .detail(Detail::IdFormat)
            .field(field)
            .hint("give the hunk_id that preparing the edit gave; ids are never chosen")
    })
}

/// Reads `10~20`, `10`, `10~`, `~20` or `~`: first and last line, each the file's own if left out.
pub(super) fn range(text: &str) -> Result<(i64, Option<i64>), Failure> {
    let number = |part: &str| part.trim().parse::<i64>().ok();
    let parts = match text.split_once('~') {
        None => number(text).map(|line| (line, Some(line))),
        Some((first, last)) => {
            let first = if first.trim().is_empty() { Some(1) } else { number(first) };
            let last = if last.trim().is_empty() { Some(None) } else { number(last).map(Some) };
            first.zip(last)
        }
    };
    parts.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failure::new(Reason::InvalidRequest, format!("{shown:?} is no range of lines"))
            .detail(Detail::Number)
            .field("range")
            .hint("write 10~20 for lines 10 to 20, 10 for one line, 10~ for line 10 to the end, ~20 for the first 20")
    })
}

fn matching(word: Option<&str>) -> Result<AnchorMatch, Failure> {
    match word.unwrap_or_default() {
        "" | "contains" => Ok(AnchorMatch::Contains),
        "equals" => Ok(AnchorMatch::Equals),
        "regex" => Ok(AnchorMatch::Regex),
        other => {
            let shown: String = other.chars().take(40).collect();
            Err(Failure::new(Reason::InvalidRequest, format!("there is no match {shown:?}"))
                .detail(Detail::UnknownEnum)
                .field("match")
                .hint("match says how the anchor is compared: contains (the default), equals or regex"))
        }
    }
}

fn occurrence(which: Option<Which>) -> Result<Option<Occurrence>, Failure> {
    let word = match which {
        None | Some(Which::Number(0)) => return Ok(None),
        Some(Which::Number(number)) => return Ok(Some(Occurrence::Number(number))),
        Some(Which::Word(word)) => word,
    };
    match (word.as_str(), word.parse()) {
        ("", _) | (_, Ok(0)) => Ok(None),
        ("last", _) => Ok(Some(Occurrence::Last)),
        (_, Ok(number)) => Ok(Some(Occurrence::Number(number))),
        (_, Err(_)) => {
            let shown = word.chars().take(40).collect::<String>().to_string();
            Err(Failure::new(Reason::InvalidRequest, format!("{shown:?} is no occurrence"))
                .detail(Detail::Occurrence)
                .field("occurrence")
                .hint("count from 1, or say last; leave it out if the anchor fits one line"))
        }
    }
}
