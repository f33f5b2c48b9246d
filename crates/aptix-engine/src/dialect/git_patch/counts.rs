//! The readings that a hunk allows where its lines are not those that its header counts.
//!
//! The counts delimit a hunk. Lines that they do not decide about are open: the file does.

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::batch::{Hunk, HunkLine, LineKind};
use aptix_model::hunk_counts::count_sides;
use aptix_model::report::Warning;

use crate::findings::warning;
use crate::shown::{counted, cut};

/// How the lines of a hunk compare with its header.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Counts {
    /// They use up both counts, and nothing is below them.
    Right,
    /// One side has fewer.
    Short,
    /// One side has fewer, and with the surplus they use up both counts.
    Completed,
    /// The first so many use up both counts, and more lines are below them.
    Surplus(usize),
    /// No line uses up both counts, and no side has fewer.
    Uneven,
    /// The header has no numbers.
    Absent,
}

impl Counts {
    /// Compares a hunk's lines with its header.
    pub(crate) fn of(hunk: &Hunk) -> Self {
        if hunk.is_unnumbered {
            return Self::Absent;
        }
        match used_up(hunk, hunk.lines.iter()) {
            Some(end) if end == hunk.lines.len() && hunk.surplus.is_empty() => Self::Right,
            Some(end) => Self::Surplus(end),
            None if hunk.is_short() => {
                let all = hunk.lines.len() + hunk.surplus.len();
                let is_completed = used_up(hunk, hunk.lines.iter().chain(&hunk.surplus)) == Some(all);
                if is_completed { Self::Completed } else { Self::Short }
            }
            None => Self::Uneven,
        }
    }
}

/// Whether nothing about the counts of a hunk needs recovery. Blank lines at its end may have lost their prefix.
pub(crate) fn are_right(hunk: &Hunk) -> bool {
    match Counts::of(hunk) {
        Counts::Right => true,
        Counts::Completed => ends_openly(hunk) || hunk.surplus.iter().all(|line| line.bytes.trim_ascii().is_empty()),
        _ => false,
    }
}

/// Whether a hunk is the end of a diff that stops within an added line, or without the line feed below it. Only the bytes of
/// the result can prove that the line is whole.
pub(crate) fn ends_openly(hunk: &Hunk) -> bool {
    Counts::of(hunk) == Counts::Completed && hunk.surplus.iter().all(|line| line.kind == LineKind::Added)
}

/// How many lines use up both counts of a header.
fn used_up<'h>(hunk: &Hunk, lines: impl Iterator<Item = &'h HunkLine>) -> Option<usize> {
    let (mut old, mut new) = (hunk.old_count, hunk.new_count);
    for (index, line) in lines.enumerate() {
        if old < 0 || new < 0 {
            return None;
        }
        old -= i64::from(line.kind != LineKind::Added);
        new -= i64::from(line.kind != LineKind::Removed);
        if (old, new) == (0, 0) {
            return Some(index + 1);
        }
    }
    None
}

/// Whether a hunk that has fewer lines than its header counts may lack more than context: the last one of its file, and one
/// that does not end in context below a change.
pub(crate) fn is_cut_off(hunk: &Hunk, is_last: bool) -> bool {
    Counts::of(hunk) == Counts::Short && (is_last || !hunk.ends_in_context() || !hunk.surplus.is_empty())
}

/// The line that has no terminator and is not the last one of its side.
pub(crate) fn unterminated(lines: &[HunkLine]) -> Option<usize> {
    // The last line of the old side that has no terminator, and that of the new side.
    let (mut old, mut new) = (None, None);
    for (index, HunkLine { kind, bytes }) in lines.iter().enumerate() {
        for (side, is_on_side) in [(&mut old, *kind != LineKind::Added), (&mut new, *kind != LineKind::Removed)] {
            if is_on_side && side.is_some() {
                return *side;
            }
            if is_on_side && !bytes.ends_with(b"\n") {
                *side = Some(index);
            }
        }
    }
    None
}

/// One way to read a hunk.
#[derive(Clone, Debug)]
pub(super) struct Reading<'h> {
    /// The hunk with the lines that it has in this reading, all of them in `lines`.
    pub(super) hunk: Cow<'h, Hunk>,
    pub(super) proof: Proof,
    /// What is unusual about it.
    pub(super) note: Option<Note>,
}

/// What the file must show for a reading.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Proof {
    /// The lines are where the header says, or at one other place.
    Place,
    /// The lines are at exactly one place.
    OnlyPlace,
    /// As `Place`; elsewhere than the header says, the hunk must be there even without its last lines.
    Completion(Hunk),
}

/// What is unusual about a reading.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Note {
    /// All lines were taken, and the counts are wrong.
    Miscounted,
    /// Context below the counted lines has no effect.
    Dropped,
    /// Lines below the counted ones were taken for text.
    Skipped,
    /// The last lines were taken because the counts and the file confirm them.
    Completed,
    /// The place was found without numbers.
    Unnumbered,
}

