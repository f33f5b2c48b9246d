//! `overwrite_entire_file`: replaces the whole content of a file that exists.

use schemars::JsonSchema;
use serde::Deserialize;

use super::planning::patch;
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::AnchorPlace;
use crate::documents::fields::given;
use crate::documents::terms::Wording;
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "overwrite_entire_file",
    description: "Replace the whole content of a file that exists, in one call, without a plan.\n\n\
        Inputs: path, content (all of it), content_format (what the content is, for example verbatim, text or diff; \
        empty: undeclared, and content that looks like a diff, a fenced block or a text with lines left out is \
        refused).\n\n\
        Behavior: every line is written with a terminator, the last one too. A file that does not exist is \
        refused: use workspace_create_file.\n\n\
        Output: the file's status and SHA-256, normalized flags, the unified diff.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::batch,
    parse: |text, _| read(text, call),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace root: src/main.rs
    path: String,
    /// The whole new content
    content: String,
    /// What the content is, for example verbatim, text or diff; empty: undeclared, and content that looks like a diff, a
    /// fenced block or a text with lines left out is refused
    content_format: Option<String>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    let place = AnchorPlace::Whole { content_format: given(arguments.content_format) };
    Ok(Call::Edit { patch: patch(&arguments.path, place, arguments.content), wording: Wording::File })
}
