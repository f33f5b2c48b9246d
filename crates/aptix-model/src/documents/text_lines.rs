//! The lines of a document that is no JSON, each with its number, and what is wrong with one of them.

use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// Characters of a line that a message repeats.
const SHOWN: usize = 120;

/// One line of a document, without its terminator.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    /// Its number, from 1.
    pub(super) number: usize,
    pub(super) text: &'a str,
}

/// The lines of a text; of a `\r\n` the `\r` is no part of the line either.
pub(super) fn lines(text: &str) -> impl Iterator<Item = Line<'_>> + Clone {
    let lines = text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line));
    lines.enumerate().map(|(index, text)| Line { number: index + 1, text })
}

/// Refuses a document for one of its lines; without a line, for its end.
pub(super) fn malformed(line: Option<usize>, detail: Detail, message: impl Into<String>) -> Failure {
    match line {
        Some(number) => Failure::new(Reason::PatchMalformed, message).detail(detail).field(format!("line {number}")),
        None => Failure::new(Reason::PatchTruncated, message)
            .detail(detail)
            .hint("the document was cut short; send it whole"),
    }
}

/// Refuses a document whose last line shows that its rest is missing.
pub(super) fn cut_short(line: usize, message: impl Into<String>) -> Failure {
    malformed(None, Detail::Marker, message).field(format!("line {line}"))
}

/// Refuses a document that has more of something than any batch may have, at the first one too many.
pub(super) fn too_many(line: usize, what: Detail, most: usize) -> Failure {
    let noun = what.code().to_ascii_lowercase();
    Failure::new(Reason::TooLarge, format!("too many {noun}: at most {most} in a batch"))
        .detail(what)
        .field(format!("line {line}"))
        .hint("send several smaller batches, one after the other")
}

/// The beginning of a line, in quotes.
pub(super) fn quoted(text: &str) -> String {
    let mut head: String = text.chars().take(SHOWN).collect();
    if head.len() < text.len() {
        head.push('\u{2026}');
    }
    format!("{head:?}")
}
