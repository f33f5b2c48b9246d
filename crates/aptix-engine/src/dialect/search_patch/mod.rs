//! A search patch on a real file: every text is found in the file as it is, then all changes are made at once.

pub(crate) mod check;
mod equal;
mod repeat;
mod replace;

use alloc::borrow::Cow;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::batch::Reindent;
use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{Normalization, Tier, Warning};

use crate::already::{self, Copy};
use crate::dialect::search_patch::check::{Source, Spot, ValidSearch};
use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::findings::Findings;
use crate::plan::{Draft, Observed, Work, check_presence, finish, read_text};
use crate::shown::counted;
use crate::text::lines::{Terminator, Text};
use crate::text::new_text::{self, Fitted};
use crate::text::splice::{self, Rank, Splice};
use crate::text::whole_text;
use crate::validate::Base;
use equal::Equal;

/// Plans the changes of one file.
///
/// # Errors
/// Everything that keeps a change from being made.
pub(crate) fn plan<'a>(
    precondition: Base,
    changes: &[ValidSearch<'a>],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(precondition, observed)?;
    let nothing = Original::new(&[], None);
    let text = read_text(original.as_ref().unwrap_or(&nothing), &work.settings.limits)?;
    let mut notes = Notes::default();
    let spliced = locate_all(changes, &text, &mut notes, work).and_then(|splices| {
        let spliced = splice::all(&text, splices, work)?;
        repeat::refuse(changes, &text, &spliced, notes.is_made_once, work)?;
        Ok(spliced)
    });
    let spliced = spliced.map_err(|found| {
        let mut findings = Findings::default();
        findings.absorb(found, |failure| match &original {
            Some(original) => failure.current(original.digest(0)),
            None => failure,
        });
        findings
    })?;
    let Notes { mut normalized, mut warnings, .. } = notes;
    normalized.extend(spliced.normalized);
    warnings.extend(spliced.warnings);
    let draft = Draft { action: FileAction::Edit(spliced.edit), normalized, warnings, changes: spliced.reports };
    Ok(finish(observed, original, draft))
}

/// What is said beside the changes.
#[derive(Default)]
struct Notes {
    normalized: Vec<Normalization>,
    warnings: Vec<Warning>,
    /// Whether a change that only adds would be known for made the second time.
    is_made_once: bool,
}

fn locate_all<'t>(
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

/// Finds the place of one change, and brings its text into the form of that place.
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
            let new = coming(change, work)?;
            let formed = whole_text::keep_ends(&new, text);
            work.take_room(formed.bytes.len())?;
            notes.normalized.extend(formed.normalized);
            notes.warnings.extend(formed.warnings);
            let range = text.start()..text.bytes().len();
            let fitted = Fitted { range, bytes: formed.bytes.into_owned(), has_other_ends: false };
            return Ok(Splice::inserted(index, Rank::Between, fitted));
        }
        Spot::After(line) => {
            let new = coming(change, work)?;
            let fitted = insert_lines(text, line.get(), &new)?;
            refuse(already::below(text, fitted.range.start, &ended(&new)), |copy| already::applied(text, copy))?;
            if text.is_unterminated() && fitted.range.end == text.bytes().len() {
                notes.normalized.push(Normalization::FileEofNewlineAdded);
            }
            work.take_room(fitted.bytes.len())?;
            notes.tell_ends(&fitted);
            return Ok(Splice::inserted(index, Rank::Between, fitted));
        }
    };
    let new = coming(change, work)?;
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
    notes.tell_ends(&fitted);
    Ok(Splice::inserted(index, rank, fitted))
}

/// Refuses what already stands.
fn refuse(copy: Option<Copy>, failure: impl FnOnce(&Copy) -> Failure) -> Result<(), Failure> {
    copy.map_or(Ok(()), |copy| Err(failure(&copy)))
}

/// Whole lines, the last one ended as well.
fn ended(new: &str) -> Vec<u8> {
    [new.strip_suffix('\n').unwrap_or(new), "\n"].concat().into_bytes()
}

/// The text that comes, indented anew if that is asked for.
fn coming<'c>(change: &ValidSearch<'c>, work: &Work<'_>) -> Result<Cow<'c, str>, Failure> {
    let text = match change.source {
        Source::Text(text) => Cow::Borrowed(text),
        Source::Clipboard(name) => Cow::Owned(work.clipboards.get(name)?.to_string()),
        Source::Found => Cow::Borrowed(""),
    };
    match change.reindent {
        Some(reindent) => reindented(&text, reindent).map(Cow::Owned),
        None => Ok(text),
    }
}

/// Takes one prefix from every line that has anything in it, and puts another before it (REQ-PATCH-004).
fn reindented(text: &str, Reindent { strip, add }: &Reindent) -> Result<String, Failure> {
    let mut result = String::with_capacity(text.len());
    for (index, line) in text.split_inclusive('\n').enumerate() {
        if line.trim_end_matches(['\r', '\n']).is_empty() {
            result.push_str(line);
            continue;
        }
        let Some(rest) = line.strip_prefix(strip.as_str()) else {
            let message = format!(
                "line {} of the text that comes does not begin with {strip:?}, which is to be stripped",
                index + 1
            );
            return Err(Failure::new(Reason::ReindentPrecondition, message)
                .hint("give in reindent.strip only what every line that is not empty begins with"));
        };
        result.push_str(add);
        result.push_str(rest);
    }
    Ok(result)
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
        Terminator::at_end_of(text.bytes().get(..at).unwrap_or_default())
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

impl Notes {
    /// Says that lines of new text were ended as the file's are.
    fn tell_ends(&mut self, fitted: &Fitted) {
        if fitted.has_other_ends && !self.normalized.contains(&Normalization::LineEndings) {
            self.normalized.push(Normalization::LineEndings);
        }
    }
}

impl Splice {
    /// Text that comes where nothing was looked for.
    fn inserted(index: usize, rank: Rank, fitted: Fitted) -> Self {
        Self { index, rank, matched: fitted.range.clone(), fitted, tier: Tier::Exact, candidates: 1 }
    }
}
