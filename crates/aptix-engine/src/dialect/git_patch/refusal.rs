//! The refusals of a diff that does not fit the file.

use alloc::format;
use alloc::string::{String, ToString};

use aptix_model::batch::Hunk;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};

use super::counts::{self, Counts};
use super::place::{Misplaced, Sides};
use crate::digest::Original;
use crate::git_id;
use crate::nearest::excerpt::excerpt;
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::shown::counted;
use crate::text::find::FindError;
use crate::text::lines::Text;

/// The failure of a hunk that has no place.
pub(super) fn explain(error: &Misplaced, text: &Text<'_>, sides: &Sides<'_>, work: &mut Work<'_>) -> Failure {
    match error {
        Misplaced::NotFound if sides.old.is_empty() => no_lines(sides),
        Misplaced::NotFound => {
            let lead = "the lines that the hunk keeps or removes do not occur in the file";
            let hint = "read the file again and make the diff for what it is now";
            let nearest = old_text::not_found(lead, text, &sides.needle(), work);
            Failure { reason: Reason::ExpectedMismatch, ..nearest }.hint(hint)
        }
        Misplaced::Several(error) => several(error, text, sides, work),
        Misplaced::MayBeEnd => {
            let message = "the hunk has no lines below its change, so that its place could be where its header says or at the end of the file";
            let reason = if sides.old.is_empty() { Reason::PatchUnsupported } else { Reason::TextNotUnique };
            let hint = "give the hunk three lines of context above and below the change";
            Failure::new(reason, message).detail(Detail::NoContext).hint(hint)
        }
        Misplaced::Elsewhere(at) => {
            let stated = sides.hunk.old_start;
            let words = |line| format!("the hunk's lines are at line {line}, and its header says line {stated}");
            let hint = "correct the line numbers; hunks are not searched for, as recovery is turned off";
            mismatch(text, sides, *at, words).detail(Detail::Offset).hint(hint)
        }
        Misplaced::Ends(at) => {
            let count = counted(sides.needle().as_lines().len(), "line");
            let words = |line| format!("{count} at line {line} differ from the hunk's in how they end");
            let hint = if sides.ends_alike() && !work.settings.recovers {
                "give the lines of the diff the line endings of the file; others are refused, as recovery is turned off"
            } else {
                "give the lines that the hunk keeps or removes the line endings that they have in the file"
            };
            mismatch(text, sides, *at, words).detail(Detail::LineEndings).hint(hint)
        }
    }
}

/// A hunk without lines around its change that nothing places.
fn no_lines(sides: &Sides<'_>) -> Failure {
    let message = if sides.hunk.is_unnumbered {
        "the hunk has neither line numbers nor lines around its change".to_string()
    } else {
        let line = sides.hunk.old_start;
        format!("the hunk has no lines around its change, and nothing can be added below line {line}")
    };
    Failure::new(Reason::ExpectedMismatch, message)
        .detail(Detail::NoContext)
        .hint("give the hunk three lines of context above and below the change")
}

/// A hunk whose old side has several places, or too many to count.
fn several(error: &FindError, text: &Text<'_>, sides: &Sides<'_>, work: &mut Work<'_>) -> Failure {
    let failure = old_text::explain(error, text, &sides.needle(), work);
    match error {
        FindError::Ambiguous { lines, has_more, .. } => {
            let message = format!(
                "the lines that the hunk keeps or removes occur in more than one place, and not, or not for sure, where its header says: at {}",
                old_text::at_lines(lines, *has_more)
            );
            let hint = "give the hunk the line number it has in the file now, or more lines around the change";
            Failure { message, ..failure }.hint(hint)
        }
        FindError::BudgetExceeded => {
            let message = "searching for the lines of the hunk takes too long in a file like this".to_string();
            let hint = "make the diff for what the file is now, so that its line numbers are right, or send several smaller diffs, one after the other";
            Failure { message, ..failure }.hint(hint)
        }
        FindError::NotFound => failure,
    }
}

/// A hunk whose lines occur at an offset, and not as it says.
fn mismatch(text: &Text<'_>, sides: &Sides<'_>, offset: usize, words: impl FnOnce(usize) -> String) -> Failure {
    let above = text.lines_above(offset);
    let lines = text.cursor_at(offset.max(text.start()), above);
    let mut failure = Failure::new(Reason::ExpectedMismatch, words(above + 1)).line(above + 1);
    failure.nearest.extend(excerpt(lines, sides.needle().as_lines().len()));
    failure
}

