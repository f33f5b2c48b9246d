//! The tools that models call: names, descriptions and schemas of arguments and answers, and how arguments become calls
//! (TUL-002, TUL-004 4 and 7.1, REQ-PATCH, WS-MOD).
//!
//! A tool is one file with its `TOOL`, and a line in [`TOOLS`].

mod answer;
mod append;
mod apply;
mod arguments;
mod block_replace;
pub mod create_file;
mod insert;
pub mod look;
mod overwrite;
mod patch;
mod planning;
pub mod preview;
mod range_edit;
pub mod read_file;
pub mod ripgrep;
mod schema;
pub mod tool;
mod write_patch;

use crate::documents::json;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};
use tool::Tool;

/// Every tool, in the order in which models read them.
pub const TOOLS: &[Tool] = &[
    write_patch::TOOL,
    patch::TOOL,
    create_file::TOOL,
    range_edit::TOOL,
    append::TOOL,
    insert::AFTER,
    insert::BEFORE,
    block_replace::TOOL,
    apply::TOOL,
    overwrite::TOOL,
    read_file::TOOL,
    ripgrep::FILES,
    ripgrep::CONTENT,
];

/// Tools that earlier versions had, and those that took their place (WS-MOD 1).
const GONE: [(&str, &str); 5] = [
    ("append_file", "prepare_file_append"),
    ("insert_after", "prepare_file_insert_after"),
    ("insert_before", "prepare_file_insert_before"),
    ("replace_block", "prepare_file_block_replace"),
    ("apply_block_replace", "apply_file_modification"),
];

/// Finds a tool by its name.
///
/// # Errors
/// When there is none, with the name that was most likely meant.
pub fn find(name: &str) -> Result<&'static Tool, Failure> {
    TOOLS.iter().find(|tool| tool.name == name).ok_or_else(|| unknown(name))
}

fn unknown(name: &str) -> Failure {
    let shown: String = name.chars().take(40).collect();
    let failure =
        Failure::new(Reason::InvalidRequest, format!("there is no tool {shown:?}")).detail(Detail::UnknownOperation);
    if let Some((_, now)) = GONE.iter().find(|(gone, _)| *gone == name) {
        return failure.hint(format!("it was removed; use {now}"));
    }
    let names = || TOOLS.iter().map(|tool| tool.name);
    match json::nearest(name, names()) {
        Some(near) => failure.hint(format!("did you mean {near}?")),
        None => failure.hint(format!("the tools are {}", names().collect::<Vec<_>>().join(", "))),
    }
}
