//! The places that a plan changes in a file, each with the lines that single it out; and the same change of the file as it is
//! later, where each of those places still occurs, unchanged and once.

use alloc::format;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::plan::Place;
use aptix_model::reason::Reason;
use aptix_model::report::{ChangeReport, FileReport, FileStatus, Warning};
use memchr::{memchr, memmem, memrchr};

use crate::diff::line_blocks;
use crate::file_plan::{FileAction, FilePlan};
use crate::text::edit::{TextEdit, slice};

/// Lines above and below that a place is given at most.
const AROUND: usize = 8;

/// Bytes that are searched for the places of one file before it is given none.
const SEARCHED: usize = 256 << 20;

/// The warning about a file whose plan was moved.
const REBASED: &str = "REBASED";

impl FilePlan<'_> {
    /// The places that the plan changes, top to bottom, in at most `limit` bytes; none where it does not change the file at
    /// places, or one of them cannot be singled out by its text.
    #[must_use]
    pub fn places(&self, limit: usize) -> Vec<Place> {
        places(self, limit).unwrap_or_default()
    }
}

fn places(plan: &FilePlan<'_>, limit: usize) -> Option<Vec<Place>> {
    let base = plan.base()?;
    let FileAction::Edit(edit) = &plan.action else { return None };
    let is_whole = edit.replacements().any(|(range, _)| range == (0..base.len()));
    if is_whole || plan.status != FileStatus::Modified || plan.executable.is_some() {
        return None;
    }
    let (mut places, mut room, mut effort) = (Vec::new(), limit, SEARCHED);
    let (mut counted, mut line) = (0, 1);
    for block in line_blocks(plan, limit)? {
        line += memchr::memchr_iter(b'\n', slice(base, counted..block.old.start)).count();
        counted = block.old.start;
        let (above, below) = singled_out(base, &block.old, &mut effort)?;
        let place = Place {
            start_line: u32::try_from(line).ok()?,
            above: slice(base, above..block.old.start).to_vec(),
            old: slice(base, block.old.clone()).to_vec(),
            new: block.new.into_owned(),
            below: slice(base, block.old.end..below).to_vec(),
        };
        room = room.checked_sub(place.size())?;
        places.push(place);
    }
    Some(places)
}

/// The start and end of the fewest lines around a range that occur once, together with it.
fn singled_out(base: &[u8], old: &Range<usize>, effort: &mut usize) -> Option<(usize, usize)> {
    // What is only added has no text of its own.
    let least = usize::from(old.is_empty());
    let (mut above, mut below) = (old.start, old.end);
    for around in 0..=AROUND {
        if around > 0 {
            above = memrchr(b'\n', slice(base, 0..above.saturating_sub(1))).map_or(0, |feed| feed + 1);
            below = memchr(b'\n', slice(base, below..base.len())).map_or(base.len(), |feed| below + feed + 1);
        }
        let edge = Edge::of(old.is_empty(), above == old.start, below == old.end);
        *effort = effort.checked_sub(base.len())?;
        if around >= least && only(base, slice(base, above..below), edge).is_some() {
            return Some((above, below));
        }
    }
    None
}

/// Which ends of the file a place is at, because lines are only added there.
#[derive(Clone, Copy)]
struct Edge {
    top: bool,
    bottom: bool,
}

impl Edge {
    const fn of(is_added: bool, nothing_above: bool, nothing_below: bool) -> Self {
        Self { top: is_added && nothing_above, bottom: is_added && nothing_below }
    }
}

/// Where whole lines occur in a text, if that is once, and at the end of the file that they have to be at.
fn only(text: &[u8], lines: &[u8], edge: Edge) -> Option<usize> {
    if lines.is_empty() {
        return None;
    }
    let finder = memmem::Finder::new(lines);
    let (mut found, mut from) = (None, 0);
    while let Some(at) = finder.find(slice(text, from..text.len())).map(|at| from + at) {
        let end = at + lines.len();
        let starts = slice(text, 0..at).last().is_none_or(|byte| *byte == b'\n');
        let ends = end == text.len() || lines.ends_with(b"\n");
        if starts && ends && found.replace(at).is_some() {
            return None;
        }
        from = at + 1;
    }
    found.filter(|at| (!edge.top || *at == 0) && (!edge.bottom || at + lines.len() == text.len()))
}

