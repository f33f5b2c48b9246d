//! The texts LLMs write, read strictly: what is not in the format is an error that names the
//! nearest right word, and nothing is repaired.

mod chat;
mod codex_patch;
mod create_file;
pub(crate) mod fields;
mod file_bundle;
mod git_patch;
pub(crate) mod json;
mod line_patch;
mod recognise;
mod search_patch;
mod search_replace;
mod str_replace;
mod structured_patch;
mod text_lines;
mod tokens;
mod write;

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
use git_patch::Extent;
use recognise::Shape;

pub use write::write;

/// A way of writing an edit down.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Dialect {
    /// Line changes to files pinned by SHA-256, in JSON (TUL-002 4).
    LinePatch,
    /// One file's whole content, in JSON (TUL-004 4.2).
    CreateFile,
    /// One file, and texts that are all searched for in it as it is, in JSON (REQ-PATCH-006).
    SearchPatch,
    /// Texts searched for and replaced one after the other, file by file, in JSON (FILE-SPEC 2).
    StructuredPatch,
    /// Whole files, created, replaced or deleted, in JSON (FILE-SPEC 1).
    FileBundle,
    /// Sections between `*** Begin Patch` and `*** End Patch`, placed by the lines around each change.
    CodexPatch,
    /// Blocks of lines that stand in a file and lines that come instead, between marker lines.
    SearchReplace,
    /// Commands of the common text-editor tool, in JSON.
    StrReplace,
    /// A unified diff of one or more files (FILE-SPEC 3).
    GitPatch,
    /// A whole answer in Markdown, with edits in its fenced blocks (FILE-SPEC 5).
    Chat,
}

impl Dialect {
    /// Every dialect.
    pub const ALL: [Self; 10] = [
        Self::LinePatch,
        Self::CreateFile,
        Self::SearchPatch,
        Self::StructuredPatch,
        Self::FileBundle,
        Self::CodexPatch,
        Self::SearchReplace,
        Self::StrReplace,
        Self::GitPatch,
        Self::Chat,
    ];

    /// The published name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.known_by().0
    }

    /// How a document is known to be written in it.
    const fn shape(self) -> Shape {
        self.known_by().1
    }

    const fn known_by(self) -> (&'static str, Shape) {
        match self {
            Self::LinePatch => ("line-patch", line_patch::SHAPE),
            Self::CreateFile => ("create-file", create_file::SHAPE),
            Self::SearchPatch => ("search-patch", search_patch::SHAPE),
            Self::StructuredPatch => ("structured-patch", structured_patch::SHAPE),
            Self::FileBundle => ("file-bundle", file_bundle::SHAPE),
            Self::CodexPatch => ("codex-patch", codex_patch::SHAPE),
            Self::SearchReplace => ("search-replace", search_replace::SHAPE),
            Self::StrReplace => ("str-replace", str_replace::SHAPE),
            Self::GitPatch => ("git-patch", git_patch::SHAPE),
            Self::Chat => ("chat", Shape::Rest),
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
#[error("unknown dialect {found:?}, expected one of {}", Dialect::ALL.map(Dialect::name).join(", "))]
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

/// Reads one document; without a dialect, in the one dialect that it is recognised as.
///
/// # Errors
/// Everything that keeps the text from having the shape of its dialect. Syntax errors come alone; errors of shape that
/// can be told without guessing come together.
pub fn parse(bytes: &[u8], dialect: Option<Dialect>) -> Result<Document, Vec<Failure>> {
    let bytes = check_size(bytes).map_err(|failure| vec![failure])?;
    let dialect = match dialect {
        Some(dialect) => dialect,
        None => recognise::recognise(bytes).map_err(|failure| vec![failure])?,
    };
    let (batch, warnings) = read(bytes, dialect)?;
    Ok(Document { dialect, batch, warnings })
}

fn read(bytes: &[u8], dialect: Dialect) -> Result<(Batch, Vec<Warning>), Vec<Failure>> {
    match dialect {
        Dialect::LinePatch => line_patch::parse(json::text(bytes)?),
        Dialect::CreateFile => create_file::parse(json::text(bytes)?),
        Dialect::SearchPatch => search_patch::parse(json::text(bytes)?),
        Dialect::StructuredPatch => structured_patch::parse(json::text(bytes)?),
        Dialect::FileBundle => file_bundle::parse(json::text(bytes)?),
        Dialect::CodexPatch => codex_patch::parse(text_lines::text(bytes)?),
        Dialect::SearchReplace => search_replace::parse(text_lines::text(bytes)?),
        Dialect::StrReplace => str_replace::parse(json::text(bytes)?),
        Dialect::GitPatch => git_patch::parse(bytes, Extent::Document),
        Dialect::Chat => chat::parse(text_lines::text(bytes)?),
    }
}

/// A document, without its byte order mark, that has bytes, and no more than are read.
fn check_size(bytes: &[u8]) -> Result<&[u8], Failure> {
    if bytes.len() > DOCUMENT_BYTES {
        let message = format!("the document has {} bytes, at most {DOCUMENT_BYTES} are read", bytes.len());
        return Err(Failure::new(Reason::TooLarge, message)
            .detail(Detail::Document)
            .hint("send several smaller batches, one after the other"));
    }
    let bytes = bytes.strip_prefix(BYTE_ORDER_MARK).unwrap_or(bytes);
    if bytes.trim_ascii().is_empty() {
        let message = "the document is empty, expected an edit";
        return Err(Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::Empty)
            .hint(format!("send a document in one of the dialects: {}", Dialect::ALL.map(Dialect::name).join(", "))));
    }
    Ok(bytes)
}

const BYTE_ORDER_MARK: &[u8] = "\u{feff}".as_bytes();

/// The text of a document, which is UTF-8.
fn decode(bytes: &[u8]) -> Result<&str, Failure> {
    core::str::from_utf8(bytes).map_err(|error| {
        let message = format!("the document is not UTF-8: byte {} is wrong", error.valid_up_to());
        Failure::new(Reason::InvalidRequest, message).detail(Detail::Unicode).hint("send the document as UTF-8")
    })
}

/// Warns of ids in a request: the server mints them.
fn id_ignored(field: &str) -> Warning {
    Warning {
        code: "ID_IGNORED".into(),
        message: format!("{field} is given by the server; the one in the document has no effect"),
        line: None,
    }
}
