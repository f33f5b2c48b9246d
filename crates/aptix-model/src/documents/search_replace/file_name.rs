//! The name of a block's file: in the last three lines above it, on a line of its own or behind the fence.

use std::string::String;

use crate::path::document_spelling;

/// Lines above a block that may have its file's name.
const ABOVE: usize = 3;
/// Tags that some authors write instead of a fence.
const TAGS: [&str; 5] = ["source", "code", "pre", "codeblock", "sourcecode"];

/// A name that stands above a block.
pub(super) struct Name {
    pub(super) path: String,
    /// Whether it is one word that nothing tells from one of the prose: neither alone right above the block, nor a path.
    pub(super) is_bare_word: bool,
}

/// The last lines above a block, the lowest one last.
#[derive(Default)]
pub(super) struct Above<'a>([&'a str; ABOVE]);

impl<'a> Above<'a> {
    pub(super) fn add(&mut self, line: &'a str) {
        self.0.rotate_left(1);
        if let Some(last) = self.0.last_mut() {
            *last = line;
        }
    }

    /// The name of the file. A path on a line of its own comes before one behind a fence, and that before a bare word.
    pub(super) fn name(&self) -> Option<Name> {
        let path = |path: &str| Name { path: document_spelling(path), is_bare_word: false };
        let mut behind_fence = None;
        for line in self.0.iter().rev().filter(|line| !line.trim().is_empty()) {
            if let Some(info) = fence(line) {
                let info = info.trim();
                behind_fence = behind_fence.or((is_path(info) && is_word(info)).then_some(info));
                continue;
            }
            // Whatever stands here, what is above it belongs to something else.
            let name = of(line).filter(|name| behind_fence.is_none() || is_path(name));
            let is_alone = |name: &str| self.0.last().is_some_and(|last| last.trim() == name);
            let is_bare_word = name.is_some_and(|name| !is_path(name) && !line.contains('`') && !is_alone(name));
            return name.or(behind_fence).map(|name| Name { is_bare_word, ..path(name) });
        }
        behind_fence.map(path)
    }
}

/// The name on a line of its own, without what sets names off; with blanks only where something does.
pub(super) fn of(line: &str) -> Option<&str> {
    let line = line.trim();
    if fence(line).is_some() {
        return None;
    }
    let sets_off = |c: char| matches!(c, '`' | '*');
    let title = line.trim_start_matches('#').trim_start();
    let label = title.strip_suffix(':').unwrap_or(title);
    let name = label.trim_matches(sets_off);
    let inner = name.strip_suffix(':').unwrap_or(name).trim();
    let is_set_off = label.starts_with(sets_off) && label.ends_with(sets_off) && !inner.contains(sets_off);
    let is_name = inner.contains(char::is_alphanumeric) && (is_word(inner) || is_set_off && is_path(inner));
    is_name.then_some(inner)
}

fn is_word(text: &str) -> bool {
    !text.is_empty() && !text.contains(char::is_whitespace)
}

/// Whether a text has what hardly any word has, and most paths.
fn is_path(text: &str) -> bool {
    text.contains(['/', '\\']) || text.trim_end_matches('.').contains('.')
}

/// What stands behind a fence, or a tag that is used as one.
fn fence(line: &str) -> Option<&str> {
    let line = line.trim();
    if let Some(rest) = line.strip_prefix("```") {
        return Some(rest.trim_start_matches('`'));
    }
    if let Some(rest) = line.strip_prefix("~~~") {
        return Some(rest.trim_start_matches('~'));
    }
    let (tag, rest) = line.strip_prefix('<')?.split_once('>')?;
    TAGS.contains(&tag.trim_start_matches('/')).then_some(rest)
}