/// The edit that makes the planned change at the places as they are in `now`, and the line at which each place starts there.
///
/// # Errors
/// FILE_CHANGED: a place does not occur any more, or more than once, or the places are in another order.
fn moved(places: &[Place], now: &[u8]) -> Result<(TextEdit, Vec<u32>), Failure> {
    let (mut replacements, mut lines) = (Vec::new(), Vec::new());
    for place in places {
        let window = [place.above.as_slice(), &place.old, &place.below].concat();
        let edge = Edge::of(place.old.is_empty(), place.above.is_empty(), place.below.is_empty());
        let at = only(now, &window, edge).ok_or_else(|| gone(place))?;
        let start = at + place.above.len();
        let above = memchr::memchr_iter(b'\n', slice(now, 0..start)).count();
        lines.push(u32::try_from(above + 1).unwrap_or(u32::MAX));
        replacements.push((start..start + place.old.len(), place.new.as_slice()));
    }
    let edit = TextEdit::new(replacements).map_err(|_| changed("its places are in another order"))?;
    Ok((edit, lines))
}

fn gone(place: &Place) -> Failure {
    let line = place.start_line;
    let why = format!("what was at line {line} does not occur any more, or more than once");
    Failure { line: Some(line as usize), ..changed(&why) }
}

/// What a file is refused for that is not as it was when the edit was prepared.
pub(crate) fn changed(why: &str) -> Failure {
    Failure::new(Reason::FileChanged, format!("the file changed after the edit was prepared: {why}"))
        .hint("prepare the edit again, look at what it would do now, then apply that")
}

/// The plan of a file that changed after it was planned, at the places as they are now: `plan` has the file as it is.
///
/// # Errors
/// FILE_CHANGED: the file was not planned at places, or one of them does not occur once.
pub(crate) fn rebased<'a>(
    planned: &FileReport,
    places: &[Place],
    now: Option<&[u8]>,
    plan: impl FnOnce(FileAction<'a>) -> Result<FilePlan<'a>, Failure>,
) -> Result<FilePlan<'a>, Failure> {
    let now = now.filter(|_| !places.is_empty());
    let now = now.ok_or_else(|| changed("its content is not what it was"))?;
    let (edit, lines) = moved(places, now)?;
    let mut plan = plan(FileAction::Edit(edit))?;
    let message = "the file changed elsewhere after the edit was prepared; the same change was made at the places as they are now";
    plan.normalized.clone_from(&planned.normalized);
    plan.warnings.clone_from(&planned.warnings);
    plan.warnings.push(Warning { code: REBASED.into(), message: message.into(), line: None });
    plan.changes = planned.changes.iter().map(|change| shifted(*change, places, &lines)).collect();
    Ok(plan)
}

/// What is reported of a change, with the lines where it is now.
fn shifted(change: ChangeReport, places: &[Place], lines: &[u32]) -> ChangeReport {
    let count = |text: &[u8]| i64::try_from(memchr::memchr_iter(b'\n', text).count()).unwrap_or(i64::MAX);
    let (mut shift, mut grown) = (0, 0);
    for (place, line) in places.iter().zip(lines) {
        if i64::from(place.start_line) + grown > i64::from(change.start_line) {
            break;
        }
        shift = i64::from(*line) - i64::from(place.start_line);
        grown += count(&place.new) - count(&place.old);
    }
    let moved = |line: u32| u32::try_from(i64::from(line) + shift).unwrap_or(line);
    ChangeReport { start_line: moved(change.start_line), end_line: moved(change.end_line), ..change }
}
