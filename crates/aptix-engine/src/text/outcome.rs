//! The outcome of an edit as lines of its result: how many there are above and within a range, and whether the file would
//! get a byte order mark.

use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, Tier};

use crate::text::edit::{TextEdit, slice};
use crate::text::lines::{BOM, Text};

/// Refuses an edit that would give the file a byte order mark.
pub(crate) fn refuse_mark(text: &Text<'_>, edit: &TextEdit) -> Result<(), Failure> {
    let makes_mark = edit.replacements().next().is_some_and(|(range, new)| range.start == 0 && new.starts_with(BOM));
    if !makes_mark || text.bytes().is_empty() {
        return Ok(());
    }
    let message = "new text begins with U+FEFF, and at the top of the file that would become its byte order mark";
    Err(Failure::new(Reason::InvalidRequest, message)
        .detail(Detail::EmbeddedBom)
        .hint("leave the U+FEFF out; a file keeps the byte order mark it has, and gets none"))
}

/// How many lines lie above a range of a result, and how many it leaves.
pub(crate) fn lines_of(result: &Text<'_>, range: &Range<usize>) -> (usize, usize) {
    let above = result.lines_above(range.start);
    let lines = match slice(result.bytes(), range.clone()) {
        [] => usize::from(!is_whole_lines(result, range)),
        [.., b'\n'] => result.lines_above(range.end) - above,
        _ => result.lines_above(range.end) - above + 1,
    };
    (above, lines)
}

/// Whether a range begins where a line does, and ends where one does or the file ends.
pub(crate) fn is_whole_lines(text: &Text<'_>, range: &Range<usize>) -> bool {
    let starts_line = |offset| offset == text.start() || slice(text.bytes(), 0..offset).ends_with(b"\n");
    starts_line(range.start) && (starts_line(range.end) || range.end == text.bytes().len())
}

/// The report of a change that leaves so many lines below so many others.
pub(crate) fn change_report(tier: Tier, candidates: usize, above: usize, lines: usize) -> ChangeReport {
    ChangeReport {
        tier,
        candidates: narrow(candidates),
        start_line: narrow(above + 1),
        end_line: narrow(above + lines),
    }
}

/// Numbers of things in memory are far below this bound.
pub(crate) fn narrow(number: usize) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
