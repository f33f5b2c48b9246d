//! The texts LLMs write, read strictly: what is not in the format is an error that names the
//! nearest right word, and nothing is repaired.
//!
//! From the bottom up: what all dialects read with (`noted`, `json`, `text_lines`, `fields`, `keys`), one file or folder for
//! each dialect, `json_dialect` and `telling` over those written in JSON, `chat` over all, `recognise`, and [`parse`] on top.

mod author_keys;
mod bytes;
mod chat;
mod codex_patch;
pub(crate) mod create_file;
mod dialect;
pub(crate) mod fields;
pub(crate) mod file_bundle;
mod git_patch;
pub(crate) mod json;
mod json_dialect;
mod keys;
pub(crate) mod line_patch;
mod misfit;
mod noted;
mod recognise;
pub(crate) mod search_patch;
mod search_replace;
mod str_replace;
pub(crate) mod structured_patch;
mod telling;
pub mod terms;
mod text_lines;
mod write;

use crate::batch::{Batch, PartialBatch};
use crate::failure::Failure;
use crate::report::Warning;
use bytes::{check_lines, check_size, decode};
use chat::thought::{self, Thoughtful};
use dialect::Parsed;
use fields::listed;
use git_patch::lines::Extent;
use json_dialect::JsonDialect;
use recognise::recognise;

pub use dialect::{Dialect, UnknownDialect};
pub use write::write;

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

/// A document that does not have the shape of its dialect.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PartialDocument {
    /// The dialect it is written in; none where that cannot be determined.
    pub dialect: Option<Dialect>,
    /// What is wrong with its shape, and the file patches with which nothing is.
    pub part: PartialBatch,
}

/// A text of which nothing can be read.
impl From<Failure> for PartialDocument {
    fn from(failure: Failure) -> Self {
        Self { dialect: None, part: failure.into() }
    }
}

/// Parses one document; without a dialect, in the one dialect that it is recognised as.
///
/// # Errors
/// Everything that keeps the text from having the shape of its dialect: up to a hundred failures, then how many more there
/// are. Syntax errors come alone; errors of shape that can be determined without guessing come together.
pub fn parse(bytes: &[u8], dialect: Option<Dialect>) -> Result<Document, Vec<Failure>> {
    parse_part(bytes, dialect).map_err(|document| listed(document.part.failures))
}

/// Parses one document as [`parse`] does.
///
/// # Errors
/// All failures, with the file patches that have the right shape: a wrong shape hides its own file alone.
pub fn parse_part(bytes: &[u8], dialect: Option<Dialect>) -> Result<Document, PartialDocument> {
    let unread = |failure: Failure| PartialDocument { dialect, part: failure.into() };
    let bytes = check_size(bytes).map_err(unread)?;
    let dialect = dialect.map_or_else(|| recognise(bytes), Ok).map_err(unread)?;
    // JSON has its lines in lists, whose items are counted.
    if JsonDialect::of(dialect).is_none() {
        check_lines(bytes).map_err(|failure| PartialDocument { dialect: Some(dialect), part: failure.into() })?;
    }
    let parsed = match dialect {
        Dialect::Chat => decode(bytes).map_err(PartialBatch::from).and_then(parse_answer),
        dialect => read(bytes, dialect),
    };
    match parsed {
        Ok((batch, warnings)) => Ok(Document { dialect, batch, warnings }),
        Err(part) => Err(PartialDocument { dialect: Some(dialect), part }),
    }
}

/// Reads an answer. What its author thought before it is no part of it, and what is left may be a document alone, as any text
/// may.
fn parse_answer(text: &str) -> Parsed {
    let Some(Thoughtful { rest, drafted, warning }) = thought::take_out(text)? else {
        return chat::parse(text);
    };
    let dialect = if rest.trim().is_empty() { Ok(Dialect::Chat) } else { recognise(rest.as_bytes()) };
    let (batch, warnings) = read(rest.as_bytes(), dialect?)?;
    let warning = chat::has_edits(drafted).then_some(warning);
    Ok((batch, warning.into_iter().chain(warnings).collect()))
}

fn read(bytes: &[u8], dialect: Dialect) -> Parsed {
    match dialect {
        Dialect::LinePatch => JsonDialect::LinePatch.parse(bytes),
        Dialect::CreateFile => JsonDialect::CreateFile.parse(bytes),
        Dialect::SearchPatch => JsonDialect::SearchPatch.parse(bytes),
        Dialect::StructuredPatch => JsonDialect::StructuredPatch.parse(bytes),
        Dialect::FileBundle => JsonDialect::FileBundle.parse(bytes),
        Dialect::CodexPatch => codex_patch::parse(decode(bytes)?),
        Dialect::SearchReplace => search_replace::parse(decode(bytes)?),
        Dialect::StrReplace => JsonDialect::StrReplace.parse(bytes),
        Dialect::GitPatch => git_patch::parse(bytes, Extent::Document),
        Dialect::Chat => chat::parse(decode(bytes)?),
    }
}
