//! Which dialect a document is written in: a JSON document by the keys that only one dialect has, a text by how it
//! begins. What could be two is refused.

use core::fmt;
use std::borrow::ToOwned;
use std::collections::BTreeSet;
use std::format;
use std::string::String;
use std::vec::Vec;

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};

use super::{Dialect, chat, json};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Different keys that are looked at.
const KEYS: usize = 100;
/// The keys that files are named under.
const PATHS: [&str; 2] = ["path", "docPath"];

/// How the documents of a dialect are known.
#[derive(Clone, Copy)]
pub(super) enum Shape {
    /// An object, or a list of objects. `files.path` is the key `path` of an object in, or in a list in, `files`.
    Json {
        /// Keys that no other dialect has.
        tells: &'static [&'static str],
        /// Its other keys, down to two levels.
        knows: &'static [&'static str],
    },
    /// Any other text for which this holds; it sees what comes before the first byte that is not UTF-8.
    Text(fn(&str) -> bool),
    /// Every other text.
    Rest,
}

/// Finds the one dialect that a document, which is not blank, is written in.
pub(super) fn recognise(bytes: &[u8]) -> Result<Dialect, Failure> {
    let text = bytes.utf8_chunks().next().map_or("", |chunk| chunk.valid());
    if matches!(bytes.trim_ascii_start().first(), Some(b'{' | b'[')) {
        match recognise_json(bytes) {
            // A text may begin with a bracket: `[INST]`, `[1] ...`.
            Err(failure) if is_text(text, &failure) => {}
            found => return found?.map_err(unrecognised),
        }
    }
    let mut found = Dialect::ALL.into_iter().filter(|dialect| match dialect.shape() {
        Shape::Text(holds) => holds(text),
        Shape::Json { .. } | Shape::Rest => false,
    });
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

/// Finds the one JSON dialect whose telling keys the document has, or nearly has; else the one that has all its keys.
/// If there is none, or several that the document tells apart by nothing, says what there is instead.
pub(super) fn recognise_json(bytes: &[u8]) -> Result<Result<Dialect, String>, Failure> {
    let text = json::text(bytes).map_err(|mut failures| failures.swap_remove(0))?;
    let Outline(keys) = json::value(text)?;
    let tells = |near: fn(&str, &str) -> bool| {
        let keys = &keys;
        one_of(move |tells, _| keys.iter().any(|key| tells.iter().any(|telling| near(key, telling))))
    };
    let has_all = || {
        let known = |key: &String, (tells, knows): (&[&str], &[&str])| {
            tells.iter().chain(knows).any(|known| is_near(key, known))
        };
        one_of(|tells, knows| !keys.is_empty() && keys.iter().all(|key| known(key, (tells, knows))))
    };
    let exact = tells(|key, telling| key == telling);
    let shown = || shown_keys(&keys);
    if let (Some(one), Some(other)) = exact {
        return Err(ambiguous(one, other, &format!("its keys {}", told_by(&keys, one, other))));
    }
    // What is misspelt, or common to several dialects, tells one of them or nothing.
    let found = [exact, tells(is_near), has_all()].into_iter().find(|(first, _)| first.is_some());
    if let Some((Some(dialect), None)) = found {
        return Ok(Ok(dialect));
    }
    let alone = if found.is_some() { ", which no dialect has alone" } else { "" };
    let near = keys.iter().find_map(|key| Some(format!("; '{key}' may be meant as '{}'", near_key(key)?)));
    Ok(Err(format!("its keys are {}{alone}{}", shown(), near.unwrap_or_default())))
}

/// The first key of a document that only one of two dialects has, and the first that only the other one has.
fn told_by(keys: &BTreeSet<String>, one: Dialect, other: Dialect) -> String {
    let first = |dialect: Dialect| {
        let Shape::Json { tells, .. } = dialect.shape() else { return String::new() };
        let key = keys.iter().find(|key| tells.contains(&key.as_str()));
        key.map_or_else(String::new, |key| format!("'{key}' ({dialect})"))
    };
    format!("{} and {}", first(one), first(other))
}

/// The known key that an unknown one is most likely a misspelling of.
fn near_key(key: &str) -> Option<&'static str> {
    let known = || {
        Dialect::ALL.into_iter().filter_map(|dialect| match dialect.shape() {
            Shape::Json { tells, knows } => Some(tells.iter().chain(knows).copied()),
            Shape::Text(_) | Shape::Rest => None,
        })
    };
    let is_known = known().flatten().any(|known| known == key);
    known().flatten().find(|known| !is_known && is_near(key, known))
}