/// The readings of a hunk, the one with most lines first; the file decides which one holds.
pub(super) fn readings(hunk: &Hunk) -> Vec<Reading<'_>> {
    let whole = whole(hunk);
    let (hunk, proof, note) = match Counts::of(hunk) {
        Counts::Right => (whole, Proof::Place, None),
        Counts::Short => (whole, Proof::OnlyPlace, Some(Note::Miscounted)),
        Counts::Absent => (whole, Proof::OnlyPlace, Some(Note::Unnumbered)),
        Counts::Uneven => (whole, Proof::Place, Some(Note::Miscounted)),
        Counts::Completed => {
            let note = (!are_right(hunk)).then_some(Note::Completed);
            (whole, Proof::Completion(counted_lines(hunk, hunk.lines.len())), note)
        }
        Counts::Surplus(end) => return surplus_readings(whole, end).collect(),
    };
    [Reading { hunk, proof, note }].into()
}

/// The readings of a hunk with lines below the ones that use up both counts.
fn surplus_readings(whole: Cow<'_, Hunk>, end: usize) -> impl Iterator<Item = Reading<'_>> {
    let is_all = |wanted| whole.lines.iter().skip(end).all(|line| line.kind == wanted);
    let (is_context, is_added) = (is_all(LineKind::Context), is_all(LineKind::Added));
    let is_well_formed = unterminated(&whole.lines).is_none();
    let note = if is_context { Note::Dropped } else { Note::Skipped };
    let counted = counted_lines(&whole, end);
    // Without lines of the old file only the surplus shows the place, unless that is the top of a new file.
    let has_place = counted.line_counts().0 > 0 || counted.old_start == 0;
    // A hunk that changes nothing is none: the surplus is what it is about.
    let may_be_all = is_context || counted.lines.iter().any(|line| line.kind != LineKind::Context);
    let counted = Reading { hunk: Cow::Owned(counted), proof: Proof::Place, note: Some(note) };
    let all = Reading { hunk: whole, proof: Proof::Place, note: Some(Note::Miscounted) };
    let all = (is_well_formed && !(is_context && has_place)).then_some(all);
    let counted = (has_place && (all.is_none() || (!is_added && may_be_all))).then_some(counted);
    all.into_iter().chain(counted)
}

/// A hunk with the first of its lines.
fn counted_lines(hunk: &Hunk, end: usize) -> Hunk {
    let lines = hunk.lines.iter().take(end).cloned().collect();
    Hunk { lines, surplus: Vec::new(), ..hunk.clone() }
}

/// A hunk with its surplus among its lines.
pub(crate) fn whole(hunk: &Hunk) -> Cow<'_, Hunk> {
    if hunk.surplus.is_empty() {
        return Cow::Borrowed(hunk);
    }
    let lines = hunk.lines.iter().chain(&hunk.surplus).cloned().collect();
    Cow::Owned(Hunk { lines, surplus: Vec::new(), ..hunk.clone() })
}

/// The warnings about the readings that held: one for each kind of note.
pub(super) fn warnings(hunks: &[Hunk], notes: &[(usize, Note)]) -> Vec<Warning> {
    let mut warnings = Vec::new();
    for kind in [Note::Miscounted, Note::Dropped, Note::Skipped, Note::Completed, Note::Unnumbered] {
        let mut found = notes.iter().filter(|(_, note)| *note == kind).map(|(index, _)| *index);
        let Some((index, hunk)) = found.next().and_then(|index| Some((index, hunks.get(index)?))) else { continue };
        let others = match found.count() {
            0 => String::new(),
            others => format!("; {} likewise", counted(others, "other hunk")),
        };
        let message = format!("{}{others}", message(hunk, index, kind));
        warnings.push(warning("HUNK_COUNTS", message));
    }
    warnings
}

/// What is wrong with the counts of a hunk, whatever its reading.
pub(super) fn miscounted(hunk: &Hunk, index: usize) -> String {
    if hunk.is_unnumbered {
        return format!("the header of hunk {} has no numbers", index + 1);
    }
    if Counts::of(hunk) == Counts::Completed {
        let lines = counted(hunk.surplus.len(), "line");
        return format!("the last {lines} of hunk {} came without prefix or line feed", index + 1);
    }
    let (old, new) = count_sides(&whole(hunk).lines);
    format!(
        "the counts in the header of hunk {} are wrong: it says {} and {}, and there are {old} and {new}",
        index + 1,
        hunk.old_count,
        hunk.new_count
    )
}

fn message(hunk: &Hunk, index: usize, note: Note) -> String {
    let end = if let Counts::Surplus(end) = Counts::of(hunk) { end } else { hunk.lines.len() };
    let below: Vec<&HunkLine> = hunk.lines.iter().skip(end).chain(&hunk.surplus).collect();
    let lines = counted(below.len(), "line");
    match note {
        Note::Miscounted => miscounted(hunk, index),
        Note::Dropped => format!("{lines} of context below the counted lines of hunk {} had no effect", index + 1),
        Note::Skipped => {
            let first = below.first().map(|line| cut(line.bytes.trim_ascii(), 60)).unwrap_or_default();
            format!(
                "{lines} below the counted lines of hunk {} were skipped as text, for the file does not have them: \
                 the first one is {first:?}",
                index + 1
            )
        }
        Note::Completed => format!("{}; the counts and the file confirm them", miscounted(hunk, index)),
        Note::Unnumbered => {
            format!("{}; its lines are at one place of the file", miscounted(hunk, index))
        }
    }
}
