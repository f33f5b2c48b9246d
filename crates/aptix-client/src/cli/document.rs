//! The document that a command reads, and how it is written.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use aptix_model::documents::{self, Dialect, Document, PartialDocument};
use aptix_model::failure::Failure;
use aptix_model::limits::DOCUMENT_BYTES;
use aptix_model::reason::Reason;
use clap::builder::TypedValueParser;

use super::words::Words;

/// Arguments of a command that reads a document.
#[derive(clap::Args, Debug)]
pub(super) struct DocumentArgs {
    #[arg(long, default_value = "auto", value_parser = dialects(), hide_possible_values = true, help = dialect_help())]
    dialect: DialectChoice,
    /// The document; stdin when absent or "-"
    #[arg(value_name = "FILE")]
    file: Option<PathBuf>,
}

/// A dialect, or none for `auto`.
#[derive(Clone, Copy, Debug)]
pub(super) struct DialectChoice(pub(super) Option<Dialect>);

/// The choice of no dialect.
const AUTO: &str = "auto";

fn dialect_help() -> String {
    format!("How the document is written: {}", dialect_list())
}

/// The words of all choices, as people read them.
fn dialect_list() -> String {
    format!("{AUTO}, {}", Dialect::ALL.map(Dialect::name).join(", "))
}

/// Parses a choice of a dialect.
pub(super) fn dialects() -> impl TypedValueParser<Value = DialectChoice> {
    Words::new(dialect, [AUTO].into_iter().chain(Dialect::ALL.map(Dialect::name)))
}

fn dialect(text: &str) -> Result<DialectChoice, String> {
    if text == AUTO {
        return Ok(DialectChoice(None));
    }
    let dialect = Dialect::from_name(text).map(|dialect| DialectChoice(Some(dialect)));
    dialect.ok_or_else(|| format!("unknown dialect {text:?}, expected one of {}", dialect_list()))
}

impl DocumentArgs {
    /// Reads and parses the document.
    ///
    /// # Errors
    /// The document cannot be read, or parsed.
    pub(super) fn read(&self) -> Result<Result<Document, PartialDocument>, Failure> {
        let file = self.file.as_deref().filter(|path| *path != Path::new("-"));
        // No more of it than would already be too much.
        let limit = DOCUMENT_BYTES as u64 + 1;
        let mut bytes = Vec::new();
        let read = match file {
            Some(path) => File::open(path).and_then(|file| file.take(limit).read_to_end(&mut bytes)),
            None => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        };
        read.map_err(|error| {
            let name = file.map_or_else(|| "stdin".to_owned(), |path| path.display().to_string());
            Failure::new(Reason::ReadFailed, format!("cannot read the document from {name}: {error}"))
                .hint("name a file that can be read, or give the document on stdin")
        })?;
        Ok(documents::parse_part(&bytes, self.dialect.0))
    }
}
