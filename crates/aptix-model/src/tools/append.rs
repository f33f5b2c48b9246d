//! `prepare_file_append`: plans lines at the end of a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::planning::{planned, prepare};
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::AnchorPlace;
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "prepare_file_append",
    description: concat!(
        "Plan lines at the end of a file; a missing file is created. Writes nothing.\n\n\
        Inputs: path, content, existing_hunk_id.",
        planned!()
    ),
    set: Set::Other,
    effect: Effect::Prepares,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text, _| read(text, call),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace root: src/main.rs
    path: String,
    /// The lines that come at the end
    content: String,
    /// A plan of yours, of the same tool, that this one replaces; empty: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    prepare(&arguments.path, AnchorPlace::Append, arguments.content, arguments.existing_hunk_id)
}
