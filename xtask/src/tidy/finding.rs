//! What tidy finds, and how it reads lines without parsing them.

use std::fmt;

/// Something that has to change, where, and how.
pub(super) struct Finding {
    pub(super) path: String,
    /// From 1; 0 where the file as a whole is meant.
    pub(super) line: usize,
    pub(super) message: String,
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => write!(f, "{}: {}", self.path, self.message),
            line => write!(f, "{}:{line}: {}", self.path, self.message),
        }
    }
}

/// The line without its line comment, as far as can be determined without parsing: `//` in a string cuts too early.
pub(super) fn code(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// Whether a line contains an identifier as a whole word.
pub(super) fn names_word(line: &str, word: &str) -> bool {
    line.split(|c: char| !(c.is_alphanumeric() || c == '_')).any(|token| token == word)
}
