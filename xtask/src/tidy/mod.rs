//! What the compiler does not check: arrows between crates, who names what, requirement ids, house rules.

mod arrows;
mod ids;
mod names;
mod pages;
mod rules;

use std::fmt;

use anyhow::{Result, bail};

use crate::repo;

/// Something that has to change, where, and how.
struct Finding {
    path: String,
    /// From 1; 0 where the file as a whole is meant.
    line: usize,
    message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// Checks the repository and prints every finding.
///
/// # Errors
///
/// When there are findings, or the repository cannot be read.
pub(crate) fn check() -> Result<()> {
    let texts = repo::texts()?;
    let mut findings = arrows::check()?;
    findings.extend(ids::check(&texts)?);
    findings.extend(pages::check(&texts));
    for text in &texts {
        findings.extend(names::check(text));
        findings.extend(rules::check(text));
    }
    for finding in &findings {
        println!("{finding}");
    }
    match findings.len() {
        0 => Ok(()),
        1 => bail!("tidy found 1 thing to change"),
        count => bail!("tidy found {count} things to change"),
    }
}

/// The line without its line comment, as far as can be told without parsing: `//` in a string cuts too early.
fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether an identifier stands in a line, whole.
fn names_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|token| token == word)
}
