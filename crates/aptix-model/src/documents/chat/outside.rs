//! What stands outside of an answer's blocks, where no edit is read.

use std::format;
use std::string::String;
use std::vec::Vec;

use super::fence::Answer;
use super::thought;
use crate::documents::recognise::find_json;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// The text outside of the blocks and comments, at its lines.
pub(super) fn of(answer: &Answer, text: &str) -> String {
    let mut lines: Vec<&str> = text.lines().collect();
    let end = lines.len();
    let blocks = answer.blocks.iter().map(|block| (block.first_line, block.last_line));
    for (first, last) in blocks.chain(answer.comments.iter().copied()) {
        let inside = lines.get_mut(first.saturating_sub(1)..last.min(end));
        inside.into_iter().flatten().for_each(|line| *line = "");
    }
    lines.join("\n")
}

/// Refuses what stands outside of the blocks and would be passed over though it is an edit, or may be one;
/// `first` is the line of the topmost edit in the answer.
pub(super) fn check(outside: &str, first: Option<usize>) -> Result<(), Failure> {
    let place = "the text outside of its blocks";
    if let Some(line) = diff_header(outside) {
        return Err(misplaced_diff(line, place));
    }
    if let Some((offset, dialect)) = find_json(outside) {
        let line = outside.get(..offset).unwrap_or_default().matches('\n').count() + 1;
        let message = format!("{place} holds a {dialect}; edits in JSON are read from blocks tagged json");
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Fence)
            .field(format!("line {line}"))
            .hint("put it into a block fenced with ```json, send it alone, or leave it out"));
    }
    first.map_or(Ok(()), |first| thought::check_not_above(outside, first))
}

/// The first line of the first header of a diff, which nothing but a diff has.
pub(super) fn diff_header(text: &str) -> Option<usize> {
    let lines: Vec<&str> = text.lines().collect();
    let header = |at: &[&str]| match at {
        [old, new, hunk] => {
            old.starts_with("--- ") && new.starts_with("+++ ") && hunk.starts_with("@@ -") && hunk.contains(" @@")
        }
        _ => false,
    };
    lines.windows(3).position(header).map(|index| index + 1)
}

/// Refuses a diff that would be passed over.
pub(super) fn misplaced_diff(line: usize, place: &str) -> Failure {
    let message = format!("{place} holds a diff; diffs are read from blocks tagged diff or patch");
    Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::Fence)
        .field(format!("line {line}"))
        .hint("put all diffs of the answer into one block fenced with ```diff, or leave this one out")
}
