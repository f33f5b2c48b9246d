//! How many lines a hunk has, how many its header counts, and the refusal of one that has fewer.

use alloc::format;
use alloc::string::String;

use crate::batch::{Hunk, HunkLine, LineKind};
use crate::failure::Failure;
use crate::reason::Reason;

/// What helps a diff whose last line may have lost its end.
pub const UNTERMINATED_HINT: &str =
    "if the diff is whole, end it with a line feed, or with '\\ No newline at end of file'; else send it whole";

/// The number of lines of the old and of the new side.
#[must_use]
pub fn count_sides(lines: &[HunkLine]) -> (usize, usize) {
    let count = |other: LineKind| lines.iter().filter(|line| line.kind != other).count();
    (count(LineKind::Added), count(LineKind::Removed))
}

impl Hunk {
    /// The number of lines of the old and of the new side, without the surplus.
    #[must_use]
    pub fn line_counts(&self) -> (usize, usize) {
        count_sides(&self.lines)
    }

    /// Whether one of the sides, without the surplus, has fewer lines than the header counts.
    #[must_use]
    pub fn is_short(&self) -> bool {
        let (old, new) = self.line_counts();
        let is_fewer = |found: usize, stated: i64| usize::try_from(stated).is_ok_and(|stated| found < stated);
        is_fewer(old, self.old_count) || is_fewer(new, self.new_count)
    }

    /// Whether its last line, without the surplus, is context below a change.
    #[must_use]
    pub fn ends_in_context(&self) -> bool {
        let is_context = |line: &HunkLine| line.kind == LineKind::Context;
        self.lines.last().is_some_and(is_context) && !self.lines.iter().all(is_context)
    }

    /// Whether some of its lines, without the surplus, end with a carriage return and others do not.
    #[must_use]
    pub fn has_mixed_ends(&self) -> bool {
        let mut ends = self.lines.iter().map(|line| line.bytes.ends_with(b"\r\n"));
        let first = ends.next();
        ends.any(|end| Some(end) != first)
    }

    /// The header that would fit the lines, without the surplus.
    #[must_use]
    pub fn fitting_header(&self) -> String {
        let (old, new) = self.line_counts();
        let side = |start: i64, count: usize| match count {
            1 => format!("{start}"),
            _ => format!("{start},{count}"),
        };
        format!("@@ -{} +{} @@", side(self.old_start, old), side(self.new_start, new))
    }

    /// The refusal of a hunk that has fewer lines than its header counts.
    #[must_use]
    pub fn truncated(&self) -> Failure {
        let (old, new) = self.line_counts();
        let message = format!(
            "the header of the hunk counts {} old and {} new lines, and the hunk has {old} and {new}",
            self.old_count, self.new_count
        );
        let hint = if self.lines.is_empty() {
            "the diff was cut off; send it whole".into()
        } else {
            let header = self.fitting_header();
            format!(
                "if the diff was cut off, send it whole; if these are all lines of the hunk, its header is {header}"
            )
        };
        Failure::new(Reason::PatchTruncated, message).hint(hint)
    }
}
