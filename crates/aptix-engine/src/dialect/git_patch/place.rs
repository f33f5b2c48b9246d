//! Finds the place of a hunk: at the line its header states, or at the only other place where its lines are.

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Hunk, HunkLine, LineKind};
use aptix_model::report::Tier;
use memchr::memmem;

use crate::planning::work::Work;
use crate::text::edit::slice;
use crate::text::find::{self, FindError, Needle};
use crate::text::lines::{BOM, Text};

/// Places that are listed when there are several.
const LISTED: usize = 20;

/// A hunk's lines put together.
#[derive(Debug)]
pub(super) struct Sides<'h> {
    pub(super) hunk: &'h Hunk,
    /// The text there before.
    pub(super) old: Vec<u8>,
    /// The text there after.
    pub(super) new: Vec<u8>,
}

impl<'h> Sides<'h> {
    pub(super) fn of(hunk: &'h Hunk) -> Self {
        let side = |other: LineKind| {
            let lines = hunk.lines.iter().filter(|line| line.kind != other).map(|line| line.bytes.as_slice());
            lines.collect::<Vec<_>>().concat()
        };
        Self { hunk, old: side(LineKind::Added), new: side(LineKind::Removed) }
    }

    /// How many lines the header puts above it; `None` if it puts lines at line 0.
    pub(super) fn above(&self) -> Option<usize> {
        above(self.hunk.old_start, self.hunk.line_counts().0)
    }

    /// How many lines of the new file the header puts above it.
    pub(super) fn above_after(&self) -> Option<usize> {
        above(self.hunk.new_start, self.hunk.line_counts().1)
    }

    fn has_context(&self) -> bool {
        self.hunk.lines.iter().any(|line| line.kind == LineKind::Context)
    }

    fn ends_in_context(&self) -> bool {
        self.hunk.lines.last().is_some_and(|line| line.kind == LineKind::Context)
    }

    fn old_lines(&self) -> impl Iterator<Item = &'h [u8]> {
        let lines = self.hunk.lines.iter().filter(|line| line.kind != LineKind::Added);
        lines.map(|line| without_end(&line.bytes))
    }

    /// The old side as lines to search for.
    pub(super) fn needle(&self) -> Needle<'h> {
        Needle::whole_lines(self.old_lines())
    }

    /// Whether the removed and the added lines end in one way, so that it does not matter in which.
    pub(super) fn ends_alike(&self) -> bool {
        let changed = self.hunk.lines.iter().filter(|line| line.kind != LineKind::Context);
        let mut ends = changed.filter(|line| line.bytes.ends_with(b"\n")).map(|line| line.bytes.ends_with(b"\r\n"));
        let first = ends.next();
        ends.all(|end| Some(end) == first) && (self.new.is_empty() || is_open(&self.old) == is_open(&self.new))
    }
}

/// The header of a hunk without lines of a side names the line above it.
fn above(start: i64, lines: usize) -> Option<usize> {
    let start = usize::try_from(start).ok()?;
    if lines == 0 { Some(start) } else { start.checked_sub(1) }
}

/// The place of a hunk.
#[derive(Clone, Debug)]
pub(super) struct Place {
    /// The bytes of the old side.
    pub(super) range: Range<usize>,
    pub(super) tier: Tier,
    /// Whether it is not where the header says.
    pub(super) is_elsewhere: bool,
}

/// Why a hunk has no place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Misplaced {
    /// Its lines occur nowhere, or it has none that would identify its place.
    NotFound,
    /// Its lines occur there and at the end of the file, and a hunk without lines below the change could mean either.
    MayBeEnd,
    /// Its lines occur at several places, and not where the header says.
    Several(FindError),
    /// Its lines occur elsewhere, at this offset, which is not permitted.
    Elsewhere(usize),
    /// Its lines occur at this offset except for their ends, which the hunk is about, or which may not differ.
    Ends(usize),
}

