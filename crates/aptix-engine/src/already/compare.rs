//! Whether text occurs right above or right below a place: byte by byte, or, where the place was found so, ignoring white
//! space at the ends of lines.

use aptix_model::report::Tier;
use memchr::{memchr, memrchr};

use crate::text::edit::slice;
use crate::text::find::{Budget, FindError};

/// How many bytes of `rest` an expected beginning takes up. The last line of a file may lack its terminator.
pub(super) fn starts_with(
    rest: &[u8],
    expected: &[u8],
    tier: Tier,
    budget: &mut Budget,
) -> Result<Option<usize>, FindError> {
    let same = rest.iter().zip(expected).take_while(|(a, b)| a == b).count();
    budget.charge(same)?;
    if same == expected.len() {
        return Ok(Some(same));
    }
    let is_end = same == rest.len() && same > 0 && matches!(slice(expected, same..expected.len()), b"\n" | b"\r\n");
    if is_end {
        return Ok(Some(same));
    }
    if tier == Tier::Exact {
        return Ok(None);
    }
    budget.charge(2 * expected.len())?;
    Ok(begins(rest, expected))
}

/// Where in `head` an expected end begins.
pub(super) fn ends_with(
    head: &[u8],
    expected: &[u8],
    tier: Tier,
    budget: &mut Budget,
) -> Result<Option<usize>, FindError> {
    let same = head.iter().rev().zip(expected.iter().rev()).take_while(|(a, b)| a == b).count();
    budget.charge(same)?;
    if same == expected.len() {
        return Ok(Some(head.len() - same));
    }
    if tier == Tier::Exact {
        return Ok(None);
    }
    budget.charge(2 * expected.len())?;
    Ok(closes_from(head, expected, true))
}

/// [`starts_with`], ignoring white space at the ends of lines.
pub(super) fn begins(rest: &[u8], expected: &[u8]) -> Option<usize> {
    let mut at = 0;
    for line in expected.split_inclusive(|byte| *byte == b'\n') {
        let below = slice(rest, at..rest.len());
        if !line.ends_with(b"\n") && below.starts_with(line) {
            at += line.len();
            continue;
        }
        let end = memchr(b'\n', below).map_or(below.len(), |feed| feed + 1);
        let found = slice(below, 0..end);
        if found.is_empty() || !line.ends_with(b"\n") || found.trim_ascii_end() != line.trim_ascii_end() {
            return None;
        }
        at += end;
    }
    Some(at)
}

/// [`ends_with`] for whole lines, ignoring white space at their ends.
pub(super) fn closes(head: &[u8], expected: &[u8]) -> Option<usize> {
    closes_from(head, expected, false)
}

fn closes_from(head: &[u8], expected: &[u8], begins_within: bool) -> Option<usize> {
    let mut end = head.len();
    let mut lines = expected.split_inclusive(|byte| *byte == b'\n').rev().peekable();
    let mut is_last = true;
    while let Some(line) = lines.next() {
        let above = slice(head, 0..end);
        let is_first = lines.peek().is_none();
        // The last line of the text may lack a terminator, and that of the file as well.
        let body = above.strip_suffix(b"\n").unwrap_or(above);
        let start = memrchr(b'\n', body).map_or(0, |feed| feed + 1);
        let (found, wanted) = (slice(above, start..end), line);
        let is_same = if is_last && begins_within && !line.ends_with(b"\n") {
            if !above.ends_with(line) {
                return None;
            }
            if is_first {
                return Some(end - line.len());
            }
            found == wanted
        } else if is_first && begins_within {
            let found_short = found.trim_ascii_end();
            if !found_short.ends_with(wanted.trim_ascii_end()) {
                return None;
            }
            return Some(start + found_short.len() - wanted.trim_ascii_end().len());
        } else {
            !found.is_empty() && found.trim_ascii_end() == wanted.trim_ascii_end()
        };
        if !is_same {
            return None;
        }
        (end, is_last) = (start, false);
    }
    Some(end)
}
