//! Calls of tools that an answer has outside of its blocks: `<tool_call>` around the name and the arguments of a tool that
//! takes a document, or a tag that begins with `aptix` around a document. The same JSON in a block is read here, too.

use std::borrow::ToOwned;
use std::boxed::Box;
use std::format;
use std::string::String;
use std::vec::Vec;

use serde::Deserialize;
use serde_json::value::RawValue;

use super::fence::{Block, Closing};
use super::json as blocks_of_json;
use super::place::{at_its_lines, within};
use crate::documents::{Dialect, json};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const OWN: &str = "<aptix";

const FORM: &str = "write the call as {\"name\": ..., \"arguments\": {...}}, or its edit as a file bundle";

/// The tools whose arguments are a document, and the dialect that it is written in.
const TOOLS: [(&str, Dialect); 7] = [
    ("workspace_create_file", Dialect::CreateFile),
    ("workspace_write_patch", Dialect::LinePatch),
    ("patch", Dialect::SearchPatch),
    ("str_replace_based_edit_tool", Dialect::StrReplace),
    ("str_replace_editor", Dialect::StrReplace),
    ("str_replace_based_edit", Dialect::StrReplace),
    ("text_editor", Dialect::StrReplace),
];

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    arguments: Box<RawValue>,
}

/// Takes the calls out of the text outside of an answer's blocks: each with its dialect, and blank lines in its place.
///
/// # Errors
/// A call that does not end, or that calls no tool of ours.
pub(super) fn take_out(text: &str) -> Result<(String, Vec<(Dialect, Block)>), Failure> {
    let (mut rest, mut calls) = (String::new(), Vec::new());
    let mut lines = text.split_inclusive('\n').enumerate();
    while let Some((index, line)) = lines.next() {
        let words = line.trim_start();
        let Some(close) = closing(words) else {
            rest.push_str(line);
            continue;
        };
        let first_line = index + 1;
        let (mut whole, mut last_line) = (line.to_owned(), first_line);
        rest.push('\n');
        let mut has_end = line.contains(&close);
        while !has_end {
            let Some((index, line)) = lines.next() else { return Err(endless(first_line, &close)) };
            has_end = line.contains(&close);
            whole.push_str(line);
            rest.push('\n');
            last_line = index + 1;
        }
        let inside = whole.split_once('>').and_then(|(_, inside)| Some(inside.split_once(close.as_str())?.0));
        let block = Block {
            tag: close.trim_matches(['<', '/', '>']).to_owned(),
            info: String::new(),
            text: inside.unwrap_or_default().to_owned(),
            text_line: first_line,
            first_line,
            last_line,
            closing: Closing::Aligned,
            fence: None,
        };
        calls.push(if close == CLOSE { called(block)? } else { blocks_of_json::own(block)? });
    }
    Ok((rest, calls))
}

/// What ends a call that a line begins.
fn closing(line: &str) -> Option<String> {
    if line.starts_with(OPEN) {
        return Some(CLOSE.to_owned());
    }
    let name = line.strip_prefix(OWN)?.split_once('>')?.0;
    let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'));
    is_name.then(|| format!("</aptix{name}>"))
}

fn endless(line: usize, close: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("the call of a tool has no end, expected {close}"))
        .detail(Detail::Fence)
        .field(format!("line {line}"))
        .hint("the answer was cut short; send it whole")
}

/// The document that a call gives a tool.
pub(super) fn called(block: Block) -> Result<(Dialect, Block), Failure> {
    let text = at_its_lines(&block);
    let read = json::text(text.as_bytes()).map_err(|mut failures| failures.swap_remove(0));
    let Call { name, arguments } = read.and_then(json::from_str).map_err(|failure| {
        let failure = Failure { hint: failure.hint.or_else(|| Some(FORM.to_owned())), ..failure };
        within(&block, failure)
    })?;
    let Some((_, dialect)) = TOOLS.into_iter().find(|(tool, _)| *tool == name) else {
        let shown: String = name.chars().take(60).collect();
        let tools: Vec<&str> = TOOLS.into_iter().map(|(tool, _)| tool).collect();
        let message = format!("the answer calls the tool {shown:?}, and calls of it are not read from answers");
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Fence)
            .field(format!("line {}", block.first_line))
            .hint(format!("call one of {}, write the edit into a block, or leave the call out", tools.join(", "))));
    };
    // What is wrong with the arguments is told at their lines.
    let above = text.split_once(arguments.get()).map_or("", |(above, _)| above);
    let text_line = above.matches('\n').count() + 1;
    let arguments = arguments.get().to_owned();
    Ok((dialect, Block { text: arguments, text_line, ..block }))
}
