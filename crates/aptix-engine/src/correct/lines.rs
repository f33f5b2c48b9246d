//! Line patches for another version, or with wrong line numbers: the expected lines show what was meant.

use alloc::string::{String, ToString};

use aptix_model::batch::{LinePatch, Operation};
use aptix_model::digest::Sha256Digest;

use crate::digest::canonical;
use crate::nearest::line_change::only_place;
use crate::text::lines::Text;

/// Gives a patch the numbers and the digest that its expected lines have in the text. `None` if they have no single place.
pub(super) fn correct(patch: &mut LinePatch, text: &Text<'_>, found: Sha256Digest) -> Option<()> {
    let stated: Sha256Digest = patch.original_sha256.parse().ok()?;
    let is_current = stated == found || canonical(text.bytes()) == Some(stated);
    let (mut has_moved, mut has_insert) = (false, false);
    for change in &mut patch.changes {
        let (start_line, end_line, expected) = match &mut change.operation {
            Operation::Insert { .. } => {
                has_insert = true;
                continue;
            }
            Operation::Replace { start_line, end_line, expected_original_lines, .. }
            | Operation::Delete { start_line, end_line, expected_original_lines } => {
                (start_line, end_line, expected_original_lines)
            }
        };
        if !occurs_at(*start_line, expected, text) {
            let first = i64::try_from(only_place(text, expected)?).ok()?;
            *end_line += first - *start_line;
            *start_line = first;
            has_moved = true;
        }
    }
    // Nothing shows where lines are to be inserted that replace none, once the lines above may have moved.
    if has_insert && (has_moved || !is_current) {
        return None;
    }
    patch.changes.sort_by_key(|change| match &change.operation {
        Operation::Insert { after_line, .. } => (*after_line, 1),
        Operation::Replace { start_line, .. } | Operation::Delete { start_line, .. } => (*start_line, 0),
    });
    patch.original_sha256 = found.to_string();
    Some(())
}

fn occurs_at(start_line: i64, expected: &[String], text: &Text<'_>) -> bool {
    let Some(above) = usize::try_from(start_line).ok().and_then(|line| line.checked_sub(1)) else { return false };
    let mut cursor = text.cursor();
    cursor.seek(above).is_ok() && expected.iter().all(|line| cursor.step_over(line.as_bytes()).is_some())
}