/// What a JSON block of an answer is by its keys, where an example of something else is as likely as an edit.
pub(super) enum Telling {
    /// An edit, or nearly one.
    Edit(Dialect),
    /// What is an edit only as the arguments of a tool.
    Arguments(Dialect),
    /// The arguments of a tool that has a path among them, with its name or something else around them.
    Envelope,
    /// Something else, with these keys.
    Other(String),
}

/// The keys of a document of a dialect, one of each list: it has all of them, or nearly.
const TELLING: [(Dialect, &[&[&str]]); 4] = [
    (Dialect::FileBundle, &[&["files.content", "files.operation", "files.replacements"]]),
    (Dialect::StructuredPatch, &[&["patches.replacements"]]),
    (Dialect::SearchPatch, &[&["patches.operation", "patches.oldText", "patches.newText"]]),
    (
        Dialect::LinePatch,
        &[
            &["files.docPath", "files.originalSha256", "files.changes"],
            &["files.docPath", "files.originalSha256", "files.path"],
        ],
    ),
];

/// As [`TELLING`], of what is an edit only as the arguments of a tool.
const ARGUMENTS: [(Dialect, &[&[&str]]); 2] = [
    (Dialect::CreateFile, &[&["path"], &["content"]]),
    (
        Dialect::StrReplace,
        &[&["command"], &["path"], &["old_str", "new_str", "file_text", "insert_line", "insert_text"]],
    ),
];

/// Keys that the arguments of a tool stand under.
const ENVELOPES: [&str; 5] = ["arguments", "input", "parameters", "params", "args"];
/// Keys of arguments that name a file.
const ENVELOPED: [&str; 5] = ["path", "file_path", "filePath", "files", "patches"];

/// Tells by its keys what a JSON text is.
///
/// # Errors
/// It is no JSON, or could be in two dialects.
pub(super) fn recognise_telling(text: &str) -> Result<Telling, Failure> {
    let text = json::text(text.as_bytes()).map_err(|mut failures| failures.swap_remove(0))?;
    let Outline(keys) = json::value(text)?;
    let has = |near: fn(&str, &str) -> bool| {
        let keys = &keys;
        move |lists: &[&[&str]]| {
            lists.iter().all(|list| list.iter().any(|known| keys.iter().any(|key| near(key, known))))
        }
    };
    for has in [has(|key, known| key == known), has(is_near)] {
        let mut edits = TELLING.into_iter().filter(|(_, lists)| has(lists)).map(|(dialect, _)| dialect);
        match (edits.next(), edits.next()) {
            (Some(one), Some(other)) => return Err(ambiguous(one, other, &format!("its keys {}", shown_keys(&keys)))),
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
        let behind = text.get(start + key.len()..).unwrap_or_default();
        let quoted = |quote: char| before == Some(quote) && behind.starts_with(quote);
        let is_bare = before.is_none_or(|before| before.is_whitespace() || matches!(before, '{' | ','));
        quoted('"') || quoted('\'') || is_bare && behind.trim_start().starts_with(':')
    })
}

/// The first keys, in quotes.
fn shown_keys(keys: &BTreeSet<String>) -> String {
    let short = |key: &String| format!("'{}'", key.chars().take(40).collect::<String>());
    let keys = keys.iter().map(short).take(10).collect::<Vec<_>>().join(", ");
    if keys.is_empty() { "none".to_owned() } else { keys }
}

/// The JSON dialect of which a text has a telling key, whatever else is wrong with it.
pub(super) fn tells_json(text: &str) -> Option<Dialect> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let Outline(keys) = json::text(text.as_bytes()).ok().and_then(|text| json::value(text).ok())?;
    one_of(|tells, _| keys.iter().any(|key| tells.contains(&key.as_str()))).0
}

