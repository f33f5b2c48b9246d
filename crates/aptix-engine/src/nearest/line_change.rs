//! What an author is shown when a change does not fit the file: the real lines, the first difference, and
//! where the expected lines are instead.

use alloc::format;
use alloc::string::{String, ToString};

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use memchr::{memchr_iter, memmem, memrchr_iter};

use crate::nearest::excerpt::{LINES, difference, excerpt};
use crate::text::edit::slice;
use crate::text::find::Searches;
use crate::text::line_changes::{LineChange, LinePatchError};
use crate::text::lines::Text;

/// How often a search may look at as many bytes as the file has.
const LOOKS: usize = 8;

/// Explains why a change does not fit, from the lines at its place.
pub(crate) fn explain(error: &LinePatchError, text: &Text<'_>, change: &LineChange<'_>) -> Failure {
    let message = error.to_string();
    match *error {
        LinePatchError::PastEnd { lines, .. } => {
            let failure = Failure::new(Reason::LineRange, message).detail(Detail::PastEnd);
            failure.hint(match (lines, change.removed()) {
                (0, _) => "the file is empty: insert with afterLine 0".to_string(),
                (_, 0) => format!("the last line is line {lines}; to append, insert with afterLine {lines}"),
                _ => format!("the last line is line {lines}; take line numbers from the file as it is now"),
            })
        }
        LinePatchError::LongLine { line, .. } => Failure::new(Reason::TooLarge, message)
            .detail(Detail::Line)
            .line(line)
            .hint("leave the line out of the patch: lines that no change touches may be of any length"),
        LinePatchError::Expected { first, offset, index } => {
            let mut lines = text.cursor_at(offset, first - 1);
            let found = lines.clone().nth(index).unwrap_or_default();
            let expected = change.expected.get(index).map(String::as_str).unwrap_or_default();
            let (words, hint) = match core::str::from_utf8(found) {
                Ok(found) => (
                    difference(expected, found),
                    "take expectedOriginalLines from the file as it is now, word for word",
                ),
                // As text it could look like the expected line, and still not be it.
                Err(error) => (
                    format!("byte {} of it is no UTF-8, and no patch can name such a line", error.valid_up_to() + 1),
                    "leave this line out of the patch",
                ),
            };
            let message = format!("{message}: {words}");
            let mut failure = Failure::new(Reason::ExpectedMismatch, message).hint(hint).line(first + index);
            let skipped = if index < LINES { 0 } else { index - LINES / 2 };
            if skipped > 0 {
                lines.nth(skipped - 1);
            }
            failure.nearest.extend(excerpt(lines, change.removed() - skipped));
            failure
        }
        LinePatchError::ByteOrderMark => Failure::new(Reason::InvalidRequest, message)
            .detail(Detail::EmbeddedBom)
            .hint("leave the U+FEFF out; a file keeps the byte order mark it has, and gets none"),
    }
}

/// Adds what only a search of the whole file finds: the place where the expected lines are now, or the
/// file's last lines. Does so as long as there are searches left.
pub(crate) fn look_around(
    mut failure: Failure,
    error: &LinePatchError,
    text: &Text<'_>,
    change: &LineChange<'_>,
    searches: &mut Searches,
) -> Failure {
    let Some(()) = searches.take() else { return failure };
    let (LinePatchError::PastEnd { .. } | LinePatchError::Expected { .. }) = *error else { return failure };
    let place = only_place(text, change.expected);
    if let Some(first) = place {
        failure.hint = Some(elsewhere(first, change.removed()));
    }
    if let LinePatchError::PastEnd { lines, .. } = *error {
        let (above, count) = place.map_or((lines.saturating_sub(5), 5), |first| (first - 1, change.removed()));
        let mut cursor = text.cursor();
        if cursor.seek(above).is_ok() {
            failure.nearest.extend(excerpt(cursor, count));
        }
    }
    failure
}

/// What to do where the expected lines are at another place.
fn elsewhere(first: usize, count: usize) -> String {
    let place = match count {
        1 => format!("the expected line is at line {first}"),
        count => format!("the expected lines are at lines {first} to {}", first + count - 1),
    };
    format!("{place} and nowhere else; correct the line numbers, and read the file again first")
}

/// The first line of the one place where the expected lines occur, if there is exactly one. Gives up, as if there
/// were none, when finding it takes more than a few times the work of reading the file.
pub(crate) fn only_place(text: &Text<'_>, expected: &[String]) -> Option<usize> {
    let (above, anchor) = expected.iter().enumerate().max_by_key(|(_, line)| line.len())?;
    if anchor.trim().is_empty() {
        return None;
    }
    let bytes = text.bytes();
    let mut place = None;
    let mut budget = LOOKS * bytes.len();
    for hit in memmem::find_iter(bytes, anchor.as_bytes()) {
        budget = budget.checked_sub(1)?;
        let head = bytes.get(text.start()..hit)?;
        if !(head.is_empty() || head.ends_with(b"\n")) {
            continue;
        }
        let near = head.get(head.len().saturating_sub(budget)..)?;
        let mut lines_above = 0;
        let feed = memrchr_iter(b'\n', near).find(|_| {
            lines_above += 1;
            lines_above > above
        });
        let start = match feed {
            Some(feed) => hit - near.len() + feed + 1,
            None if near.len() < head.len() => return None,
            None => text.start(),
        };
        budget = budget.checked_sub(hit - start)?;
        if lines_above < above {
            continue;
        }
        let mut cursor = text.cursor_at(start, 0);
        let mut looked = 0_usize;
        let is_there = expected.iter().all(|line| {
            looked = looked.saturating_add(line.len() + 1);
            cursor.step_over(line.as_bytes()).is_some()
        });
        budget = budget.checked_sub(looked)?;
        if is_there && place.replace(start).is_some() {
            return None;
        }
    }
    place.map(|start| memchr_iter(b'\n', slice(bytes, 0..start)).count() + 1)
}
