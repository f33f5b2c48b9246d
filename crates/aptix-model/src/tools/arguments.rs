//! Arguments that several tools have: ranges of lines, limits, and one of a few words.

use crate::documents::json::Whole;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};

/// The words of an argument and their values; the empty one is the default, which providers that require every field send.
pub(super) type Words<T> = &'static [(&'static str, T)];

/// The words alone, for the schema.
pub(super) fn names<T>(words: Words<T>) -> Vec<&'static str> {
    words.iter().map(|(name, _)| *name).collect()
}

/// Parses a word.
pub(super) fn word<T: Copy>(field: &str, word: Option<&str>, words: Words<T>, hint: &str) -> Result<T, Failure> {
    let word = word.unwrap_or_default();
    words.iter().find(|(name, _)| *name == word).map(|(_, value)| *value).ok_or_else(|| {
        let shown: String = word.chars().take(40).collect();
        Failure::new(Reason::InvalidRequest, format!("there is no {field} {shown:?}"))
            .detail(Detail::UnknownEnum)
            .field(field)
            .hint(hint)
    })
}

/// Parses `10~20`, `10`, `10~`, `~20` or `~`: first and last line, each the file's own if left out.
pub(super) fn range(text: &str) -> Result<(i64, Option<i64>), Failure> {
    let number = |part: &str| part.trim().parse::<i64>().ok();
    let parts = match text.split_once('~') {
        None => number(text).map(|line| (line, Some(line))),
        Some((first, last)) => {
            let first = if first.trim().is_empty() { Some(1) } else { number(first) };
            let last = if last.trim().is_empty() { Some(None) } else { number(last).map(Some) };
            first.zip(last)
        }
    };
    parts.ok_or_else(|| {
        let shown: String = text.chars().take(40).collect();
        Failure::new(Reason::InvalidRequest, format!("{shown:?} is no range of lines"))
            .detail(Detail::Number)
            .field("range")
            .hint("write 10~20 for lines 10 to 20, 10 for one line, 10~ for line 10 to the end, ~20 for the first 20")
    })
}

/// The count that an argument asks for, or the usual one for 0 and for none; capped, which the answer then says.
pub(super) fn count(field: &str, asked: Option<Whole>, usual: u32, most: u32) -> Result<u32, Failure> {
    match asked.map_or(0, |Whole(asked)| asked) {
        0 => Ok(usual),
        1.. => Ok(asked.and_then(|Whole(asked)| u32::try_from(asked).ok()).map_or(most, |asked| asked.min(most))),
        negative => {
            Err(Failure::new(Reason::InvalidRequest, format!("{field} is {negative}, expected a count from 0"))
                .detail(Detail::Number)
                .field(field)
                .hint(format!("give 1 to {most}, or leave it out")))
        }
    }
}
