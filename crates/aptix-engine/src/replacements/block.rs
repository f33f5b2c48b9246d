//! A block: whole lines in the place of whole lines that stand only once, or at the end of the file.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::Tier;

use super::Made;
use crate::find::{self, Needle, Place, Shift, is_blank};
use crate::line_patch::{self, LinePatchError};
use crate::nearest;
use crate::nearest_text;
use crate::plan::Work;
use crate::text::Text;
use crate::text_edit::TextEdit;
use crate::validate::LineChange;
use crate::validate::replacements::ValidStep;

/// Makes one step; of several places the one at the offset `hint` will do.
pub(super) fn make(
    step: &ValidStep<'_>,
    hint: Option<usize>,
    text: &Text<'_>,
    work: &mut Work<'_>,
) -> Result<Made, Failure> {
    let new: Vec<&str> = lines(step.replace).collect();
    work.take_room(step.replace.len())?;
    if step.find.is_empty() {
        let new: Vec<String> = new.into_iter().map(String::from).collect();
        let edit = lower(text, &LineChange::new(0, text.lines(), &[], &new), work)?;
        let end = text.bytes().len();
        return Ok(Made { edit, tier: Tier::Exact, candidates: 1, has_other_ends: false, at: end..end });
    }
    let needle = Needle::lines(lines(step.find));
    let region = text.start()..text.bytes().len();
    let place = find::only(text, &needle, region, hint, work.settings.recovers, &mut work.budget)
        .map_err(|error| nearest_text::explain(&error, text, &needle, work))?;
    let above = text.lines_above(place.range.start);
    let (dropped_above, dropped_below) = place.dropped;
    let old = needle.as_lines();
    let old = old.get(dropped_above..old.len() - dropped_below).unwrap_or_default();
    let new = without_edges(&new, place.dropped);
    // Lines that stay are the file's, whatever white space the author has there.
    let same = |(old, new): &(&&[u8], &&str)| **old == new.as_bytes();
    let most = old.len().min(new.len());
    let head = old.iter().zip(new).take_while(same).count();
    let tail = old.iter().rev().zip(new.iter().rev()).take(most - head).take_while(same).count();
    let mut cursor = text.cursor_at(place.range.start, above);
    let going: Vec<String> = cursor
        .by_ref()
        .take(old.len())
        .map(|line| String::from_utf8_lossy(line).into_owned())
        .skip(head)
        .take(old.len() - head - tail)
        .collect();
    let coming = new.get(head..new.len() - tail).unwrap_or_default();
    let coming = shifted(coming, dropped_above + head, &place, old)
        .map_err(|error| nearest_text::unshiftable(&error, text, above + 1, old.len()))?;
    let edit = if going.is_empty() && coming.is_empty() {
        TextEdit::default()
    } else {
        lower(text, &LineChange::new(0, above + head, &going, &coming), work)?
    };
    let Place { tier, candidates, range, .. } = place;
    Ok(Made { edit, tier, candidates, has_other_ends: false, at: range })
}

/// The lines of a block, which end as the file's do, whatever they end with here.
fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}

/// New lines without blank ones at the edges, as many as the file lacks of the old ones.
fn without_edges<'n, 't>(new: &'n [&'t str], (above, below): (usize, usize)) -> &'n [&'t str] {
    let blank = |line: &&&str| is_blank(line.as_bytes());
    let start = new.iter().take(above).take_while(blank).count();
    let rest = new.get(start..).unwrap_or_default();
    let end = rest.iter().rev().take(below).take_while(blank).count();
    rest.get(..rest.len() - end).unwrap_or_default()
}

/// New lines indented like the old ones in the file.
fn shifted(new: &[&str], above: usize, place: &Place, old: &[&[u8]]) -> Result<Vec<String>, find::Unshiftable> {
    let shift = |(position, line): (usize, &&str)| {
        let shift = if is_blank(line.as_bytes()) { &Shift::None } else { &place.shift };
        let (indent, rest) = shift.apply(line, above + position + 1, old)?;
        Ok(format!("{indent}{rest}"))
    };
    new.iter().enumerate().map(shift).collect()
}

fn lower(text: &Text<'_>, change: &LineChange<'_>, work: &Work<'_>) -> Result<TextEdit, Failure> {
    let lowered = line_patch::lower(text, &[*change], work.settings.limits.line_bytes);
    lowered.map(|lowered| lowered.edit.finished()).map_err(|errors| {
        let error = errors.first().map(|(_, error)| error);
        error.map_or_else(
            || Failure::new(Reason::Internal, "a block could not be made"),
            |error: &LinePatchError| nearest::explain(error, text, change),
        )
    })
}