/// A hunk whose place is above the end of the one before.
pub(super) fn order(line: usize) -> Failure {
    Failure::new(
        Reason::PatchMalformed,
        format!("the hunk's place is at line {line}, above the end of the hunk before it"),
    )
    .detail(Detail::HunkOrder)
    .line(line)
    .hint("list the hunks of a file top to bottom, none into another")
}

/// A hunk whose counts are wrong or absent, where recovery is turned off.
pub(super) fn miscounted(hunk: &Hunk, index: usize) -> Failure {
    let failure = Failure::new(Reason::PatchMalformed, counts::miscounted(hunk, index)).change(index);
    if hunk.is_unnumbered {
        return failure.detail(Detail::HunkHeader).hint("give the hunk its numbers: '@@ -start,count +start,count @@'");
    }
    if Counts::of(hunk) == Counts::Completed {
        let hint = "begin each line of context with a blank, and end the diff with a line feed";
        return failure.detail(Detail::Counts).hint(hint);
    }
    failure.detail(Detail::Counts).hint("count context and removed lines for '-', context and added lines for '+'")
}

/// A hunk without a change, whose header counts more lines on one side than on the other.
pub(super) fn unchanged(hunk: &Hunk) -> Failure {
    let (old, new) = (hunk.old_count, hunk.new_count);
    let message = format!("the header of the hunk counts {old} old and {new} new lines, and the hunk has only context");
    Failure::new(Reason::PatchMalformed, message)
        .detail(Detail::Counts)
        .hint("begin the lines that the hunk removes with '-', and those that it adds with '+'")
}

/// A hunk that has fewer lines than its header counts, and what keeps the file from proving that it is whole.
pub(super) fn truncated(hunk: &Hunk, without_proof: Failure) -> Failure {
    let truncated = hunk.truncated();
    let message = format!("{}; {}", truncated.message, without_proof.message);
    Failure { reason: truncated.reason, detail: None, message, hint: truncated.hint, ..without_proof }
}

/// A file that is not the blob that the diff was made from.
pub(super) fn other_blob(id: &str, original: &Original<'_>) -> Failure {
    let found = git_id::hex(id.len(), original.bytes);
    let message = format!(
        "the index line says that the diff was made from blob {id}, and the file is blob {found}: the diff is refused for this id, whether or not its lines fit"
    );
    other_file(message, original)
}

fn other_file(message: String, original: &Original<'_>) -> Failure {
    Failure::new(Reason::IndexMismatch, message)
        .current(original.digest(0))
        .hint("read the file again and make the diff for what it is now, or leave out the index line")
}

/// A file with text that the diff takes for an empty one.
pub(super) fn not_empty(id: &str, original: &Original<'_>) -> Failure {
    let message =
        format!("the index line says that the diff was made from an empty file (blob {id}), and the file has text");
    other_file(message, original)
}

/// A file to delete that does not have the lines to remove.
pub(super) fn other_content(stated: &[u8], original: &Original<'_>) -> Failure {
    let lines = |bytes: &[u8]| bytes.split_inclusive(|byte| *byte == b'\n').count();
    let same = stated.iter().zip(original.bytes).take_while(|(stated, found)| stated == found).count();
    let above = original.bytes.iter().take(same).filter(|byte| **byte == b'\n').count();
    let line = above + 1;
    let message = format!(
        "the diff removes {}, and the file has {}; they differ at line {line}",
        counted(lines(stated), "line"),
        counted(lines(original.bytes), "line")
    );
    let mut failure = Failure::new(Reason::ExpectedMismatch, message)
        .line(line)
        .current(original.digest(0))
        .hint("a diff removes a file with all of its lines; read the file again, or delete it in a file bundle");
    if let Ok(text) = Text::new(original.bytes) {
        let start =
            original.bytes.iter().take(same).rposition(|byte| *byte == b'\n').map_or(text.start(), |feed| feed + 1);
        failure.nearest.extend(excerpt(text.cursor_at(start, above), 1));
    }
    failure
}
