//! The place and the new text of each change of a search patch, in the file as it is.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::Normalization;

use super::equal::Equal;
use super::replace;
use super::source::{Notes, new_text};
use crate::already::{self, Copy};
use crate::dialect::search_patch::check::{Spot, ValidSearch};
use crate::dialect::search_patch::splice;
use crate::dialect::search_patch::splice::{Rank, Splice};
use crate::findings::Findings;
use crate::planning::work::Work;
use crate::shown::counted;
use crate::text::edit::slice;
use crate::text::lines::{Terminator, Text};
use crate::text::new_text::{self, Fitted};
use crate::text::whole_text;

/// Finds the place of every change.
///
/// # Errors
/// Every change without a place.
pub(super) fn locate_all<'t>(
    changes: &[ValidSearch<'_>],
    text: &Text<'t>,
    notes: &mut Notes,
    work: &mut Work<'_>,
) -> Result<Vec<Splice>, Findings> {
    let mut findings = Findings::default();
    let mut splices = Vec::with_capacity(changes.len());
    let mut equal = Equal::of(changes);
    for (index, change) in changes.iter().enumerate() {
        let located = match equal.place(change, text, work) {
            Ok(Some(place)) => replace::at(index, change, place, text, notes, work),
            Ok(None) => locate(index, change, text, notes, work),
            Err(failure) => Err(failure),
        };
        match located {
            Ok(splice) => splices.push(splice),
            Err(failure) => {
                // That later changes find nothing on the clipboard would be no failure of their own.
                if let (Some(name), Spot::Replace(old)) = (change.keep, change.spot) {
                    work.clipboards.set(name, old).ok();
                }
                findings.add(|| failure.change(index));
            }
        }
    }
    findings.check().map(|()| splices)
}

/// Finds the place of one change, and converts its text to the form of that place.
fn locate(
    index: usize,
    change: &ValidSearch<'_>,
    text: &Text<'_>,
    notes: &mut Notes,
    work: &mut Work<'_>,
) -> Result<Splice, Failure> {
    let (rank, fitted) = match change.spot {
        Spot::Replace(old) => return replace::locate(index, change, old, text, notes, work),
        Spot::End => (Rank::End, text.bytes().len()..text.bytes().len()),
        Spot::Top => (Rank::Top, text.start()..text.start()),
        Spot::Everything => {
            let new = new_text(change, work)?;
            let formed = whole_text::keep_ends(&new, text);
            work.take_room(formed.bytes.len())?;
            notes.normalized.extend(formed.normalized);
            notes.warnings.extend(formed.warnings);
            let range = text.start()..text.bytes().len();
            let fitted = Fitted { range, bytes: formed.bytes.into_owned(), has_other_ends: false };
            return Ok(Splice::inserted(index, Rank::Between, fitted));
        }
        Spot::After(line) => {
            let new = new_text(change, work)?;
            let fitted = insert_lines(text, line.get(), &new)?;
            refuse(already::below(text, fitted.range.start, &ended(&new)), |copy| already::applied(text, copy))?;
            if text.is_unterminated() && fitted.range.end == text.bytes().len() {
                notes.normalized.push(Normalization::FileEofNewlineAdded);
            }
            work.take_room(fitted.bytes.len())?;
            notes.note_line_endings(&fitted);
            return Ok(Splice::inserted(index, Rank::Between, fitted));
        }
    };
    let new = new_text(change, work)?;
    let mut fitted = new_text::fit_ends(text, fitted, &new);
    match rank {
        Rank::End => {
            let copy = already::above(text, fitted.range.start, &fitted.bytes);
            refuse(copy, |copy| already::at_end(text, copy, &new))?;
        }
        Rank::Top => {
            if text.start() < text.bytes().len() && splice::terminate(&mut fitted.bytes, text) {
                notes.normalized.push(Normalization::ContentEofNewlineAdded);
            }
            let copy = already::below(text, fitted.range.start, &fitted.bytes);
            refuse(copy, |copy| already::at_top(text, copy, &String::from_utf8_lossy(&fitted.bytes)))?;
        }
        Rank::Between => {}
    }
    work.take_room(fitted.bytes.len())?;
    notes.note_line_endings(&fitted);
    Ok(Splice::inserted(index, rank, fitted))
}

/// Refuses a change whose new text is already there.
fn refuse(copy: Option<Copy>, failure: impl FnOnce(&Copy) -> Failure) -> Result<(), Failure> {
    copy.map_or(Ok(()), |copy| Err(failure(&copy)))
}

/// Whole lines, the last one ended as well.
fn ended(new: &str) -> Vec<u8> {
    [new.strip_suffix('\n').unwrap_or(new), "\n"].concat().into_bytes()
}

/// Whole lines below a line, ended as that line is; the end of the file stays as it was.
fn insert_lines(text: &Text<'_>, above: usize, new: &str) -> Result<Fitted, Failure> {
    let mut cursor = text.cursor();
    cursor.seek(above).map_err(|lines| {
        let message = format!("the change names line {above}, and the file has {}", counted(lines, "line"));
        let hint = format!("to append, name line {lines}");
        Failure::new(Reason::LineRange, message).detail(Detail::PastEnd).hint(hint)
    })?;
    let at = cursor.at();
    let is_below_last = at == text.bytes().len() && text.is_unterminated();
    let end = if at == text.start() {
        text.first_terminator()
    } else if is_below_last {
        text.last_terminator()
    } else {
        Terminator::at_end_of(slice(text.bytes(), 0..at))
    };
    let mut bytes = Vec::with_capacity(new.len() + 2);
    let body = new.strip_suffix('\n').unwrap_or(new);
    for line in body.split('\n') {
        if is_below_last {
            bytes.extend_from_slice(end.as_bytes());
        }
        bytes.extend_from_slice(line.strip_suffix('\r').unwrap_or(line).as_bytes());
        if !is_below_last {
            bytes.extend_from_slice(end.as_bytes());
        }
    }
    let mut ended = new.split_inclusive('\n').filter(|line| line.ends_with('\n'));
    let has_other_ends = ended.any(|line| Terminator::at_end_of(line.as_bytes()) != end);
    Ok(Fitted { range: at..at, bytes, has_other_ends })
}
