//! Hunks lowered to a [`TextEdit`]: what is removed and added, between lines that stay untouched.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Hunk, LineKind};
use aptix_model::report::{ChangeReport, Tier, Warning};

use super::counts;
use super::made;
use super::place::{Sides, changed};
use super::settle::{Above, Settled, settle};
use super::splice::{ends_kept, splice};
use crate::already::Copy;
use crate::digest::Original;
use crate::findings::{Findings, warning};
use crate::planning::work::Work;
use crate::shown::counted;
use crate::text::edit::TextEdit;
use crate::text::lines::Text;
use crate::text::outcome::change_report;

/// Hunks as one edit of bytes.
#[derive(Debug)]
pub(super) struct Lowered {
    pub(super) edit: TextEdit,
    /// One entry for each hunk.
    pub(super) changes: Vec<ChangeReport>,
    pub(super) warnings: Vec<Warning>,
}

/// Lowers hunks, listed top to bottom, to one edit of a text's bytes. Where it is proven that the text is the one that
/// they were made from, they cannot have been made before.
///
/// # Errors
/// Every hunk without a place, or with one that is not below the hunk above.
pub(super) fn lower(
    text: &Text<'_>,
    hunks: &[Hunk],
    original: &Original<'_>,
    is_proven: bool,
    work: &mut Work<'_>,
) -> Result<Lowered, Findings> {
    let lines = hunks.iter().flat_map(|hunk| hunk.lines.iter().chain(&hunk.surplus));
    let new_bytes: usize = lines.map(|line| line.bytes.len() + 1).sum();
    work.take_room(new_bytes)?;
    let mut findings = Findings::default();
    let mut changes = Vec::with_capacity(hunks.len());
    let mut moved = Vec::new();
    let mut keeps_ends = false;
    let mut notes = Vec::new();
    let mut above = Above::new(text, is_proven, hunks, TextEdit::with_capacity(hunks.len(), new_bytes));
    let mut below = hunks.iter();
    for (index, hunk) in hunks.iter().enumerate() {
        let settled = settle(hunk, &mut above, work);
        below.next();
        match made::check(hunk, below.as_slice(), settled, &above, work) {
            Ok(Settled { reading, place }) => {
                let sides = Sides::of(&reading.hunk);
                let line = text.lines_above(place.range.start);
                let (lines, context) = changed(sides.hunk);
                let new = lines.iter().filter(|line| line.kind != LineKind::Removed).count();
                changes.push(change_report(place.tier, 1, above.after(line) + context, new));
                if place.is_elsewhere {
                    moved.push((index, sides.hunk.old_start, line + 1));
                }
                keeps_ends |= place.tier == Tier::Eol;
                splice(text, &sides, &place, &mut above.edit);
                above.add(sides.hunk, place.range.end);
                notes.extend(reading.note.map(|note| (index, note)));
            }
            Err(failure) => {
                findings.add(|| failure.change(index).current(original.digest(0)));
                above.pass(hunk);
            }
        }
    }
    findings.check()?;
    let mut warnings = counts::warnings(hunks, &notes);
    warnings.extend(offset_warning(&moved));
    warnings.extend(keeps_ends.then(ends_kept));
    Ok(Lowered { edit: above.edit.finished(), changes, warnings })
}

/// Where the new lines of the first hunk occur, if those of every hunk occur where their headers put them, and the old
/// ones do not.
pub(super) fn is_applied(text: &Text<'_>, hunks: &[Hunk]) -> Option<Copy> {
    let mut copies = hunks.iter().map(|hunk| {
        let reading = counts::readings(hunk).into_iter().next()?;
        made::stands_where_stated(text, &Sides::of(&reading.hunk))
    });
    let first = copies.next()??;
    copies.all(|copy| copy.is_some()).then_some(first)
}

/// The warning about hunks that are not where their headers say, each with the stated line and the found one.
fn offset_warning(moved: &[(usize, i64, usize)]) -> Option<Warning> {
    let ((index, stated, line), others) = moved.split_first()?;
    let others = match others.len() {
        0 => String::new(),
        others => format!("; {} are elsewhere too", counted(others, "other hunk")),
    };
    let message = format!(
        "the lines of hunk {} are at line {line} and nowhere else, and its header says line {stated}{others}",
        index + 1
    );
    Some(warning("HUNK_OFFSET", message))
}
