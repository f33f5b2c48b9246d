//! `delete_file` and `move_file`.

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::{ContextPatch, FileEdit, FilePatch, Target};
use crate::documents::terms::Wording;
use crate::path::document_spelling;

pub(super) const DELETE: Tool = Tool {
    name: "delete_file",
    description: "Delete a file.\n\n\
        Inputs: path.\n\n\
        Behavior: a missing file and a directory are refused. Unless the policy allows deletions, a person has to \
        delete the file.\n\n\
        Output: the file's status, its SHA-256 before, the unified diff.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Delete>,
    output: answer::batch,
    parse: |text, _| read(text, |arguments: Delete| Ok(call(&arguments.path, FileEdit::DeleteFile))),
};

pub(super) const MOVE: Tool = Tool {
    name: "move_file",
    description: "Move or rename a file, with its content unchanged.\n\n\
        Inputs: path, to (the new path).\n\n\
        Behavior: refused if there is a file at the new path. Missing directories are made.\n\n\
        Output: the file's status and both paths.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Move>,
    output: answer::batch,
    parse: |text, _| read(text, |arguments| Ok(moved(&arguments))),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Delete {
    /// The file, from the workspace root: src/main.rs
    path: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Move {
    /// The file, from the workspace root: src/main.rs
    path: String,
    /// Its new path, from the workspace root
    to: String,
}

fn moved(arguments: &Move) -> Call {
    let edit = ContextPatch { move_to: Some(document_spelling(&arguments.to)), chunks: Vec::new() };
    call(&arguments.path, FileEdit::ContextPatch(edit))
}

fn call(path: &str, edit: FileEdit) -> Call {
    let patch = FilePatch { target: Target::Path(document_spelling(path)), key: None, label: None, edit };
    Call::Edit { patch, wording: Wording::File }
}