/// Finds the place of a hunk. `stated` is where its header puts it, `is_sure` whether the whole header agrees.
pub(super) fn find(
    text: &Text<'_>,
    sides: &Sides<'_>,
    stated: Option<usize>,
    is_sure: bool,
    work: &mut Work<'_>,
) -> Result<Place, Misplaced> {
    let stated_exactly =
        stated.and_then(|start| starts(text, start, sides).find(|start| occurs_at(text, *start, sides)));
    let exact = |start: usize| Place {
        range: start..start + sides.old.len(),
        tier: Tier::Exact,
        is_elsewhere: stated_exactly != Some(start),
    };
    if let Some(start) = stated_exactly {
        if !sides.ends_in_context() && may_be_end(text, start, sides) {
            return Err(Misplaced::MayBeEnd);
        }
        if is_sure || (!sides.has_context() && !sides.old.is_empty()) {
            return Ok(exact(start));
        }
    }
    if !sides.has_context() {
        // Such a hunk is where its header says or nowhere.
        let range = by_ends(text, sides, stated).ok_or(Misplaced::NotFound)?;
        return except_ends(Place { range, tier: Tier::Eol, is_elsewhere: false }, text, sides, work);
    }
    let places = everywhere(text, sides, work).map_err(Misplaced::Several)?;
    let has_two_ends = is_open(&sides.old) || occurs_open(text, sides, work);
    if stated_exactly.is_none() && has_two_ends {
        // At the end of the file they occur with their own end; with another end they may occur nearer.
        only_by_ends(text, sides, work)?;
    }
    match places.as_slice() {
        [] => find_by_ends(text, sides, stated, work),
        [start] if stated_exactly == Some(*start) => Ok(exact(*start)),
        [start] if work.settings.recovers => match by_ends(text, sides, stated) {
            // They occur where the header says, too, except for their ends.
            Some(stated) => Err(ambiguous(text, &[stated.start.min(*start), stated.start.max(*start)])),
            None => Ok(exact(*start)),
        },
        [start] => Err(Misplaced::Elsewhere(*start)),
        several => Err(ambiguous(text, several)),
    }
}

/// Finds the only place of a hunk. `stated` is where its header puts it, which does not make another place wrong.
pub(super) fn find_only(
    text: &Text<'_>,
    sides: &Sides<'_>,
    stated: Option<usize>,
    work: &mut Work<'_>,
) -> Result<Place, Misplaced> {
    if sides.old.is_empty() {
        return Err(Misplaced::NotFound);
    }
    let is_elsewhere = |start: usize| !sides.hunk.is_unnumbered && stated != Some(start);
    let places = everywhere(text, sides, work).map_err(Misplaced::Several)?;
    if occurs_open(text, sides, work) {
        only_by_ends(text, sides, work)?;
    }
    match places.as_slice() {
        [] => {
            let place = find_by_ends(text, sides, None, work)?;
            Ok(Place { is_elsewhere: is_elsewhere(place.range.start), ..place })
        }
        [start] => {
            let range = *start..*start + sides.old.len();
            Ok(Place { is_elsewhere: is_elsewhere(range.start), range, tier: Tier::Exact })
        }
        several => Err(ambiguous(text, several)),
    }
}

fn ambiguous(text: &Text<'_>, starts: &[usize]) -> Misplaced {
    let lines = starts.iter().take(LISTED).map(|start| text.lines_above(*start) + 1).collect();
    let has_more = starts.len() > LISTED;
    Misplaced::Several(FindError::Ambiguous { tier: Tier::Exact, lines, has_more })
}

/// Finds the place where the lines occur except for their ends.
fn find_by_ends(
    text: &Text<'_>,
    sides: &Sides<'_>,
    stated: Option<usize>,
    work: &mut Work<'_>,
) -> Result<Place, Misplaced> {
    let found = match by_ends(text, sides, stated) {
        Some(range) => Some(Place { range, tier: Tier::Eol, is_elsewhere: false }),
        None => {
            let range = only_by_ends(text, sides, work)?;
            range.map(|range| Place { range, tier: Tier::Eol, is_elsewhere: true })
        }
    };
    except_ends(found.ok_or(Misplaced::NotFound)?, text, sides, work)
}

