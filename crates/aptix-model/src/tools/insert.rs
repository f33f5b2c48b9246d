//! `prepare_file_insert_after` and `prepare_file_insert_before`: plan lines beside a line that an anchor describes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::names;
use super::planning::{MATCHES, Which, anchor, matching, planned, prepare};
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::{Anchor, AnchorPlace};
use crate::failure::Failure;

/// What both tools say about their inputs.
macro_rules! anchored {
    () => {
        "\n\nInputs: path, anchor, content, match, occurrence (without one, an anchor that fits several lines is \
         refused with those lines), existing_hunk_id."
    };
}

pub(super) const AFTER: Tool = Tool {
    name: "prepare_file_insert_after",
    description: concat!("Plan lines below a line that an anchor describes. Writes nothing.", anchored!(), planned!()),
    set: Set::Other,
    effect: Effect::Prepares,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text, _| read(text, |arguments| call(arguments, AnchorPlace::After)),
};

pub(super) const BEFORE: Tool = Tool {
    name: "prepare_file_insert_before",
    description: concat!("Plan lines above a line that an anchor describes. Writes nothing.", anchored!(), planned!()),
    set: Set::Other,
    effect: Effect::Prepares,
    form: Form::Plain,
    dialect: None,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text, _| read(text, |arguments| call(arguments, AnchorPlace::Before)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, from the workspace root: src/main.rs
    path: String,
    /// What describes the line
    anchor: String,
    /// The lines that come
    content: String,
    /// How the anchor is compared with a line; empty: contains
    #[serde(rename = "match")]
    #[schemars(extend("enum" = names(MATCHES), "default" = "contains"))]
    matching: Option<String>,
    /// Which of several lines that fit: from 1, or "last"; 0 or empty: it fits one line
    occurrence: Option<Which>,
    /// A plan of yours, of the same tool, that this one replaces; empty: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments, place: fn(Anchor) -> AnchorPlace) -> Result<Call, Failure> {
    let matching = matching(arguments.matching.as_deref())?;
    let anchor = anchor(arguments.anchor, matching, arguments.occurrence)?;
    prepare(&arguments.path, place(anchor), arguments.content, arguments.existing_hunk_id)
}
