//! What is outside of an answer's blocks, where no edit is read.

use super::fence::Answer;
use super::place::refused;
use super::thought;
use crate::documents::codex_patch::BEGIN;
use crate::documents::git_patch::shape::diff_header;
use crate::documents::json_dialect::find_json;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// How lines begin that call a tool.
const CALLS: [&str; 9] = [
    "<write_to_file>",
    "<tool_call>",
    "<function_calls>",
    "<function=",
    "<invoke name=",
    "<file path=",
    "<file name=",
    "<antArtifact ",
    "<boltAction ",
];

/// The text outside of the blocks and comments, at its lines.
pub(super) fn of(answer: &Answer, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let end = lines.len();
    let blocks = answer.blocks.iter().map(|block| (block.first_line, block.last_line));
    for (first, last) in blocks.chain(answer.comments.iter().copied()) {
        let inside = lines.get_mut(first.saturating_sub(1)..last.min(end));
        inside.into_iter().flatten().for_each(|line| *line = "");
    }
    let mut outside = lines.join("\n");
    // Without its end, a diff looks as if it were cut off.
    outside.push_str(if text.ends_with('\n') { "\n" } else { "" });
    outside
}

const PLACE: &str = "the text outside of its blocks";

/// Refuses a diff outside of the blocks, beside other edits.
pub(super) fn check_no_diff(outside: &str) -> Result<(), Failure> {
    diff_header(outside).map_or(Ok(()), |line| Err(misplaced_diff(line, PLACE)))
}

/// Refuses what is outside of the blocks and would be passed over though it is an edit, or may be one;
/// `first` is the line of the topmost edit in the answer.
pub(super) fn check(outside: &str, first: Option<usize>) -> Result<(), Failure> {
    let place = PLACE;
    if let Some((offset, dialect)) = find_json(outside) {
        let line = outside.split_at(offset).0.matches('\n').count() + 1;
        let message = format!("{place} holds a {dialect}; edits in JSON are read from blocks tagged json");
        return Err(refused(line, message, "put it into a block fenced with ```json, send it alone, or leave it out"));
    }
    if let Some((line, words)) = call(outside) {
        let message = format!("{place} has {words:?}, which calls a tool; no calls are read from answers");
        return Err(refused(
            line,
            message,
            "write the edit as a SEARCH/REPLACE block or into a block fenced with ```json, or leave the call out",
        ));
    }
    if let Some(line) = indented_envelope(outside) {
        return Err(misplaced_envelope(line, place));
    }
    first.map_or(Ok(()), |first| thought::check_not_above(outside, first))
}

/// The first line that calls a tool, and how it does.
pub(super) fn call(text: &str) -> Option<(usize, &'static str)> {
    let begins = |line: &str| CALLS.into_iter().find(|call| line.trim_start().starts_with(call));
    text.lines().enumerate().find_map(|(index, line)| Some((index + 1, begins(line)?)))
}

/// The first line that would begin an envelope if it were not indented, in a text without envelopes.
pub(super) fn indented_envelope(text: &str) -> Option<usize> {
    text.lines().position(|line| line.trim() == BEGIN).map(|index| index + 1)
}

/// Refuses an envelope that would be passed over.
pub(super) fn misplaced_envelope(line: usize, place: &str) -> Failure {
    let message = format!("{place} has an indented line {BEGIN:?}");
    Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::Marker)
        .field(format!("line {line}"))
        .hint("write the lines of the patch without blanks before them")
}

/// Refuses edits between lines that a comment begins and ends with, where Markdown shows nothing.
pub(super) fn check_not_in_comment(
    answer: &Answer,
    mut edits: impl Iterator<Item = (usize, usize)>,
) -> Result<(), Failure> {
    let is_in = |(first, last): &(usize, usize)| {
        let above = answer.comments.partition_point(|(from, _)| from < first);
        answer.comments.get(..above).and_then(<[_]>::last).is_some_and(|(_, to)| last < to)
    };
    let Some((first, last)) = edits.find(is_in) else { return Ok(()) };
    let message = format!("the edit at lines {first} to {last} of the answer is in a comment, and may not be meant");
    Err(refused(first, message, "take the edit out of the comment, or leave it out"))
}

/// Refuses a diff that would be passed over.
pub(super) fn misplaced_diff(line: usize, place: &str) -> Failure {
    let message = format!("{place} holds a diff; diffs are read from blocks tagged diff or patch");
    refused(line, message, "put all diffs of the answer into one block fenced with ```diff, or leave this one out")
}