/// A place whose lines end in another way, where that may be.
fn except_ends(place: Place, text: &Text<'_>, sides: &Sides<'_>, work: &Work<'_>) -> Result<Place, Misplaced> {
    let is_below_mark = place.range.start == text.start() && text.start() > 0;
    if is_below_mark && sides.new.starts_with(BOM) {
        // The mark that the file keeps would have a second one below it.
        return Err(Misplaced::NotFound);
    }
    let is_cut_short = is_open(&sides.old) && place.range.end < text.bytes().len();
    if is_cut_short || !work.settings.recovers || !sides.ends_alike() {
        return Err(Misplaced::Ends(place.range.start));
    }
    Ok(place)
}

/// The only place where the lines occur, however they end there.
fn only_by_ends(text: &Text<'_>, sides: &Sides<'_>, work: &mut Work<'_>) -> Result<Option<Range<usize>>, Misplaced> {
    // Without recovery, only the ends of lines may differ.
    let recovers = false;
    let region = text.start()..text.bytes().len();
    match find::only(text, &sides.needle(), region, None, recovers, &mut work.budget) {
        Ok(place) => Ok(Some(place.range)),
        Err(FindError::NotFound) => Ok(None),
        Err(several) => Err(Misplaced::Several(several)),
    }
}

/// How often lines occur in some bytes, at most twice.
pub(super) fn count(bytes: &[u8], old: &[u8]) -> usize {
    let needle = [b"\n", old].concat();
    let finder = memmem::Finder::new(&needle);
    let (mut found, mut from) = (usize::from(is_at(bytes, 0, old)), 0);
    while found < 2
        && let Some(hit) = finder.find(slice(bytes, from..bytes.len()))
    {
        // The next place may begin within this one.
        from += hit + 1;
        found += usize::from(is_at(bytes, from, old));
    }
    found
}

/// Whether some bytes are the lines of others, except for their ends.
pub(super) fn is_same_except_ends(stated: &[u8], found: &[u8]) -> bool {
    let mut stated = stated.split_inclusive(|byte| *byte == b'\n').map(without_end);
    let mut found = found.split_inclusive(|byte| *byte == b'\n').map(without_end);
    loop {
        match (stated.next(), found.next()) {
            (None, None) => return true,
            (Some(stated), Some(found)) if stated == found => {}
            _ => return false,
        }
    }
}

/// The new lines where the header puts them, if they occur there and the old ones do not. How they end counts only where
/// the hunk is about that.
pub(super) fn applied(text: &Text<'_>, sides: &Sides<'_>, start: usize) -> Option<Range<usize>> {
    let (old, new) = (&sides.old, &sides.new);
    if new.is_empty() {
        return None;
    }
    let bytes = text.bytes();
    let top = text.start().max(start);
    if text.start() > 0 && top == text.start() && new.starts_with(BOM) && !old.starts_with(BOM) {
        // The hunk is about the mark.
        return is_at(bytes, 0, new).then_some(0..new.len());
    }
    let is_there = |side: &[u8]| is_at(bytes, start, side) || is_at(bytes, top, side);
    if is_there(new) && !is_there(old) {
        return Some(top..(start + new.len()).min(bytes.len()));
    }
    let rest = slice(bytes, top..bytes.len());
    let length = begins_except_ends(rest, new).filter(|_| sides.ends_alike())?;
    begins_except_ends(rest, old).is_none().then_some(top..top + length)
}

/// How many bytes of `rest` some lines take up, however they end there. A last one without terminator can only be
/// at the end.
pub(super) fn begins_except_ends(rest: &[u8], lines: &[u8]) -> Option<usize> {
    let mut found = rest.split_inclusive(|byte| *byte == b'\n');
    let mut length = 0;
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let found = found.next().filter(|found| without_end(found) == without_end(line))?;
        length += found.len();
    }
    (!is_open(lines) || length == rest.len()).then_some(length)
}

/// Where the line below `start` may begin: at the top of a file, with its byte order mark or below it.
fn starts(text: &Text<'_>, start: usize, sides: &Sides<'_>) -> impl Iterator<Item = usize> + use<> {
    let is_top = start == text.start();
    let is_below_mark = is_top && start > 0;
    let has_mark = sides.old.starts_with(BOM);
    // Below a mark that is kept, no new one may be added.
    let may_be_below = !is_below_mark || (!has_mark && !sides.new.starts_with(BOM));
    let with_mark = (is_below_mark && has_mark).then_some(0);
    with_mark.into_iter().chain(may_be_below.then_some(start))
}

