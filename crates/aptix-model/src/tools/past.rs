//! `history`, `get_patch_change` and `undo`: the batches that were applied, one of them, and taking one back.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::arguments::count;
use super::look::{Look, MOST_BATCHES, USUAL_BATCHES};
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::limits::Limits;
use crate::reason::{Detail, Reason};

/// What to do about a batch that is not known, or not to be undone.
pub const LISTED: &str = "history lists the batches that are known, with their ids";

pub(super) const HISTORY: Tool = Tool {
    name: "history",
    description: "List the batches that were applied in the workspace, the newest first.\n\n\
        Inputs: path (only batches that touched it; empty: all), max_batches (0: 20; at most 200).\n\n\
        Behavior: edits by other programs are in no batch.\n\n\
        Output: batches, each with batchId, batchLabel, appliedUnixMs, files (path, status, renamedTo), undoes, \
        undoneBy, canBeUndone.",
    set: Set::Other,
    effect: Effect::Reads,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<History>,
    output: answer::or_errors::<Batches>,
    parse: |text, roots| {
        read(text, |arguments: History| {
            let most = count("max_batches", arguments.max_batches, USUAL_BATCHES, MOST_BATCHES)? as usize;
            Ok(Call::Look(Look::History { most, path: roots.directory(arguments.path.as_deref())? }))
        })
    },
};

pub(super) const CHANGE: Tool = Tool {
    name: "get_patch_change",
    description: "Show a batch that was applied, one file of it or one change of it, with its diff.\n\n\
        Inputs: id (a batchId, filePatchId or changeId, or its beginning).\n\n\
        Behavior: files that read_file does not show are refused.\n\n\
        Output: what the batch was answered with: files, changes and where they were put, the unified diff.",
    set: Set::Other,
    effect: Effect::Reads,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Change>,
    output: answer::batch,
    parse: |text, _| read(text, |arguments: Change| shown(&arguments.id)),
};

pub(super) const UNDO: Tool = Tool {
    name: "undo",
    description: "Take back what one batch changed, and nothing that came later.\n\n\
        Inputs: batch_id (from the edit's answer or history), reason.\n\n\
        Behavior: all files or none; refused where a later edit changed the same lines, and, unless the policy allows \
        deletions, where it would delete a file that the batch created (APPROVAL_REQUIRED). An undo can be undone.\n\n\
        Output: each file with its status and SHA-256, the unified diff.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Undo>,
    output: answer::batch,
    parse: |text, _| read(text, |arguments: Undo| undone(arguments)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct History {
    /// Only batches that touched this file or directory, from the workspace root; empty: all
    path: Option<String>,
    /// Batches at most; 0: 20; never more than 200
    max_batches: Option<Whole>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Change {
    /// A batchId, filePatchId or changeId, or its beginning
    id: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Undo {
    /// The batchId of the batch
    batch_id: String,
    /// Why; empty: none
    reason: Option<String>,
}

/// The newest batches of a workspace.
#[derive(Serialize, JsonSchema, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct Batches {
    pub success: bool,
    #[schemars(with = "Vec<u8>")]
    pub batches: Vec<PastBatch>,
}

/// A batch that was applied.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct PastBatch {
    pub batch_id: String,
    pub batch_label: Option<String>,
    pub applied_unix_ms: u64,
    pub files: Vec<PastFile>,
    pub undoes: Option<String>,
    pub undone_by: Option<String>,
    pub can_be_undone: bool,
}

/// A file of a batch that was applied.
#[derive(Serialize, Debug)]
#[serde(rename_all = "camelCase")]
#[expect(missing_docs, reason = "the keys are those of the tool's description")]
pub struct PastFile {
    pub path: String,
    pub status: &'static str,
    pub renamed_to: Option<String>,
}

fn shown(id: &str) -> Result<Call, Failure> {
    let fits = |byte: u8| byte.is_ascii_hexdigit() || byte == b'-';
    if id.is_empty() || id.len() > 36 || !id.bytes().all(fits) {
        return Err(no_id("id", id, "give an id from an answer, or its beginning; history lists the batches"));
    }
    Ok(Call::Look(Look::Show { id: id.to_ascii_lowercase() }))
}

fn undone(Undo { batch_id, reason }: Undo) -> Result<Call, Failure> {
    let hint = "give the batchId of the answer to the edit, or one that history lists";
    let batch = batch_id.parse().map_err(|_| no_id("batch_id", &batch_id, hint))?;
    let (length, most) = (reason.as_ref().map_or(0, String::len), Limits::DEFAULT.text_bytes);
    if length > most {
        let message = format!("the reason has {length} bytes, at most {most} are kept");
        return Err(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("reason"));
    }
    Ok(Call::Undo { batch, reason: reason.filter(|reason| !reason.is_empty()) })
}

fn no_id(field: &str, id: &str, hint: &str) -> Failure {
    let shown: String = id.chars().take(40).collect();
    Failure::new(Reason::InvalidRequest, format!("{shown:?} is no id")).detail(Detail::IdFormat).field(field).hint(hint)
}

impl Batches {
    /// As people and models read it: a batch on each line.
    #[must_use]
    pub fn text(&self) -> String {
        let mut text = String::new();
        for batch in &self.batches {
            let files: Vec<_> = batch.files.iter().map(|file| format!("{} {}", file.status, file.path)).collect();
            text.push_str(&format!("{}  {}", batch.batch_id, files.join(", ")));
            if let Some(label) = batch.batch_label.as_ref().filter(|_| batch.undoes.is_none()) {
                text.push_str(&format!("  {label:?}"));
            }
            if let Some(undone) = &batch.undoes {
                text.push_str(&format!("  (undid {undone})"));
            }
            if let Some(undo) = &batch.undone_by {
                text.push_str(&format!("  (undone by {undo})"));
            }
            text.push('\n');
        }
        if self.batches.is_empty() {
            text.push_str("no batches\n");
        }
        text
    }
}
