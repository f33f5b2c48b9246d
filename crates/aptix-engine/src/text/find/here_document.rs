//! Here documents: `<<`, perhaps `-` or `~`, perhaps blanks, and a word, perhaps in quotes, which ends the text below.
//!
//! The same letters shift a value. Where they leave it open, they count as a here document, whose lines must not move.

use alloc::collections::BTreeSet;

/// Letters of a word that counts without the line that it ends at.
const CAPITALS: usize = 3;

/// What follows a `<<`.
struct Operator<'l> {
    before: &'l [u8],
    /// Whether the word follows it directly.
    is_tight: bool,
    word: &'l [u8],
    after: &'l [u8],
}

/// Whether a line alone shows that a here document begins in it.
pub(super) fn is_begun_in(line: &[u8]) -> bool {
    operators(line).any(|operator| operator.is_tight_to_no_value() || operator.is_in_capitals())
}

/// Whether a here document begins in one of the lines and ends at another, which is its word.
pub(super) fn is_ended_in<'l>(lines: impl Iterator<Item = &'l [u8]> + Clone) -> bool {
    let words: BTreeSet<_> = lines.clone().flat_map(operators).map(|operator| operator.word).collect();
    !words.is_empty() && lines.into_iter().any(|line| words.contains(line.trim_ascii()))
}

fn operators(line: &[u8]) -> impl Iterator<Item = Operator<'_>> {
    memchr::memmem::find_iter(line, b"<<").filter_map(|at| {
        let (before, rest) = (line.get(..at)?, line.get(at + 2..)?);
        // More than three are the line of a conflict.
        let rest = rest.strip_prefix(b"<").unwrap_or(rest);
        if before.ends_with(b"<") || rest.starts_with(b"<") {
            return None;
        }
        let rest = rest.strip_prefix(b"-").or(rest.strip_prefix(b"~")).unwrap_or(rest);
        let blanks = rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t')).count();
        let rest = rest.get(blanks..)?;
        let quote = rest.first().copied().filter(|byte| matches!(byte, b'\'' | b'"' | b'\\'));
        let rest = if quote.is_some() { rest.get(1..)? } else { rest };
        let is_part = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
        let (word, after) = rest.split_at(rest.iter().take_while(|byte| is_part(byte)).count());
        let starts = word.first().is_some_and(|byte| byte.is_ascii_alphabetic() || *byte == b'_');
        let after = match quote {
            Some(quote @ (b'\'' | b'"')) => after.strip_prefix(&[quote]).unwrap_or(after),
            _ => after,
        };
        starts.then_some(Operator { before, is_tight: blanks == 0, word, after })
    })
}

impl Operator<'_> {
    /// Whether it directly precedes its word, and does not directly follow a value.
    fn is_tight_to_no_value(&self) -> bool {
        let is_value = |byte: &u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b')' | b']');
        self.is_tight && !self.before.last().is_some_and(is_value)
    }

    /// Whether its word is in capitals, nothing of an expression follows, and no number or bracket precedes it.
    fn is_in_capitals(&self) -> bool {
        let is_capital = |byte: &u8| byte.is_ascii_uppercase() || byte.is_ascii_digit() || *byte == b'_';
        let count = self.word.iter().filter(|byte| byte.is_ascii_uppercase()).count();
        let is_last = matches!(self.after.trim_ascii().first(), None | Some(b'|' | b'>' | b'&' | b')' | b';'));
        count >= CAPITALS && self.word.iter().all(is_capital) && is_last && !self.is_after_a_value()
    }

    fn is_after_a_value(&self) -> bool {
        let before = self.before.trim_ascii_end();
        let is_part = |byte: &&u8| byte.is_ascii_alphanumeric() || **byte == b'_';
        let first = before.iter().rev().take_while(is_part).last();
        first.is_some_and(u8::is_ascii_digit) || matches!(before.last(), Some(b')' | b']'))
    }
}
