//! Calls of tools that an answer has outside of its blocks: `<tool_call>` around the name and the arguments of a tool that
//! takes a document, or a tag that begins with `aptix` around a document.

use super::call::called;
use super::fence::Block;
use super::json;
use super::place::refused;
use crate::documents::json_dialect::JsonDialect;
use crate::failure::Failure;

const OPEN: &str = "<tool_call>";
const CLOSE: &str = "</tool_call>";
const OWN: &str = "<aptix";

/// Takes the calls out of the text outside of an answer's blocks: each with its dialect, and blank lines in its place.
///
/// # Errors
/// A call that does not end, or that calls no tool of ours.
pub(super) fn take_out(text: &str) -> Result<(String, Vec<(JsonDialect, Block)>), Failure> {
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
        let tag = close.trim_matches(['<', '/', '>']);
        let block = Block::unfenced(tag, inside.unwrap_or_default().to_owned(), (first_line, last_line));
        calls.push(if close == CLOSE { called(block)? } else { json::own(block)? });
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
    refused(line, format!("the call of a tool has no end, expected {close}"), "the answer was cut short; send it whole")
}