/// Where a text has an object with a telling key of a JSON dialect and a path, whole or broken, and that dialect.
pub(super) fn find_json(text: &str) -> Option<(usize, Dialect)> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.find('{')?;
        let rest = text.get(at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let (told, length) = match values.next()? {
            Ok(Outline(keys)) => {
                let names_file = keys.iter().any(|key| PATHS.iter().any(|path| key.rsplit('.').next() == Some(path)));
                let told = one_of(|tells, _| names_file && keys.iter().any(|key| tells.contains(&key.as_str())));
                (told, values.byte_offset())
            }
            Err(error) => {
                let above = rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
                let length = rest.floor_char_boundary(above.sum::<usize>() + error.column());
                let begun = rest.get(..length)?;
                let has = |key: &str| key.split('.').all(|part| begun.contains(&format!("\"{part}\"")));
                let names_file = PATHS.into_iter().any(has);
                // What it broke at may begin the next one.
                (one_of(|tells, _| names_file && tells.iter().copied().any(has)), length.saturating_sub(1))
            }
        };
        if let Some(dialect) = told.0 {
            return Some((at, dialect));
        }
        at += length.max(1);
    }
}

/// The first two JSON dialects for whose telling and other keys something holds.
fn one_of(holds: impl Fn(&[&str], &[&str]) -> bool) -> (Option<Dialect>, Option<Dialect>) {
    let mut found = Dialect::ALL.into_iter().filter(|dialect| match dialect.shape() {
        Shape::Json { tells, knows } => holds(tells, knows),
        Shape::Text(_) | Shape::Rest => false,
    });
    (found.next(), found.next())
}

/// Whether each part of a key may be a misspelling of that of a known one.
fn is_near(key: &str, known: &str) -> bool {
    let near = |(part, known): (&str, &str)| {
        part.len() <= 4 * known.len()
            && strsim::damerau_levenshtein(&part.to_lowercase(), &known.to_lowercase()) <= known.len() / 3
    };
    key.split('.').count() == known.split('.').count() && key.split('.').zip(known.split('.')).all(near)
}

fn ambiguous(one: Dialect, other: Dialect, what: &str) -> Failure {
    let message = format!("the document could be {one} or {other}: {what} are not of one dialect");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownDialect).hint(format!(
        "send one document at a time, with what only one of them has: {}; {}",
        has(one),
        has(other)
    ))
}

fn unrecognised(what: String) -> Failure {
    let known = Dialect::ALL.map(has).join("; ");
    let message = format!("the document is in no dialect that is understood: {what}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownDialect).hint(known)
}

fn has(dialect: Dialect) -> String {
    match dialect.shape() {
        Shape::Json { tells, .. } => format!("{dialect} has {}", tells.join(", ")),
        Shape::Text(_) => format!("{dialect} is no JSON"),
        Shape::Rest => format!("{dialect} is any other text"),
    }
}

/// The first different keys of a JSON document, of two levels; lists are looked through, other values skipped over.
struct Outline(BTreeSet<String>);

impl<'de> Deserialize<'de> for Outline {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut keys = BTreeSet::new();
        deserializer.deserialize_any(Keys { keys: &mut keys, above: None })?;
        Ok(Self(keys))
    }
}

/// Collects the keys of a value that is the document, or stands under a key of it.
struct Keys<'k> {
    keys: &'k mut BTreeSet<String>,
    above: Option<&'k str>,
}

impl<'de> DeserializeSeed<'de> for Keys<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Keys<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        while let Some(key) = map.next_key::<String>()? {
            match self.above {
                None => map.next_value_seed(Keys { keys: &mut *self.keys, above: Some(&key) })?,
                Some(above) => {
                    map.next_value::<IgnoredAny>()?;
                    if self.keys.len() < KEYS {
                        self.keys.insert(format!("{above}.{key}"));
                    }
                    continue;
                }
            }
            if self.keys.len() < KEYS {
                self.keys.insert(key);
            }
        }
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut list: A) -> Result<(), A::Error> {
        while list.next_element_seed(Keys { keys: &mut *self.keys, above: self.above })?.is_some() {}
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }
}
