//! The dialects written in JSON, and which of them a text is in, or holds, by its keys.

use core::fmt;
use std::collections::BTreeSet;

use super::dialect::{Dialect, Parsed};
use super::keys::{Keys, Outline, is_near, shown_keys};
use super::misfit::{self, Misfit};
use super::{author_keys, create_file, file_bundle, json, line_patch, search_patch, str_replace, structured_patch};
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// The keys that files are named under.
const PATHS: [&str; 2] = ["path", "docPath"];

/// A dialect written in JSON.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum JsonDialect {
    LinePatch,
    CreateFile,
    SearchPatch,
    StructuredPatch,
    FileBundle,
    StrReplace,
}

impl JsonDialect {
    const ALL: [Self; 6] = [
        Self::LinePatch,
        Self::CreateFile,
        Self::SearchPatch,
        Self::StructuredPatch,
        Self::FileBundle,
        Self::StrReplace,
    ];

    /// Its name, its keys and its parser.
    const fn parts(self) -> (Dialect, Keys, fn(&str) -> Parsed) {
        match self {
            Self::LinePatch => (Dialect::LinePatch, line_patch::KEYS, line_patch::parse),
            Self::CreateFile => (Dialect::CreateFile, create_file::KEYS, create_file::parse),
            Self::SearchPatch => (Dialect::SearchPatch, search_patch::KEYS, search_patch::parse),
            Self::StructuredPatch => (Dialect::StructuredPatch, structured_patch::KEYS, structured_patch::parse),
            Self::FileBundle => (Dialect::FileBundle, file_bundle::KEYS, file_bundle::parse),
            Self::StrReplace => (Dialect::StrReplace, str_replace::KEYS, str_replace::parse),
        }
    }

    /// Finds a value that does not have its type; `None` for a dialect without a list.
    const fn misfit(self) -> Option<Misfit> {
        let misfit: Misfit = match self {
            Self::LinePatch => json::misfit::<line_patch::BatchDocument>,
            Self::CreateFile => return None,
            Self::SearchPatch => json::misfit::<search_patch::PatchDocument>,
            Self::StructuredPatch => json::misfit::<structured_patch::PatchDocument>,
            Self::FileBundle => json::misfit::<file_bundle::BundleDocument>,
            Self::StrReplace => str_replace::misfit,
        };
        Some(misfit)
    }

    /// The dialect, if it is written in JSON.
    pub(super) fn of(dialect: Dialect) -> Option<Self> {
        Self::ALL.into_iter().find(|json| json.dialect() == dialect)
    }

    pub(super) const fn dialect(self) -> Dialect {
        self.parts().0
    }

    const fn keys(self) -> Keys {
        self.parts().1
    }

    /// Reads a document in this dialect.
    pub(super) fn parse(self, bytes: &[u8]) -> Parsed {
        let text = json::text(bytes)?;
        let (_, _, parse) = self.parts();
        parse(text).map_err(|part| {
            let rest = self
                .misfit()
                .and_then(|misfit| misfit::read_rest(text, parse, misfit, |at, item, inner| self.at(at, item, inner)));
            let mut part = rest.unwrap_or(part);
            // No other dialect has keys.
            if self == Self::LinePatch {
                author_keys::name(text, &mut part.failures);
            }
            part
        })
    }

    /// A failure at an item of the document's list, and at an item of a list of that one.
    fn at(self, failure: Failure, item: usize, inner: Option<usize>) -> Failure {
        match self {
            Self::SearchPatch => Failure { file_index: Some(0), ..failure.change(item) },
            Self::StrReplace => failure,
            // The lists of their files are those of changes.
            Self::LinePatch | Self::StructuredPatch => {
                Failure { file_index: Some(item), change_index: inner, ..failure }
            }
            _ => Failure { file_index: Some(item), ..failure },
        }
    }
}

impl fmt::Display for JsonDialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.dialect().fmt(f)
    }
}

/// Finds the one JSON dialect whose unique keys the document has, or nearly has; else the one that has all its keys.
/// If there is none, or several that the document does not distinguish, returns its keys in words.
pub(super) fn recognise_json(bytes: &[u8]) -> Result<Result<JsonDialect, String>, Failure> {
    let text = json::text(bytes)?;
    let Outline(keys) = json::from_str(text)?;
    let with_near = |near: fn(&str, &str) -> bool| {
        let keys = &keys;
        one_of(move |unique, _| keys.iter().any(|key| unique.iter().any(|known| near(key, known))))
    };
    let has_all = || {
        let known = |key: &String, (unique, others): (&[&str], &[&str])| {
            unique.iter().chain(others).any(|known| is_near(key, known))
        };
        one_of(|unique, others| !keys.is_empty() && keys.iter().all(|key| known(key, (unique, others))))
    };
    let exact = with_near(|key, known| key == known);
    let shown = || shown_keys(&keys);
    if let (Some(one), Some(other)) = exact {
        return Err(ambiguous(
            one.dialect(),
            other.dialect(),
            &format!("its keys {}", deciding_keys(&keys, one, other)),
        ));
    }
    // Misspelt keys, and keys of several dialects, decide only where they leave one dialect.
    let found = [exact, with_near(is_near), has_all()].into_iter().find(|(first, _)| first.is_some());
    if let Some((Some(dialect), None)) = found {
        return Ok(Ok(dialect));
    }
    let alone = if found.is_some() { ", which no dialect has alone" } else { "" };
    let near = keys.iter().find_map(|key| Some(format!("; '{key}' may be meant as '{}'", near_key(key)?)));
    Ok(Err(format!("its keys are {}{alone}{}", shown(), near.unwrap_or_default())))
}

