//! `prepare_file_append`: plans lines at the end of a file.

use schemars::JsonSchema;
use serde::Deserialize;

use super::planning::{apart, planned, prepare};
use super::tool::{Call, Effect, Form, Tool, read};
use super::{answer, schema};
use crate::batch::AnchorPlace;
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "prepare_file_append",
    description: concat!(
        "Plan lines at the end of a file; a file that is not there is made. Writes nothing.\n\n\
        Inputs: path, content, existing_hunk_id (a plan of yours that this one replaces; empty: a new one).",
        planned!(),
        apart!()
    ),
    effect: Effect::Prepares,
    form: Form::Plain,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text| read(text, call),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace root, with forward slashes: src/main.rs
    path: String,
    /// The lines that come at the end
    content: String,
    /// A plan of yours, made by the same tool, that this one replaces; empty or left out: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    prepare(&arguments.path, AnchorPlace::Append, arguments.content, arguments.existing_hunk_id)
}
