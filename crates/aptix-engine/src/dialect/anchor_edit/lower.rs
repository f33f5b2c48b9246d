//! The lines of an anchor edit put at its place, each with a terminator, unless they occur there already (rule 3.7). Of lines
//! that are replaced by number, only those that the new ones hold can be recognized.

use alloc::borrow::Cow;
use alloc::string::ToString;
use alloc::vec;
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::report::{Normalization, Tier, Warning};
use memchr::memchr_iter;

use super::check::{Place, ValidAnchorEdit};
use super::locate::{Lines, find};
use crate::already::{self, Copy, Proves};
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::{Findings, defect};
use crate::planning::draft::{Draft, finish};
use crate::planning::observed::Observed;
use crate::planning::presence::{check_presence, read_text, with_current};
use crate::planning::work::Work;
use crate::target::Base;
use crate::text::edit::{TextEdit, slice};
use crate::text::find::Budget;
use crate::text::lines::{Terminator, Text};
use crate::text::outcome::change_report;
use crate::text::whole_text;

/// Plans an anchor edit against the file.
///
/// # Errors
/// When the place is not there, or one of several.
pub(crate) fn plan<'a>(
    base: Base,
    edit: &ValidAnchorEdit<'a>,
    observed: &'a Observed<'a>,
    work: &Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(base, observed)?;
    let bytes = original.as_ref().map_or(&[][..], |original| original.bytes);
    let empty = Original::new(&[], None);
    let text = read_text(original.as_ref().unwrap_or(&empty), &work.settings.limits)?;
    let lines = Lines::of(&text);
    let (above, removed, candidates) =
        find(&edit.place, &lines).map_err(|error| with_current(error.failure(&lines), original.as_ref()))?;
    let mut normalized = Vec::new();
    let mut warnings = Vec::new();
    let (new, new_lines) = match edit.place {
        Place::Whole => whole_text(edit.content, &text, &mut normalized, &mut warnings),
        _ => new_text(edit.content, &lines, above, removed, &mut normalized),
    };
    let range = lines.range(above, removed);
    if let Some(copy) = copy(&edit.place, &text, &range, &new) {
        return Err(with_current(already::applied(&text, &copy).change(0), original.as_ref()).into());
    }
    let mut replacements = vec![(range.clone(), new)];
    if text.is_unterminated() && !(matches!(edit.place, Place::Whole) || range.end == bytes.len() && removed > 0) {
        normalized.push(Normalization::FileEofNewlineAdded);
        let terminator = text.last_terminator().as_bytes().to_vec();
        if range.start == bytes.len() {
            replacements.insert(0, (bytes.len()..bytes.len(), terminator));
        } else {
            replacements.push((bytes.len()..bytes.len(), terminator));
        }
    }
    let edit = TextEdit::new(replacements).map_err(|error| defect(error.to_string()))?;
    let change = change_report(Tier::Exact, candidates, above, new_lines);
    let action = FileAction::Edit(edit);
    Ok(finish(observed, original, Draft { action, normalized, warnings, changes: vec![change] }))
}

/// A whole new content with a final terminator, in the form of the file in its place, and how many lines it has.
fn whole_text(
    content: &str,
    text: &Text<'_>,
    normalized: &mut Vec<Normalization>,
    warnings: &mut Vec<Warning>,
) -> (Vec<u8>, usize) {
    let mut content = Cow::Borrowed(content);
    if !content.is_empty() && !content.ends_with('\n') {
        normalized.push(Normalization::ContentEofNewlineAdded);
        let end = if content.contains("\r\n") { "\r\n" } else { "\n" };
        content.to_mut().push_str(end);
    }
    let formed = whole_text::keep_ends(&content, text);
    normalized.extend(formed.normalized);
    warnings.extend(formed.warnings);
    let lines = memchr_iter(b'\n', &formed.bytes).count();
    (formed.bytes.into_owned(), lines)
}

/// The content's lines as the file's own, and how many there are.
fn new_text(
    content: &str,
    lines: &Lines<'_>,
    above: usize,
    removed: usize,
    normalized: &mut Vec<Normalization>,
) -> (Vec<u8>, usize) {
    if content.is_empty() {
        return (Vec::new(), 0);
    }
    if !content.ends_with('\n') {
        normalized.push(Normalization::ContentEofNewlineAdded);
    }
    let body = content.strip_suffix('\n').unwrap_or(content);
    let (mut new, mut count, mut is_converted) = (Vec::with_capacity(content.len() + 2), 0, false);
    for line in body.split('\n') {
        let text = line.strip_suffix('\r').unwrap_or(line);
        let terminator =
            lines.terminator(if count < removed { above + count } else { (above + removed).wrapping_sub(1) });
        is_converted |= (text.len() < line.len()) != (terminator == Terminator::CrLf);
        new.extend_from_slice(text.as_bytes());
        new.extend_from_slice(terminator.as_bytes());
        count += 1;
    }
    // The line feed of the last line was taken off before its carriage return could be seen.
    if is_converted && content.contains("\r\n") {
        normalized.push(Normalization::LineEndings);
    }
    (new, count)
}

/// Where the new lines already occur, of which blank ones alone prove nothing.
fn copy(place: &Place<'_>, text: &Text<'_>, range: &Range<usize>, new: &[u8]) -> Option<Copy> {
    let copy = match place {
        Place::Whole => None,
        _ if !range.is_empty() => {
            let mut budget = Budget::new(text.bytes().len());
            already::around(text, range, new, Tier::Eol, &mut budget).ok().flatten()
        }
        Place::Append => already::above(text, range.start, new),
        Place::After(finder) if finder.anchor.occurrence.is_some() => across(text, range.start, new),
        Place::Before(finder) if finder.anchor.occurrence.is_some() => across(text, range.start, new),
        Place::Before(_) => already::above(text, range.start, new),
        Place::After(_) | Place::Between { .. } => already::below(text, range.start, new),
        Place::Range { .. } => None,
    };
    copy.filter(|copy| copy.proves == Proves::Made)
}

/// Where the new lines occur above a place, below it, or on both sides: an anchor that is one of several can be one of
/// them.
fn across(text: &Text<'_>, at: usize, new: &[u8]) -> Option<Copy> {
    let ends = memchr_iter(b'\n', new).map(|feed| feed + 1);
    [0].into_iter().chain(ends).find_map(|split| {
        let (head, tail) = (slice(new, 0..split), slice(new, split..new.len()));
        let above = already::above(text, at, head);
        let below = already::below(text, at, tail);
        match (above, below) {
            (Some(above), Some(below)) => {
                let proves = if above.proves == Proves::Made { above.proves } else { below.proves };
                Some(Copy { range: above.range.start..below.range.end, proves })
            }
            (Some(above), None) if tail.is_empty() => Some(above),
            (None, Some(below)) if head.is_empty() => Some(below),
            _ => None,
        }
    })
}
