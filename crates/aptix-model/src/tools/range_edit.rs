//! `prepare_file_range_edit`: plans the replacement of lines by their numbers.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::range;
use super::planning::{planned, prepare};
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::AnchorPlace;
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "prepare_file_range_edit",
    description: concat!(
        "Plan the replacement of lines of a file by their numbers. Writes nothing.\n\n\
        Inputs: path, range (10~20 for lines 10 to 20, 10 for one line, 10~ to the end, ~20 for the first 20), \
        content (empty: the lines are removed), existing_hunk_id.",
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
    /// 10~20 for lines 10 to 20, 10 for one line, 10~ to the end, ~20 for the first 20
    range: String,
    /// What comes in their place; empty: they go
    content: String,
    /// A plan of yours, of the same tool, that this one replaces; empty: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    let (start_line, end_line) = range(&arguments.range)?;
    let place = AnchorPlace::Range { start_line, end_line };
    prepare(&arguments.path, place, arguments.content, arguments.existing_hunk_id)
}
