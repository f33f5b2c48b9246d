//! `apply_file_modification`: applies an edit that a `prepare_file_*` tool planned.

use schemars::JsonSchema;
use serde::Deserialize;

use super::planning::hunk_id;
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "apply_file_modification",
    description: "Write one edit that a prepare_file_* tool planned.\n\n\
        Inputs: hunk_id, as preparing gave it.\n\n\
        Behavior: writes exactly what was planned. If the place or the lines that single it out changed since, \
        nothing is written: prepare the edit again. A plan is applied once, by the caller that prepared it, within its hour.\n\n\
        Output: a YAML summary with the lines as they are now (apply_evidence), and the unified diff.\n\n\
        Order: calls of one message run in parallel and do not see each other's results. Never mix preparing \
        (prepare_file_*) and applying in one message: prepare, read the answer, and apply in the next message.",
    set: Set::Other,
    effect: Effect::Writes,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text, _| read(text, call),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The plan, as preparing it gave it
    hunk_id: String,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    Ok(Call::Apply { hunk: hunk_id("hunk_id", &arguments.hunk_id)? })
}
