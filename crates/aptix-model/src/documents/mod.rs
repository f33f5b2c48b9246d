//! The texts LLMs write, read strictly: what is not in the format is an error that names the
//! nearest right word, and nothing is repaired.

mod create_file;
mod json;
mod line_patch;

use core::fmt;
use core::str::FromStr;
use std::string::String;
use std::vec::Vec;
use std::{format, vec};

use crate::batch::Batch;
use crate::failure::Failure;
use crate::limits::DOCUMENT_BYTES;
use crate::reason::{Detail, Reason};
use crate::report::Warning;

/// A way of writing an edit down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Line changes to files pinned by SHA-256, in JSON (TUL-002 4).
    LinePatch,
    /// One file's whole content, in JSON (TUL-004 4.2).
    CreateFile,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 2] = [Self::LinePatch, Self::CreateFile];

    /// The published name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::LinePatch => "line-patch",
            Self::CreateFile => "create-file",
        }
    }

    /// The keys of its top-level object; the first ones tell it from other dialects.
    const fn keys(self) -> (&'static [&'static str], &'static [&'static str]) {
        match self {
            Self::LinePatch => (&["files"], &["batchLabel", "batchKey", "batchId"]),
            Self::CreateFile => (&["path", "content"], &["overwrite"]),
        }
    }
}

impl fmt::Display for Dialect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A name that no dialect has.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("unknown dialect {found:?}, expected one of line-patch, create-file")]
pub struct UnknownDialect {
    found: String,
}

impl FromStr for Dialect {
    type Err = UnknownDialect;

    fn from_str(text: &str) -> Result<Self, UnknownDialect> {
        let found = Self::ALL.into_iter().find(|dialect| dialect.name() == text);
        found.ok_or_else(|| UnknownDialect { found: text.into() })
    }
}

/// A document that has the shape of its dialect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Document {
    /// The dialect it is written in.
    pub dialect: Dialect,
    /// What it describes; the numbers and paths in it are still unchecked.
    pub batch: Batch,
    /// What was read but has no effect.
    pub warnings: Vec<Warning>,
}

/// Reads one document; without a dialect, in the one dialect whose keys it has.
///
/// # Errors
/// Everything that keeps the text from having the shape of its dialect. Syntax errors come alone; errors of shape that
/// can be told without guessing come together.
pub fn parse(bytes: &[u8], dialect: Option<Dialect>) -> Result<Document, Vec<Failure>> {
    let text = decode(bytes).map_err(|failure| vec![failure])?;
    json::check_size(text).map_err(|failure| vec![failure])?;
    let dialect = match dialect {
        Some(dialect) => dialect,
        None => recognise(text).map_err(|failure| vec![failure])?,
    };
    let (batch, warnings) = match dialect {
        Dialect::LinePatch => line_patch::parse(text)?,
        Dialect::CreateFile => create_file::parse(text)?,
    };
    Ok(Document { dialect, batch, warnings })
}

fn decode(bytes: &[u8]) -> Result<&str, Failure> {
    if bytes.len() > DOCUMENT_BYTES {
        let message = format!("the document has {} bytes, at most {DOCUMENT_BYTES} are read", bytes.len());
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Document)
            .hint("send several smaller batches, one after the other"));
    }
    let text = core::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the document is not UTF-8: byte {} is wrong", error.valid_up_to());
        Failure::new(Reason::InvalidRequest, message).detail(Detail::Unicode)
    })?;
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    if text.trim().is_empty() {
        let message = "the document is empty, expected a JSON object";
        return Err(Failure::new(Reason::InvalidRequest, message).detail(Detail::Empty));
    }
    Ok(text)
}

/// Finds the one dialect whose telling keys the document has, or nearly has.
fn recognise(text: &str) -> Result<Dialect, Failure> {
    let keys = json::top_level_keys(text)?;
    let has = |dialect: &Dialect, near: fn(&str, &str) -> bool| {
        keys.iter().any(|key| dialect.keys().0.iter().any(|telling| near(key, telling)))
    };
    let matches = |near: fn(&str, &str) -> bool| {
        let mut found = Dialect::ALL.into_iter().filter(move |dialect| has(dialect, near));
        (found.next(), found.next())
    };
    match (matches(|key, telling| key == telling), matches(json::is_near)) {
        ((Some(dialect), None), _) | ((None, None), (Some(dialect), None)) => Ok(dialect),
        _ => Err(unrecognised(&keys)),
    }
}

fn unrecognised(keys: &[String]) -> Failure {
    let short = |key: &String| format!("'{}'", key.chars().take(40).collect::<String>());
    let found = keys.iter().map(short).take(10).collect::<Vec<_>>().join(", ");
    let known: Vec<String> = Dialect::ALL
        .into_iter()
        .map(|dialect| {
            let (telling, others) = dialect.keys();
            format!("{dialect} has {}", [telling, others].concat().join(", "))
        })
        .collect();
    let message = format!(
        "the document is in no dialect that is understood; its keys are {}",
        if found.is_empty() { "none" } else { &found }
    );
    Failure::new(Reason::InvalidRequest, message).detail(Detail::UnknownDialect).hint(known.join("; "))
}

/// Warns of ids in a request: the server mints them.
fn id_ignored(field: &str) -> Warning {
    Warning {
        code: "ID_IGNORED".into(),
        message: format!("{field} is given by the server; the one in the document has no effect"),
    }
}