/// The first key of a document that only one of two dialects has, and the first that only the other one has.
fn deciding_keys(keys: &BTreeSet<String>, one: JsonDialect, other: JsonDialect) -> String {
    let first = |dialect: JsonDialect| {
        let key = keys.iter().find(|key| dialect.keys().unique.contains(&key.as_str()));
        key.map_or_else(String::new, |key| format!("'{key}' ({dialect})"))
    };
    format!("{} and {}", first(one), first(other))
}

/// The known key that an unknown one is most likely a misspelling of.
fn near_key(key: &str) -> Option<&'static str> {
    let known = || {
        JsonDialect::ALL
            .into_iter()
            .map(JsonDialect::keys)
            .flat_map(|Keys { unique, others }| unique.iter().chain(others).copied())
    };
    let is_known = known().any(|known| known == key);
    known().find(|known| !is_known && is_near(key, known))
}

/// The JSON dialect of which a text has a unique key, whatever else is wrong with it.
pub(super) fn dialect_by_key(text: &str) -> Option<JsonDialect> {
    if !text.trim_start().starts_with(['{', '[']) {
        return None;
    }
    let Outline(keys) = json::text(text.as_bytes()).ok().and_then(|text| json::from_str(text).ok())?;
    one_of(|unique, _| keys.iter().any(|key| unique.contains(&key.as_str()))).0
}

/// Where a text has an object with a unique key of a JSON dialect and a path, whole or broken, and that dialect.
pub(super) fn find_json(text: &str) -> Option<(usize, JsonDialect)> {
    let mut at = 0;
    loop {
        at += text.get(at..)?.find('{')?;
        let rest = text.get(at..)?;
        let mut values = serde_json::Deserializer::from_str(rest).into_iter();
        let (found, length) = match values.next()? {
            Ok(Outline(keys)) => {
                let names_file = keys.iter().any(|key| PATHS.iter().any(|path| key.rsplit('.').next() == Some(path)));
                let found = one_of(|unique, _| names_file && keys.iter().any(|key| unique.contains(&key.as_str())));
                (found, values.byte_offset())
            }
            Err(error) => {
                let above = rest.split_inclusive('\n').take(error.line().saturating_sub(1)).map(str::len);
                let length = rest.floor_char_boundary(above.sum::<usize>() + error.column());
                let begun = rest.get(..length)?;
                let has = |key: &str| key.split('.').all(|part| begun.contains(&format!("\"{part}\"")));
                let names_file = PATHS.into_iter().any(has);
                // What it broke at may begin the next one.
                (one_of(|unique, _| names_file && unique.iter().copied().any(has)), length.saturating_sub(1))
            }
        };
        if let Some(dialect) = found.0 {
            return Some((at, dialect));
        }
        at += length.max(1);
    }
}

/// The first two JSON dialects for whose unique and other keys something holds.
fn one_of(holds: impl Fn(&[&str], &[&str]) -> bool) -> (Option<JsonDialect>, Option<JsonDialect>) {
    let mut found = JsonDialect::ALL.into_iter().filter(|dialect| {
        let Keys { unique, others } = dialect.keys();
        holds(unique, others)
    });
    (found.next(), found.next())
}

/// Refuses a document that could be in two dialects.
pub(super) fn ambiguous(one: Dialect, other: Dialect, what: &str) -> Failure {
    let message = format!("the document could be {one} or {other}: {what} are not of one dialect");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownDialect).hint(format!(
        "send one document at a time, with what only one of them has: {}; {}",
        has(one),
        has(other)
    ))
}

/// Refuses a JSON document that is in no dialect.
pub(super) fn unrecognised(what: String) -> Failure {
    let known = Dialect::ALL.map(has).join("; ");
    let message = format!("the document is in no dialect that is understood: {what}");
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownDialect).hint(known)
}

fn has(dialect: Dialect) -> String {
    match JsonDialect::of(dialect) {
        Some(json) => format!("{dialect} has {}", json.keys().unique.join(", ")),
        None if dialect == Dialect::Chat => format!("{dialect} is any other text"),
        None => format!("{dialect} is no JSON"),
    }
}
