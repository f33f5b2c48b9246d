//! Which dialect a document is written in: a JSON document by the keys that only one dialect has, a text by how it
//! begins. What could be two is refused.

use super::dialect::Dialect;
use super::json_dialect::{JsonDialect, ambiguous, recognise_json, unrecognised};
use super::telling::broken_edit;
use super::{chat, codex_patch, git_patch, search_replace};
use crate::failure::Failure;
use crate::reason::Detail;

/// Whether a text is written in a dialect.
type Detects = fn(&str) -> bool;

/// The dialects that are no JSON, and whether a text is in one of them. The text ends before the first byte that is not UTF-8.
const TEXTS: [(Dialect, Detects); 3] = [
    (Dialect::CodexPatch, codex_patch::begins),
    (Dialect::SearchReplace, search_replace::begins),
    (Dialect::GitPatch, |text| git_patch::shape::is_diff(text) || chat::is_bare_diff(text)),
];

/// Finds the one dialect that a document, which is not blank, is written in.
pub(super) fn recognise(bytes: &[u8]) -> Result<Dialect, Failure> {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
        match recognise_json(bytes) {
            // A text may begin with a bracket: `[INST]`, `[1] ...`.
            Err(failure) if is_text(text, &failure) => {}
            found => return found?.map(JsonDialect::dialect).map_err(unrecognised),
        }
    }
    let mut found = TEXTS.into_iter().filter(|(_, holds)| holds(text)).map(|(dialect, _)| dialect);
    match (found.next(), found.next()) {
        (Some(one), Some(other)) => Err(ambiguous(one, other, "the parts of its text")),
        // Only an answer has blocks of old and new lines beside other edits.
        (Some(Dialect::SearchReplace), _) if chat::has_other_blocks(text) => Ok(Dialect::Chat),
        (found, _) => Ok(found.unwrap_or(Dialect::Chat)),
    }
}

/// Whether what is no JSON is no attempt at it either: it is wrong in its first line, and has no keys of an edit.
fn is_text(text: &str, failure: &Failure) -> bool {
    let text = text.trim_start();
    let follows: &[char] = if text.starts_with('{') { &['"', '}', '/'] } else { &['"', '{', '[', ']', '/'] };
    let begins_as_json = text.get(1..).is_some_and(|rest| rest.trim_start().starts_with(follows));
    // Fences below hold what they hold.
    let head = ["\n```", "\n~~~"].iter().filter_map(|fence| text.find(fence)).min().unwrap_or(text.len());
    let has_edit = text.get(..head).is_none_or(broken_edit);
    matches!(failure.detail, Some(Detail::Json | Detail::Trailing)) && !begins_as_json && !has_edit
}
