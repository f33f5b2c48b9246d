//! Changes whose places are known, made at once: put in order, refused where they meet, and reported by line.

use alloc::format;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{ChangeReport, Normalization, Tier, Warning};
use memchr::memchr_iter;

use crate::findings::{Findings, warning};
use crate::planning::work::Work;
use crate::text::edit::{TextEdit, slice};
use crate::text::lines::{Terminator, Text};
use crate::text::new_text::Fitted;
use crate::text::outcome::{change_report, is_whole_lines, lines_of, refuse_mark};

/// A change whose place is known.
#[derive(Clone, Debug)]
pub(crate) struct Splice {
    /// Its position in the patch.
    pub(crate) index: usize,
    /// Order among the texts inserted at one place.
    pub(crate) rank: Rank,
    /// What was found of the file, of which no other change may touch anything.
    pub(crate) matched: Range<usize>,
    /// What is removed of it, and what is added.
    pub(crate) fitted: Fitted,
    /// How loosely it was compared.
    pub(crate) tier: Tier,
    /// How many places came into question.
    pub(crate) candidates: usize,
}

/// Order among the texts inserted at one place.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Rank {
    /// What is to be above everything.
    Top,
    /// Everything else, in the order of the patch.
    Between,
    /// What is to be below everything.
    End,
}

/// All changes of a file as one edit.
#[derive(Debug)]
pub(crate) struct Spliced {
    pub(crate) edit: TextEdit,
    /// One entry for each change, in the patch's order.
    pub(crate) reports: Vec<ChangeReport>,
    pub(crate) normalized: Vec<Normalization>,
    pub(crate) warnings: Vec<Warning>,
}

/// Makes changes of one text at once.
///
/// # Errors
/// Changes that meet, and results that cannot be.
pub(crate) fn all(text: &Text<'_>, mut splices: Vec<Splice>, work: &Work<'_>) -> Result<Spliced, Findings> {
    splices.sort_by_key(|splice| (splice.matched.start, splice.matched.end, splice.rank, splice.index));
    refuse_overlaps(text, &splices)?;
    work.check_growth(text.bytes().len(), splices.iter().map(|splice| splice.fitted.bytes.len() as u64).sum())?;
    let new_bytes = splices.iter().map(|splice| splice.fitted.bytes.len() + 2).sum();
    let mut edit = TextEdit::with_capacity(splices.len(), new_bytes);
    let mut reports = vec![change_report(Tier::Exact, 1, 0, 0); splices.len()];
    let (mut normalized, mut warnings) = (Vec::new(), Vec::new());
    separate_top(text, &mut splices, &mut normalized);
    let (mut added, mut removed) = (0, 0);
    for splice in &splices {
        let Fitted { range, bytes, .. } = &splice.fitted;
        if splice.rank == Rank::End
            && !bytes.is_empty()
            && let Some(joint) = joint(text, &edit)
        {
            edit.begin(range.start);
            edit.insert(joint.as_bytes());
            added += 1;
            if warnings.is_empty() {
                let message =
                    "the text above had no final newline, and got one so that the appended text begins a line";
                warnings.push(warning("FINAL_NEWLINE_ADDED", message));
                normalized.push(Normalization::FileEofNewlineAdded);
            }
        }
        edit.begin(range.start);
        edit.insert(bytes);
        edit.remove_to(range.end);
        let feeds = memchr_iter(b'\n', bytes).count();
        if let Some(report) = reports.get_mut(splice.index) {
            let (above, lines) = match bytes.last() {
                Some(b'\n') => (text.lines_above(range.start), feeds),
                Some(_) => (text.lines_above(range.start), feeds + 1),
                // A change that changes nothing stays where it was found.
                None if range.is_empty() => lines_of(text, &splice.matched),
                None => (text.lines_above(range.start), usize::from(!is_whole_lines(text, range))),
            };
            let above = (above + added).saturating_sub(removed);
            *report = change_report(splice.tier, splice.candidates, above, lines);
        }
        added += feeds;
        removed += text.lines_above(range.end) - text.lines_above(range.start);
    }
    refuse_mark(text, &edit)?;
    Ok(Spliced { edit: edit.finished(), reports, normalized, warnings })
}

/// Gives each text for the top of a file without text a terminator that lacks one and has another text below it.
fn separate_top(text: &Text<'_>, splices: &mut [Splice], normalized: &mut Vec<Normalization>) {
    let mut is_above_text = false;
    for splice in splices.iter_mut().rev() {
        let bytes = &mut splice.fitted.bytes;
        if splice.rank == Rank::Top && is_above_text && terminate(bytes, text) && normalized.is_empty() {
            normalized.push(Normalization::ContentEofNewlineAdded);
        }
        is_above_text |= !bytes.is_empty();
    }
}

/// Ends text like the first line of a file, if there is any text and its last line lacks a terminator. Whether it did.
pub(crate) fn terminate(bytes: &mut Vec<u8>, text: &Text<'_>) -> bool {
    let is_open = bytes.last().is_some_and(|byte| *byte != b'\n');
    if is_open {
        // With a line feed alone, a carriage return that is text would become part of the terminator.
        let end = if bytes.ends_with(b"\r") { Terminator::CrLf } else { text.first_terminator() };
        bytes.extend_from_slice(end.as_bytes());
    }
    is_open
}

fn refuse_overlaps(text: &Text<'_>, splices: &[Splice]) -> Result<(), Findings> {
    let mut findings = Findings::default();
    let mut widest: Option<&Splice> = None;
    // A change can begin above the text that was found: a last line is removed with the terminator above it.
    let meet = |other: &Splice, splice: &Splice| {
        other.matched.end > splice.matched.start || other.fitted.range.end > splice.fitted.range.start
    };
    for splice in splices {
        if let Some(other) = widest.filter(|other| meet(other, splice)) {
            let (first, second) = (other.index.min(splice.index), other.index.max(splice.index));
            let line = text.lines_above(splice.matched.start) + 1;
            findings.add(|| {
                let message = format!("the changes {} and {} both take text of line {line}", first + 1, second + 1);
                Failure::new(Reason::MatchOverlap, message)
                    .hint("make one change of the two: all changes are found in the file as it is now")
                    .change(second)
                    .line(line)
            });
        }
        if widest.is_none_or(|other| other.matched.end < splice.matched.end) {
            widest = Some(splice);
        }
    }
    findings.check()
}

/// The terminator between a last line without one and text appended below it.
fn joint(text: &Text<'_>, edit: &TextEdit) -> Option<Terminator> {
    let bytes = text.bytes();
    let last = edit.last().filter(|last| last.end == bytes.len());
    let tail = match &last {
        Some(last) if edit.last_text().is_empty() => slice(bytes, text.start()..last.start),
        Some(_) => edit.last_text(),
        None => slice(bytes, text.start()..bytes.len()),
    };
    match tail {
        [] | [.., b'\n'] => None,
        // With a line feed alone, a carriage return that is text would become part of the terminator.
        [.., b'\r'] => Some(Terminator::CrLf),
        _ => Some(text.last_terminator()),
    }
}

impl Splice {
    /// Text inserted without a search.
    pub(crate) fn inserted(index: usize, rank: Rank, fitted: Fitted) -> Self {
        Self { index, rank, matched: fitted.range.clone(), fitted, tier: Tier::Exact, candidates: 1 }
    }
}
