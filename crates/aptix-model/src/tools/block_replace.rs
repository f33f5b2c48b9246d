//! `prepare_file_block_replace`: plans the replacement of the lines between two lines that anchors describe.

use schemars::JsonSchema;
use serde::Deserialize;

use super::arguments::names;
use super::planning::{MATCHES, Which, anchor, matching, planned, prepare};
use super::tool::{Call, Effect, Form, Set, Tool, read};
use super::{answer, schema};
use crate::batch::AnchorPlace;
use crate::failure::Failure;

pub(super) const TOOL: Tool = Tool {
    name: "prepare_file_block_replace",
    description: concat!(
        "Plan the replacement of the lines between two lines that anchors describe. Writes nothing.\n\n\
        Inputs: path, start_anchor, end_anchor (the next line below the start that fits), content, \
        include_anchors (false: the two anchor lines are replaced as well), match (for both anchors), occurrence \
        (of the start anchor), existing_hunk_id.",
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
    /// What describes the line above the block
    start_anchor: String,
    /// What describes the line below it: the next one below the start that fits
    end_anchor: String,
    /// What comes in the place of the block; empty: it goes
    content: String,
    /// true: the two anchor lines stay; false: they are replaced as well
    #[schemars(extend("default" = true))]
    include_anchors: Option<bool>,
    /// How the anchor is compared with a line; empty: contains
    #[serde(rename = "match")]
    #[schemars(extend("enum" = names(MATCHES), "default" = "contains"))]
    matching: Option<String>,
    /// Which of several start lines: from 1, or "last"; 0 or empty: it fits one line
    occurrence: Option<Which>,
    /// A plan of yours, of the same tool, that this one replaces; empty: a new plan
    existing_hunk_id: Option<String>,
}

fn call(arguments: Arguments) -> Result<Call, Failure> {
    let matching = matching(arguments.matching.as_deref())?;
    let place = AnchorPlace::Between {
        start: anchor(arguments.start_anchor, matching, arguments.occurrence)?,
        end: anchor(arguments.end_anchor, matching, None)?,
        takes_anchors: !arguments.include_anchors.unwrap_or(true),
    };
    prepare(&arguments.path, place, arguments.content, arguments.existing_hunk_id)
}
