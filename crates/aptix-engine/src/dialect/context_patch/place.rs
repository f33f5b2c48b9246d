//! Finds the place of a chunk: below the chunk before, below its anchors, at the one place that its old lines fit.
//!
//! Anchors narrow. If the old lines occur at several places below them, those count that lie in what an anchor heads:
//! the lines below it that are indented more. What then is not one place is refused.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::batch::{Chunk, ChunkLine, LineKind};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::Tier;

use super::made;
use super::spot::Spot;
use crate::already;
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::shown::cut;
use crate::text::edit::slice;
use crate::text::find::{self, Budget, FindError, Needle, Shift, is_blank, split_indent};
use crate::text::lines::Text;

/// Characters of an anchor that a message repeats.
const ANCHOR_CHARS: usize = 80;

/// Finds the place of a chunk at or below the line that starts at `from`. `others` are the chunks below.
///
/// # Errors
/// When there is none, or several.
pub(super) fn locate<'a>(
    chunk: &'a Chunk,
    others: &[Chunk],
    text: &Text<'_>,
    from: usize,
    work: &mut Work<'_>,
) -> Result<Spot<'a>, Failure> {
    let below = Below::anchors(&chunk.anchors, text, from, work)
        .map_err(|failure| needless_anchor(failure, chunk, text, from, work))?;
    let needle = made::old_side(chunk);
    let end = text.bytes().len();
    if needle.as_lines().is_empty() {
        let at = if chunk.is_at_end || chunk.anchors.is_empty() {
            end
        } else {
            let anchor = below.only_anchor(text, from);
            anchor.map_err(|error| anchor_failure(chunk.anchors.last(), &error, text, work))?.end
        };
        let (tier, shift) = (Tier::Exact, Shift::None);
        return Ok(Spot { range: at..at, tier, candidates: 1, shift, lines: &chunk.lines, heads: Vec::new() });
    }
    let found = if chunk.is_at_end { at_end(&needle, text, &below, work) } else { below.only(&needle, text, work) };
    let region = below.start..end;
    let found = match found {
        Err(FindError::Ambiguous { .. }) if !chunk.is_at_end => {
            match made::first_of_equal(chunk, others, region.clone(), text, work)? {
                Some(place) => Ok(place),
                None => found,
            }
        }
        found => found,
    };
    let found = found.and_then(|place| match place.dropped {
        (0, 0) => Ok((place, chunk.lines.as_slice())),
        (above, below) => {
            let is_edge = |line: &ChunkLine| line.kind == LineKind::Context;
            let kept = above..chunk.lines.len() - below;
            let (head, tail) = (chunk.lines.get(..above), chunk.lines.get(kept.end..));
            let is_safe = head.into_iter().chain(tail).flatten().all(is_edge);
            chunk.lines.get(kept).filter(|_| is_safe).map(|lines| (place, lines)).ok_or(FindError::NotFound)
        }
    });
    match found {
        Ok((place, lines)) => {
            let find::Place { range, tier, candidates, shift, .. } = place;
            let heads = below.places.iter().map(|place| headed(text, place, &mut work.budget));
            let heads = heads.collect::<Result<Vec<_>, _>>();
            let heads = heads.map_err(|error| anchor_failure(chunk.anchors.last(), &error, text, work))?;
            Ok(Spot { range, tier, candidates, shift, lines, heads })
        }
        Err(error) => match made::made_before(chunk, &error, region, text, work) {
            Some(copy) => Err(already::applied(text, &copy)),
            None => Err(explain(&error, chunk, &needle, text, from, work)),
        },
    }
}

/// Where the old lines are the last ones of the file.
fn at_end(needle: &Needle<'_>, text: &Text<'_>, below: &Below, work: &mut Work<'_>) -> Result<find::Place, FindError> {
    // To find the end, every block of the file is passed.
    work.budget.charge(text.bytes().len() / 64)?;
    let mut cursor = text.cursor();
    cursor.seek(text.lines().saturating_sub(needle.as_lines().len())).map_err(|_| FindError::NotFound)?;
    let region = cursor.at().max(below.start)..text.bytes().len();
    let place = find::only(text, needle, region.clone(), None, work.settings.recovers, &mut work.budget)?;
    if place.range.end == region.end { Ok(place) } else { Err(FindError::NotFound) }
}

