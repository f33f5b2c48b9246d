//! What an author is shown when a change does not fit the file: the real lines, the first difference, and
//! where the expected lines stand instead.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};

use aptix_model::failure::{Excerpt, Failure};
use aptix_model::reason::{Detail, Reason};
use memchr::{memchr_iter, memmem, memrchr_iter};

use crate::line_patch::LinePatchError;
use crate::text::{Cursor, Text};
use crate::validate::LineChange;

/// Lines of an excerpt.
const LINES: usize = 20;
/// Characters of a line of an excerpt.
const LINE_CHARS: usize = 400;
/// Characters of a line quoted in a message.
const QUOTED_CHARS: usize = 80;
/// Line comparisons spent on looking for a block elsewhere.
const COMPARISONS: usize = 1_000_000;

/// Tells the author of a change why it does not fit, from what stands at its place.
pub(crate) fn explain(error: &LinePatchError, text: &Text<'_>, change: &LineChange<'_>) -> Failure {
    let message = error.to_string();
    match *error {
        LinePatchError::PastEnd { lines, .. } => {
            let failure = Failure::new(Reason::LineRange, message).detail(Detail::PastEnd);
            failure.hint(match lines {
                0 => "the file is empty: insert with afterLine 0".to_string(),
                _ => format!("name lines 1 to {lines}; to append, insert with afterLine {lines}"),
            })
        }
        LinePatchError::LongLine { line, .. } => Failure::new(Reason::TooLarge, message)
            .detail(Detail::Line)
            .line(line)
            .hint("leave the line out of the patch: lines that no change touches may be of any length"),
        LinePatchError::Expected { first, offset, index } => {
            let mut lines = text.cursor_at(offset, first - 1);
            let found = lines.clone().nth(index).map(|line| line.text).unwrap_or_default();
            let expected = change.expected.get(index).map(String::as_str).unwrap_or_default();
            let message = format!("{message}: {}", difference(expected, found));
            let hint = "take expectedOriginalLines from the file as it is now, word for word";
            let mut failure = Failure::new(Reason::ExpectedMismatch, message).hint(hint).line(first + index);
            let skipped = if index < LINES { 0 } else { index - LINES / 2 };
            if skipped > 0 {
                lines.nth(skipped - 1);
            }
            failure.nearest.extend(excerpt(lines, change.removed - skipped));
            failure
        }
    }
}

/// Adds what only a search of the whole file can tell: the place where the expected lines stand now, or the
/// file's last lines.
pub(crate) fn look_around(
    mut failure: Failure,
    error: &LinePatchError,
    text: &Text<'_>,
    change: &LineChange<'_>,
) -> Failure {
    match *error {
        LinePatchError::PastEnd { lines, .. } => {
            let mut cursor = text.cursor();
            if cursor.seek(lines.saturating_sub(5)).is_ok() {
                failure.nearest.extend(excerpt(cursor, 5));
            }
        }
        LinePatchError::Expected { .. } => {
            if let Some(first) = only_place(text, change) {
                let last = first + change.expected.len() - 1;
                failure.hint = Some(format!(
                    "the expected lines stand at lines {first} to {last} and nowhere else; correct the line numbers, and read the file again first"
                ));
            }
        }
        LinePatchError::LongLine { .. } => {}
    }
    failure
}

/// The lines below a cursor, at most `count` and [`LINES`], or nothing at the end.
fn excerpt(cursor: Cursor<'_>, count: usize) -> Option<Excerpt> {
    let start_line = cursor.above() + 1;
    let mut end_line = cursor.above();
    let mut text = String::new();
    for line in cursor.take(count.min(LINES)) {
        if end_line >= start_line {
            text.push('\n');
        }
        text.push_str(&shown(line.text, LINE_CHARS));
        end_line += 1;
    }
    (end_line >= start_line).then_some(Excerpt { start_line, end_line, text })
}

/// The first characters of some bytes; what is no UTF-8 is shown as U+FFFD, what is left out as an ellipsis.
fn shown(bytes: &[u8], chars: usize) -> Cow<'_, str> {
    // No character has more than four bytes.
    let head = String::from_utf8_lossy(bytes.get(..4 * chars + 4).unwrap_or(bytes));
    if head.chars().nth(chars).is_none() {
        return head;
    }
    Cow::Owned(head.chars().take(chars).chain(['\u{2026}']).collect())
}

/// Where and how a line differs from what was expected.
fn difference(expected: &str, found: &[u8]) -> String {
    let mut common = expected.bytes().zip(found).take_while(|(expected, found)| expected == *found).count();
    while !expected.is_char_boundary(common) {
        common -= 1;
    }
    let (same, _) = expected.split_at(common);
    let column = same.chars().count() + 1;
    // Both quotations start at the same place, a little before the difference.
    let start = same.char_indices().rev().nth(QUOTED_CHARS / 2).map_or(0, |(start, _)| start);
    let quote = |bytes: &[u8]| {
        let start_mark = if start > 0 { "\u{2026}" } else { "" };
        format!("{:?}", format!("{start_mark}{}", shown(bytes.get(start..).unwrap_or_default(), QUOTED_CHARS)))
    };
    let mut words = format!("at column {column}, expected {}, found {}", quote(expected.as_bytes()), quote(found));
    if let Some(kind) = invisible(expected, &String::from_utf8_lossy(found)) {
        words.push_str(", which differs in ");
        words.push_str(kind);
    }
    words
}

/// What that cannot be seen tells two lines apart, if nothing else does.
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

/// The first line of the one place where the expected lines stand, if there is exactly one.
fn only_place(text: &Text<'_>, change: &LineChange<'_>) -> Option<usize> {
    let (above, anchor) = change.expected.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    if anchor.trim().is_empty() {
        return None;
    }
    let bytes = text.bytes();
    let mut place = None;
    let mut budget = COMPARISONS / change.expected.len();
    for hit in memmem::find_iter(bytes, anchor.as_bytes()) {
        budget = budget.checked_sub(1)?;
        let head = bytes.get(text.start()..hit)?;
        if !(head.is_empty() || head.ends_with(b"\n")) {
            continue;
        }
        let mut feeds = memrchr_iter(b'\n', head);
        let start = match feeds.nth(above) {
            Some(feed) => text.start() + feed + 1,
            None if memrchr_iter(b'\n', head).take(above).count() == above => text.start(),
            None => continue,
        };
        let mut cursor = text.cursor_at(start, 0);
        if change.expected.iter().all(|line| cursor.step_over(line.as_bytes()).is_some())
            && place.replace(start).is_some()
        {
            return None;
        }
    }
    place.map(|start| memchr_iter(b'\n', bytes.get(..start).unwrap_or_default()).count() + 1)
}
