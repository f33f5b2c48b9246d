//! The guide for whoever writes edits, as text for a system prompt: the rules of the requirements about authors, each a sentence
//! with its id, and an example of each dialect.

mod examples;
mod sentences;

use core::fmt::Write as _;

pub use sentences::{Part, SENTENCES, Sentence};

use crate::documents::Dialect;

/// What every guide begins with.
const HEAD: &str = "# How to write edits\n\n\
    An edit is applied exactly as it is written, or refused as a whole with the reason. Paths start at the root of the \
    workspace and have forward slashes, such as src/main.rs. A refusal has errors, each with code, message, hint and \
    nearest (the real lines of the file); where an error has nextAction, that call is complete and ready to be sent.\n";

/// The guide: for any edit, or for one dialect alone.
#[must_use]
pub fn guide(dialect: Option<Dialect>) -> String {
    let mut text = HEAD.to_owned();
    for part in Part::ALL.into_iter().filter(|part| dialect.is_none_or(|dialect| part.is_about(dialect))) {
        let _ = writeln!(text, "\n## {}\n", part.title());
        for sentence in SENTENCES.iter().filter(|sentence| sentence.part == part) {
            let _ = writeln!(text, "- {}", sentence.text);
        }
    }
    let wanted = |known: &Dialect| dialect.is_none_or(|dialect| dialect == *known);
    for dialect in Dialect::ALL.into_iter().filter(wanted) {
        let _ = writeln!(text, "\n## {dialect}\n\n{}", examples::of(dialect));
    }
    text
}
