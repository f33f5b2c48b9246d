//! What an author thought before the answer, between `<think>` and `</think>`: what it drafts there are no edits.

use super::place::refused;
use crate::failure::Failure;
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

/// An answer that begins with a thought: what is below it, at its lines.
pub(in crate::documents) struct Thoughtful<'a> {
    pub(in crate::documents) rest: String,
    /// The thought.
    pub(in crate::documents) drafted: &'a str,
    /// What is to be said if the thought drafts edits.
    pub(in crate::documents) warning: Warning,
}

/// Takes out the thought that an answer begins with, if it does.
pub(in crate::documents) fn take_out(text: &str) -> Result<Option<Thoughtful<'_>>, Failure> {
    let begin = text.trim_start();
    let Some((open, close)) = TAGS.into_iter().find(|(open, _)| begin.starts_with(open)) else { return Ok(None) };
    let Some((thought, answer)) = text.split_once(close) else {
        let message = format!("the answer begins with {open}, and nothing ends it with {close}");
        return Err(refused(None, message, HINT));
    };
    let first = text.len() - begin.len();
    let first = text.split_at(first).0.matches('\n').count() + 1;
    let last = thought.lines().count();
    let message = format!("what is drafted between {open} and {close}, up to line {last} of the answer, is no edit");
    let warning = Warning { code: "BLOCK_IGNORED".into(), message, line: Some(first) };
    let mut rest: String = thought.matches('\n').collect();
    rest.push_str(answer);
    Ok(Some(Thoughtful { rest, drafted: thought, warning }))
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
    let message = format!("{close} is below an edit, which may be one or only have been thought of");
    Err(refused(line, message, HINT))
}
