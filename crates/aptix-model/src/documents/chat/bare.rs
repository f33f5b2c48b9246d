//! Texts that have a diff outside of any fence, and nothing else that could be an edit or decide about one.

use super::outside::call;
use super::{declined, thought};
use crate::documents::codex_patch::BEGIN;
use crate::documents::git_patch::shape::diff_header;
use crate::documents::json_dialect::find_json;
use crate::documents::search_replace;

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
    declined::find(&words).is_none() && find_json(&prose).is_none() && call(&prose).is_none()
}
