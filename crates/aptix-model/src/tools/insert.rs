//! `prepare_file_insert_after` and `prepare_file_insert_before`: plan lines beside a line that an anchor describes.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::names;
use super::planning::{MATCHES, Which, anchor, apart, matching, planned, prepare};
use super::tool::{Call, Effect, Form, Tool, read};
use super::{answer, schema};
use crate::batch::{Anchor, AnchorPlace};
use crate::failure::Failure;

/// What both tools say about their inputs.
macro_rules! anchored {
    () => {
        "\n\nInputs: path, anchor, content, match (how the anchor is compared with a line: contains, the default, equals \
         or regex), occurrence (which of several lines that fit: a number from 1, or last; empty or 0: the anchor fits \
         one line, or the call is refused with the lines that fit), existing_hunk_id (a plan of yours that this one \
         replaces; empty: a new one)."
    };
}

pub(super) const AFTER: Tool = Tool {
    name: "prepare_file_insert_after",
    description: concat!(
        "Plan lines below a line that an anchor describes. Writes nothing.",
        anchored!(),
        planned!(),
        apart!()
    ),
    effect: Effect::Prepares,
    form: Form::Plain,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text| read(text, |arguments| call(arguments, AnchorPlace::After)),
};

pub(super) const BEFORE: Tool = Tool {
    name: "prepare_file_insert_before",
    description: concat!(
        "Plan lines above a line that an anchor describes. Writes nothing.",
        anchored!(),
        planned!(),
        apart!()
    ),
    effect: Effect::Prepares,
    form: Form::Plain,
    input: schema::input::<Arguments>,
    output: answer::planned,
    parse: |text| read(text, |arguments| call(arguments, AnchorPlace::Before)),
};

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// The file, relative to the workspace root, with forward slashes: src/main.rs
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
    /// A plan of yours, made by the same tool, that this one replaces; empty or left out: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments, place: fn(Anchor) -> AnchorPlace) -> Result<Call, Failure> {
    let matching = matching(arguments.matching.as_deref())?;
    let anchor = anchor(arguments.anchor, matching, arguments.occurrence)?;
    prepare(&arguments.path, place(anchor), arguments.content, arguments.existing_hunk_id)
}
