//! What an author thought before the answer, between `<think>` and `</think>`: what it drafts there are no edits.

use std::format;
use std::string::String;

use super::has_edits;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// What the tags are called.
const TAGS: [(&str, &str); 5] = [
    ("<think>", "</think>"),
    ("<thinking>", "</thinking>"),
    ("<thought>", "</thought>"),
    ("<reasoning>", "</reasoning>"),
    ("◁think▷", "◁/think▷"),
];

const HINT: &str = "send the answer without what was thought before it";

/// An answer that begins with a thought: what is below it, at its lines, and a warning if the thought drafts edits.
pub(super) struct Thoughtful {
    pub(super) rest: String,
    pub(super) warning: Option<Warning>,
}

/// Takes out the thought that an answer begins with, if it does.
pub(super) fn take_out(text: &str) -> Result<Option<Thoughtful>, Failure> {
    let begin = text.trim_start();
    let Some((open, close)) = TAGS.into_iter().find(|(open, _)| begin.starts_with(open)) else { return Ok(None) };
    let Some((thought, answer)) = text.split_once(close) else {
        let message = format!("the answer begins with {open}, and nothing ends it with {close}");
        return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).hint(HINT));
    };
    let warning = has_edits(thought).then(|| {
        let first = text.find(open).and_then(|start| text.get(..start)).unwrap_or_default().matches('\n').count() + 1;
        let last = thought.lines().count();
        let message =
            format!("what is drafted between {open} and {close}, up to line {last} of the answer, is no edit");
        Warning { code: "BLOCK_IGNORED".into(), message, line: Some(first) }
    });
    let mut rest: String = thought.matches('\n').collect();
    rest.push_str(answer);
    Ok(Some(Thoughtful { rest, warning }))
}

/// The tag that ends a thought, if a line is nothing else.
pub(super) fn ended(line: &str) -> Option<&'static str> {
    TAGS.into_iter().map(|(_, close)| close).find(|close| line.trim() == *close)
}

/// Refuses edits above a line that ends a thought, for they may have been no more than thought; `first` is the line of
/// the topmost one, and `outside` what is in none.
pub(super) fn check_not_above(outside: &str, first: usize) -> Result<(), Failure> {
    let mut found = outside.lines().enumerate().skip(first).filter_map(|(index, line)| Some((index + 1, ended(line)?)));
    let Some((line, close)) = found.next() else { return Ok(()) };
    let message = format!("{close} stands below an edit, which may be one or only have been thought of");
    Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Fence).field(format!("line {line}")).hint(HINT))
}
