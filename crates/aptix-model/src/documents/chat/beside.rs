//! What is beside the edits of an answer and may be meant as one: lines in the fence of an edit, and indented blocks.

use super::fence::{self, Block};
use super::outer;
use super::place::{place, refused};
use crate::documents::codex_patch::BEGIN;
use crate::documents::git_patch::shape::diff_header;
use crate::documents::json_dialect::find_json;
use crate::documents::search_replace::{self, names};
use crate::failure::Failure;

/// What comments of one line begin with.
const COMMENTS: [&str; 7] = ["# ", "// ", "/* ", "<!-- ", "-- ", "; ", "% "];

/// Refuses a block with edits whose other lines are not about them. Blank lines replace the edits.
pub(super) fn check_rest(block: &Block) -> Result<(), Failure> {
    let Some(line) = block.text.lines().position(|line| !is_about_edits(line.trim())) else { return Ok(()) };
    let line = block.text_line + line;
    let message = format!("the {} has lines that belong to none of its edits, the first at line {line}", place(block));
    Err(refused(
        line,
        message,
        "put each edit into a block of its own, below its file's name, and send a whole file in a file bundle; leave out \
         lines that only show code",
    ))
}

/// Whether a line in the fence of an edit names its file, comments on it, calls its tool, or says nothing.
fn is_about_edits(line: &str) -> bool {
    let is_plain =
        |text: &str| text.chars().all(|character| character.is_alphanumeric() || " ._-/@+~\\".contains(character));
    let is_sentence = || line.strip_suffix(':').is_some_and(|words| words.contains(' ') && is_plain(words));
    let is_tag = || line.starts_with('<') && line.ends_with('>') && !line.contains(' ');
    !line.contains(char::is_alphanumeric)
        || names::of(line).is_some_and(is_plain)
        || names::fence(line).is_some()
        || COMMENTS.into_iter().any(|mark| line.starts_with(mark))
        || line.contains("apply_patch")
        || is_sentence()
        || is_tag()
}

/// Refuses an indented block that holds an edit: in Markdown it is a sample of code, and its author may not have meant that.
pub(super) fn check_indented(block: &Block) -> Result<(), Failure> {
    let lines = || block.text.lines().filter(|line| !line.trim().is_empty());
    let indent = lines().map(|line| line.len() - line.trim_start().len()).min().unwrap_or_default();
    let text: Vec<&str> = block.text.lines().map(|line| line.get(indent..).unwrap_or_default()).collect();
    let text = text.join("\n");
    let is_edit = fence::read(&text).blocks.iter().any(outer::is_edit)
        || diff_header(&text).is_some()
        || find_json(&text).is_some()
        || text.lines().any(|line| search_replace::is_opening(line) || line.trim() == BEGIN);
    if !is_edit {
        return Ok(());
    }
    let message =
        format!("the {} seems to hold an edit, and is indented so far that it is a sample of code", place(block));
    Err(refused(
        block.first_line,
        message,
        "indent the edit and its fence no further than the text above, or leave it out if it is a sample",
    ))
}