/// What lies below the anchors of a chunk. They may occur above the chunk before: two chunks can have one head.
struct Below {
    /// The first line that the chunk could have.
    start: usize,
    /// Where the last anchor occurs, as far as that is known; empty if there is none.
    places: Vec<Range<usize>>,
    /// Whether it also occurs at places that are not known.
    has_more: bool,
}

impl Below {
    /// Finds anchors, each below the one before.
    fn anchors(anchors: &[String], text: &Text<'_>, from: usize, work: &mut Work<'_>) -> Result<Self, Failure> {
        let end = text.bytes().len();
        let mut below = Self { start: text.start(), places: Vec::new(), has_more: false };
        for anchor in anchors {
            let needle = Needle::lines([anchor.as_str()]);
            let heads = below.places.iter().map(|place| headed(text, place, &mut work.budget));
            let mut regions = heads
                .collect::<Result<Vec<_>, _>>()
                .map_err(|error| anchor_failure(Some(anchor), &error, text, work))?;
            let mut found = Vec::new();
            let mut has_more = below.has_more;
            // First in what the anchor before heads, then anywhere below it.
            regions.push(below.start..end);
            let last = regions.len() - 1;
            for (index, region) in regions.into_iter().enumerate() {
                if index == last && !found.is_empty() {
                    break;
                }
                match find::only(text, &needle, region, None, work.settings.recovers, &mut work.budget) {
                    Ok(place) => found.push(place.range),
                    Err(FindError::NotFound) => {}
                    Err(FindError::Ambiguous { lines, has_more: more, .. }) => {
                        found.extend(lines.into_iter().filter_map(|line| line_at(text, line)));
                        has_more |= more;
                    }
                    Err(error) => return Err(anchor_failure(Some(anchor), &error, text, work)),
                }
            }
            found.sort_by_key(|place| place.start);
            found.dedup();
            let Some(first) = found.first() else {
                return Err(anchor_failure(Some(anchor), &FindError::NotFound, text, work));
            };
            below = Self { start: first.end, places: found, has_more };
        }
        below.start = below.start.max(from);
        Ok(below)
    }

    /// The one place of the last anchor at or below the line that starts at `from`.
    fn only_anchor(&self, text: &Text<'_>, from: usize) -> Result<Range<usize>, FindError> {
        let mut places = self.places.iter().filter(|place| place.start >= from);
        match (places.next(), places.next()) {
            (Some(place), None) if !self.has_more => Ok(place.clone()),
            (None, _) if !self.has_more => Err(FindError::NotFound),
            _ => {
                let lines = self.places.iter().map(|place| text.lines_above(place.start) + 1).collect();
                Err(FindError::Ambiguous { tier: Tier::Exact, lines, has_more: self.has_more })
            }
        }
    }

