//! Lines of a file as a refusal shows them, and where a line differs from what was expected.

use alloc::format;
use alloc::string::String;

use aptix_model::failure::Excerpt;

use crate::shown::cut;
use crate::text::edit::slice;
use crate::text::lines::Cursor;

/// Lines of an excerpt.
pub(crate) const LINES: usize = 20;
/// Characters of a line of an excerpt.
const LINE_CHARS: usize = 400;
/// Characters of a line quoted in a message.
const QUOTED_CHARS: usize = 80;

/// The lines below a cursor, at most `count` and [`LINES`], or nothing at the end.
pub(crate) fn excerpt(cursor: Cursor<'_>, count: usize) -> Option<Excerpt> {
    let start_line = cursor.above() + 1;
    let mut end_line = cursor.above();
    let mut text = String::new();
    for line in cursor.take(count.min(LINES)) {
        if end_line >= start_line {
            text.push('\n');
        }
        text.push_str(&cut(line, LINE_CHARS));
        end_line += 1;
    }
    (end_line >= start_line).then_some(Excerpt { start_line, end_line, text })
}

/// Where and how a line differs from what was expected.
pub(crate) fn difference(expected: &str, found: &str) -> String {
    let mut common = expected.bytes().zip(found.bytes()).take_while(|(expected, found)| expected == found).count();
    while !expected.is_char_boundary(common) {
        common -= 1;
    }
    let (same, rest) = expected.split_at(common);
    let column = same.chars().count() + 1;
    // Both quotations start at the same place, a little before the difference.
    let start = same.char_indices().rev().nth(QUOTED_CHARS / 2).map_or(0, |(start, _)| start);
    let quote = |text: &str| {
        let start_mark = if start > 0 { "\u{2026}" } else { "" };
        let tail = slice(text.as_bytes(), start..text.len());
        format!("{:?}", format!("{start_mark}{}", cut(tail, QUOTED_CHARS)))
    };
    let mut words = format!("at column {column}, expected {}, found {}", quote(expected), quote(found));
    if let Some((expected, found)) = alike(rest, found.split_at(common).1) {
        words.push_str(&format!(", where U+{:04X} is not U+{:04X}", u32::from(expected), u32::from(found)));
    }
    if let Some(kind) = invisible(expected, found) {
        words.push_str(", which differs in ");
        words.push_str(kind);
    }
    words
}

/// The first characters of two texts, if they are signs that can look alike, such as quotation marks and dashes.
fn alike(expected: &str, found: &str) -> Option<(char, char)> {
    let (expected, found) = (expected.chars().next()?, found.chars().next()?);
    let is_sign = |character: char| !character.is_alphanumeric() && !character.is_control();
    let is_typed = expected.is_ascii() && found.is_ascii();
    (is_sign(expected) && is_sign(found) && !is_typed).then_some((expected, found))
}

/// The invisible difference between two lines, if that is all that differs.
fn invisible(expected: &str, found: &str) -> Option<&'static str> {
    let solid = |text: &'_ str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
    if expected.strip_prefix('\u{feff}') == Some(found) {
        Some("a byte order mark, which is no part of line 1")
    } else if expected.trim_end() == found.trim_end() {
        Some("trailing white space")
    } else if expected.trim_start() == found.trim_start() {
        Some("leading white space")
    } else if expected.trim() == found.trim() {
        Some("leading and trailing white space")
    } else if solid(expected) == solid(found) {
        Some("white space")
    } else {
        None
    }
}
