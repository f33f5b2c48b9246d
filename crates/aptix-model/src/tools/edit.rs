//! `edit`: replaces one text of a file by another, in the arguments that models know from coding agents.

use schemars::JsonSchema;
use serde::Deserialize;

use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::{
    Content, EditorCommand, EditorCommands, FileEdit, FilePatch, Presence, Replacement, Replacements, Scope, Target,
    WriteFile,
};
use crate::documents::terms::Wording;
use crate::failure::Failure;
use crate::path::document_spelling;

pub(super) const TOOL: Tool = Tool {
    name: "edit",
    description: "Replace one text of a file by another.\n\n\
        Inputs: file_path, old_string (empty: file_path is a new file with new_string as its content), new_string \
        (empty: old_string is removed), replace_all.\n\n\
        Behavior: old_string must occur exactly once, unless replace_all is true; give lines around it to make it \
        unique.\n\n\
        Output: where the text is now, the file's SHA-256, warnings, the unified diff.",
    set: Set::Core,
    effect: Effect::Writes,
    form: Form::Batch,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::batch,
    parse: |text, _| read(text, call),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace root: src/main.rs
    file_path: String,
    /// The text as it is in the file, with its white space; empty: the file is new
    old_string: String,
    /// The text that takes its place
    new_string: String,
    /// true: every place where it occurs
    #[schemars(extend("default" = false))]
    replace_all: Option<bool>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    let Arguments { file_path, old_string, new_string, replace_all } = arguments;
    let edit = match (old_string.is_empty(), replace_all.unwrap_or_default()) {
        (true, _) => FileEdit::WriteFile(WriteFile {
            content: Content::Text(new_string),
            presence: Presence::Absent,
            content_format: None,
        }),
        (false, true) => {
            let step = Replacement { find: old_string, replace: new_string, scope: Scope::All };
            FileEdit::Replacements(Replacements { steps: vec![step] })
        }
        (false, false) => {
            let command = EditorCommand::StrReplace { old_text: old_string, new_text: new_string };
            FileEdit::EditorCommands(EditorCommands { commands: vec![command] })
        }
    };
    let patch = FilePatch { target: Target::Path(document_spelling(&file_path)), key: None, label: None, edit };
    Ok(Call::Edit { patch, wording: Wording::Edit })
}