    /// The one place of a needle, which the anchors may settle.
    fn only(&self, needle: &Needle<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<find::Place, FindError> {
        let region = self.start..text.bytes().len();
        let error = match find::only(text, needle, region, None, work.settings.recovers, &mut work.budget) {
            Err(error @ FindError::Ambiguous { .. }) if !self.has_more => error,
            settled => return settled,
        };
        let FindError::Ambiguous { tier, lines, .. } = &error else { return Err(error) };
        let mut inside: Vec<find::Place> = Vec::new();
        for anchor in &self.places {
            let headed = headed(text, anchor, &mut work.budget)?;
            let region = headed.start.max(self.start)..headed.end.max(self.start);
            match find::only(text, needle, region, None, work.settings.recovers, &mut work.budget) {
                Ok(place) if place.tier == *tier => inside.push(place),
                Ok(_) | Err(FindError::NotFound) => {}
                Err(_) => return Err(error),
            }
        }
        inside.dedup_by(|a, b| a.range == b.range);
        match inside.pop() {
            Some(place) if inside.is_empty() => Ok(find::Place { candidates: lines.len(), ..place }),
            _ => Err(error),
        }
    }
}

/// The lines below a line that are blank or indented more than it.
fn headed(text: &Text<'_>, head: &Range<usize>, budget: &mut Budget) -> Result<Range<usize>, FindError> {
    let own = split_indent(slice(text.bytes(), head.clone())).0.len();
    let mut cursor = text.cursor_at(head.end, 0);
    let mut end = head.end;
    while let Some(line) = cursor.next() {
        budget.charge_line(line)?;
        if !is_blank(line) && split_indent(line).0.len() <= own {
            break;
        }
        end = cursor.at();
    }
    Ok(head.end..end)
}

/// The bytes of a line.
fn line_at(text: &Text<'_>, line: usize) -> Option<Range<usize>> {
    let mut cursor = text.cursor();
    cursor.seek(line.checked_sub(1)?).ok()?;
    let start = cursor.at();
    cursor.next()?;
    Some(start..cursor.at())
}

fn anchor_failure(anchor: Option<&String>, error: &FindError, text: &Text<'_>, work: &mut Work<'_>) -> Failure {
    let anchor = anchor.map(String::as_str).unwrap_or_default();
    let failure = old_text::explain(error, text, &Needle::lines([anchor]), work);
    let message = format!("anchor '@@ {}': {}", cut(anchor.as_bytes(), ANCHOR_CHARS), failure.message);
    let hint = match error {
        FindError::NotFound => {
            "an anchor is a whole line of the file that occurs above the change, and below the anchor before"
        }
        _ => "put another anchor above this one, or give lines of the file around the change",
    };
    Failure { message, ..failure }.hint(hint)
}

/// Adds to the failure of an anchor that is nowhere whether the chunk needs it.
fn needless_anchor(failure: Failure, chunk: &Chunk, text: &Text<'_>, from: usize, work: &mut Work<'_>) -> Failure {
    let needle = made::old_side(chunk);
    let region = from..text.bytes().len();
    let is_missing = failure.reason == Reason::TextNotFound && !needle.as_lines().is_empty();
    if !is_missing || work.searches.take().is_none() {
        return failure;
    }
    match find::only(text, &needle, region, None, work.settings.recovers, &mut work.budget) {
        Ok(place) => {
            let line = text.lines_above(place.range.start) + 1;
            failure.hint(format!(
                "the chunk's old lines occur at line {line} and nowhere else below the chunk before: leave the anchor out, or give it as a whole line of the file"
            ))
        }
        Err(_) => failure,
    }
}

/// Explains why the old lines of a chunk have no place.
fn explain(
    error: &FindError,
    chunk: &Chunk,
    needle: &Needle<'_>,
    text: &Text<'_>,
    from: usize,
    work: &mut Work<'_>,
) -> Failure {
    let mut failure = old_text::explain(error, text, needle, work);
    if *error != FindError::NotFound {
        return match failure.reason {
            Reason::TextNotUnique => failure.hint(
                "add lines from above or below to the chunk, or an anchor: '@@ ' and the line that heads the place",
            ),
            _ => failure,
        };
    }
    if work.searches.take().is_none() {
        return failure;
    }
    let all = text.start()..text.bytes().len();
    let mut find_only = |needle: &Needle<'_>, region: Range<usize>| {
        let place = find::only(text, needle, region, None, work.settings.recovers, &mut work.budget).ok()?;
        (place.dropped == (0, 0)).then_some(())?;
        Some((place.range.start, text.lines_above(place.range.start) + 1))
    };
    if let Some((at, line)) = find_only(needle, all) {
        let (what, hint) = if chunk.is_at_end {
            ("and the file continues below them", "leave '*** End of File' out, or give the file's last lines")
        } else if at < from {
            ("above the end of the chunk before", "list the chunks of a file top to bottom, and no line in two of them")
        } else {
            ("not below the anchor", "an anchor occurs above the lines of its chunk and is none of them")
        };
        failure.message = format!("old text not found: the chunk's old lines occur at line {line}, {what}");
        failure.line = Some(line);
        return failure.hint(hint);
    }
    let has_new = chunk.lines.iter().any(|line| line.kind == LineKind::Added);
    match find_only(&made::new_side(chunk), from..text.bytes().len()).filter(|_| has_new) {
        Some((_, line)) => failure.hint(format!(
            "read the file again; the new lines of the chunk are already at line {line}: it may have been applied"
        )),
        None => failure,
    }
}