/// Whether the old side occurs at an offset, so that the new one can replace it.
fn occurs_at(text: &Text<'_>, start: usize, sides: &Sides<'_>) -> bool {
    let bytes = text.bytes();
    if is_open(&sides.new) && start + sides.old.len() < bytes.len() {
        return false;
    }
    match sides.old.as_slice() {
        [] => start <= text.start() || slice(bytes, 0..start).ends_with(b"\n"),
        old => is_at(bytes, start, old),
    }
}

/// Whether the last line of a side has no terminator.
fn is_open(side: &[u8]) -> bool {
    !side.is_empty() && !side.ends_with(b"\n")
}

/// Whether lines occur at an offset where a line starts: a last one without terminator at the end of the file only.
fn is_at(bytes: &[u8], start: usize, old: &[u8]) -> bool {
    let rest = slice(bytes, start..bytes.len());
    rest.starts_with(old) && (old.ends_with(b"\n") || rest.len() == old.len())
}

/// Whether the lines also occur at the end of the file, which is another place.
fn may_be_end(text: &Text<'_>, start: usize, sides: &Sides<'_>) -> bool {
    let bytes = text.bytes();
    let Some(end) = bytes.len().checked_sub(sides.old.len()).filter(|end| *end != start) else { return false };
    if sides.old.is_empty() {
        // At the top, a hunk without old lines states its place.
        return start > text.start();
    }
    (end == text.start() || slice(bytes, 0..end).ends_with(b"\n")) && occurs_at(text, end, sides)
}

/// Whether the lines may differ in the last terminator, and so occur at the end of the file.
fn occurs_open(text: &Text<'_>, sides: &Sides<'_>, work: &Work<'_>) -> bool {
    let old = without_end(&sides.old);
    let may_be = work.settings.recovers && text.is_unterminated() && sides.ends_alike();
    let above = slice(text.bytes(), text.start()..text.bytes().len()).strip_suffix(old);
    may_be && !old.is_empty() && above.is_some_and(|above| above.is_empty() || above.ends_with(b"\n"))
}

/// The first places where the lines occur byte by byte.
fn everywhere(text: &Text<'_>, sides: &Sides<'_>, work: &mut Work<'_>) -> Result<Vec<usize>, FindError> {
    let bytes = text.bytes();
    let mut places: Vec<usize> =
        starts(text, text.start(), sides).filter(|start| occurs_at(text, *start, sides)).collect();
    let needle = [b"\n", sides.old.as_slice()].concat();
    let finder = memmem::Finder::new(&needle);
    let mut from = 0;
    while places.len() <= LISTED {
        let rest = slice(bytes, from..bytes.len());
        let hit = finder.find(rest);
        work.budget.charge(hit.unwrap_or(rest.len()) + needle.len())?;
        let Some(hit) = hit else { break };
        from += hit + 1;
        if occurs_at(text, from, sides) {
            places.push(from);
        }
    }
    Ok(places)
}

/// The place that the header states, if the lines occur there except for their ends.
fn by_ends(text: &Text<'_>, sides: &Sides<'_>, stated: Option<usize>) -> Option<Range<usize>> {
    let start = stated?;
    let mut cursor = text.cursor_at(start, 0);
    sides.old_lines().try_for_each(|line| cursor.step_over(line).map(|_| ()))?;
    (cursor.at() > start).then(|| start..cursor.at())
}

/// A line without its terminator.
pub(super) fn without_end(line: &[u8]) -> &[u8] {
    match line.strip_suffix(b"\n") {
        Some(line) => line.strip_suffix(b"\r").unwrap_or(line),
        None => line,
    }
}

/// The lines of a hunk from its first change to its last one, and how many lines of it are above them.
pub(super) fn changed(hunk: &Hunk) -> (&[HunkLine], usize) {
    let (mut lines, mut above) = (hunk.lines.as_slice(), 0);
    while let [HunkLine { kind: LineKind::Context, .. }, rest @ ..] = lines {
        (lines, above) = (rest, above + 1);
    }
    while let [rest @ .., HunkLine { kind: LineKind::Context, .. }] = lines {
        lines = rest;
    }
    (lines, above)
}
