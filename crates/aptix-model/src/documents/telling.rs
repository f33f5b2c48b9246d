//! What a JSON block of an answer is by its keys, where an example of something else is as likely as an edit.

use super::json;
use super::json_dialect::{JsonDialect, ambiguous};
use super::keys::{Outline, is_near, shown_keys};
use crate::failure::Failure;

/// What the keys of a JSON text show it to be.
pub(super) enum Telling {
    /// An edit, or nearly one.
    Edit(JsonDialect),
    /// What is an edit only as the arguments of a tool.
    Arguments(JsonDialect),
    /// The arguments of a tool that has a path among them, with its name or something else around them.
    Envelope,
    /// Something else, with these keys.
    Other(String),
}

/// The keys of a document of a dialect, one of each list: it has all of them, or nearly.
const TELLING: [(JsonDialect, &[&[&str]]); 4] = [
    (JsonDialect::FileBundle, &[&["files.content", "files.operation", "files.replacements"]]),
    (JsonDialect::StructuredPatch, &[&["patches.replacements"]]),
    (JsonDialect::SearchPatch, &[&["patches.operation", "patches.oldText", "patches.newText"]]),
    (
        JsonDialect::LinePatch,
        &[
            &["files.docPath", "files.originalSha256", "files.changes"],
            &["files.docPath", "files.originalSha256", "files.path"],
        ],
    ),
];

/// As [`TELLING`], of what is an edit only as the arguments of a tool.
const ARGUMENTS: [(JsonDialect, &[&[&str]]); 2] = [
    (JsonDialect::CreateFile, &[&["path"], &["content"]]),
    (
        JsonDialect::StrReplace,
        &[&["command"], &["path"], &["old_str", "new_str", "file_text", "insert_line", "insert_text"]],
    ),
];

/// Keys that the arguments of a tool are under.
const ENVELOPES: [&str; 5] = ["arguments", "input", "parameters", "params", "args"];
/// Keys of arguments that name a file.
const ENVELOPED: [&str; 5] = ["path", "file_path", "filePath", "files", "patches"];

/// Detects what a JSON text is by its keys.
///
/// # Errors
/// It is no JSON, or could be in two dialects.
pub(super) fn recognise_telling(text: &str) -> Result<Telling, Failure> {
    let text = json::text(text.as_bytes())?;
    let Outline(keys) = json::from_str(text)?;
    let has = |near: fn(&str, &str) -> bool| {
        let keys = &keys;
        move |lists: &[&[&str]]| {
            lists.iter().all(|list| list.iter().any(|known| keys.iter().any(|key| near(key, known))))
        }
    };
    for has in [has(|key, known| key == known), has(is_near)] {
        let mut edits = TELLING.into_iter().filter(|(_, lists)| has(lists)).map(|(dialect, _)| dialect);
        match (edits.next(), edits.next()) {
            (Some(one), Some(other)) => {
                return Err(ambiguous(one.dialect(), other.dialect(), &format!("its keys {}", shown_keys(&keys))));
            }
            (Some(dialect), None) => return Ok(Telling::Edit(dialect)),
            (None, _) => {}
        }
        if let Some((dialect, _)) = ARGUMENTS.into_iter().find(|(_, lists)| has(lists)) {
            return Ok(Telling::Arguments(dialect));
        }
    }
    let is_argument = |key: &String| {
        let (above, below) = key.split_once('.').unwrap_or_default();
        ENVELOPES.contains(&above) && ENVELOPED.contains(&below)
    };
    if keys.iter().any(is_argument) {
        return Ok(Telling::Envelope);
    }
    Ok(Telling::Other(format!("its keys are {}", shown_keys(&keys))))
}

/// Whether a text that is no JSON has the keys of an edit.
pub(super) fn broken_edit(text: &str) -> bool {
    let has = |key: &str| key.split('.').all(|part| has_key(text, part));
    let lists = TELLING.into_iter().chain(ARGUMENTS).map(|(_, lists)| lists);
    lists.into_iter().any(|lists| lists.iter().all(|list| list.iter().any(|key| has(key))))
}

/// Whether a text has a key, quoted in some way or bare before a colon.
fn has_key(text: &str, key: &str) -> bool {
    text.match_indices(key).any(|(start, _)| {
        let before = text.get(..start).and_then(|above| above.chars().next_back());
        let (_, behind) = text.split_at(start + key.len());
        let quoted = |quote: char| before == Some(quote) && behind.starts_with(quote);
        let is_bare = before.is_none_or(|before| before.is_whitespace() || matches!(before, '{' | ','));
        quoted('"') || quoted('\'') || is_bare && behind.trim_start().starts_with(':')
    })
}
