//! Whether a text has anything that is, or seems to be, an edit, without reading it as one.

use super::{declined, envelope, outside, thought};
use crate::documents::codex_patch::BEGIN;
use crate::documents::git_patch::shape::diff_header;
use crate::documents::json_dialect::find_json;
use crate::documents::search_replace::{self, names};

/// Whether a text has anything beside blocks of old and new lines that only an answer has: other fences, or other edits.
pub(in crate::documents) fn has_other_blocks(text: &str) -> bool {
    let Ok(places) = search_replace::places(text) else { return false };
    let (rest, _) = envelope::take_out(text, &places);
    rest.lines().any(|line| names::fence(line).is_some()) || has_other_edits(text)
}

/// Whether a text has, or seems to have, edits beside blocks of old and new lines, or says that those were only thought
/// of.
fn has_other_edits(text: &str) -> bool {
    let Ok(places) = search_replace::places(text) else { return false };
    let (rest, envelopes) = envelope::take_out(text, &places);
    let names_edit = |info: &str| {
        let tag = info.split_whitespace().next().unwrap_or_default();
        matches!(tag, "json" | "patch" | "diff") || names::behind(info).is_some_and(|named| named.is_sure)
    };
    !envelopes.is_empty()
        || rest.lines().filter_map(names::fence).any(names_edit)
        || rest.lines().any(|line| thought::ended(line).is_some())
        || diff_header(&rest).is_some()
        || rest.lines().any(|line| line.trim_start().starts_with("<!--") && !line.contains("-->"))
        || outside::call(&rest).is_some()
        || outside::indented_envelope(&rest).is_some()
        || find_json(&rest).is_some()
}

/// Whether a text has, or seems to have, any edits.
pub(in crate::documents) fn has_edits(text: &str) -> bool {
    text.lines().any(search_replace::is_opening) || has_other_edits(text)
}

/// Whether a text is prose around one diff: it has no fence, no other edit, no comment or thought, and no sentence that
/// declines to edit.
pub(in crate::documents) fn is_bare_diff(text: &str) -> bool {
    let Some(first) = diff_header(text) else { return false };
    let mut prose = String::new();
    let mut words = String::new();
    for (index, line) in text.lines().enumerate() {
        // Below the first header, lines of hunks hold what files do.
        if index + 1 >= first && line.starts_with([' ', '+', '-', '\\']) {
            continue;
        }
        let begin = line.trim_start();
        let is_mark = begin.starts_with("```")
            || begin.starts_with("~~~")
            || begin.starts_with("<!--")
            || begin.starts_with('<')
            || begin.trim_end() == BEGIN
            || search_replace::is_opening(line)
            || thought::ended(line).is_some();
        if is_mark {
            return false;
        }
        prose.push_str(line);
        prose.push('\n');
        declined::add_words(&mut words, line);
    }
    declined::find(&words).is_none() && find_json(&prose).is_none() && outside::call(&prose).is_none()
}
