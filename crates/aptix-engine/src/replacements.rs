//! Replacements on a real file: each is made in the result of the one before, and all are folded to one edit.

mod block;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::reason::{Detail, Reason};
use aptix_model::report::{ChangeReport, Normalization, Tier, Warning};

use crate::digest::Original;
use crate::file_plan::{FileAction, FilePlan};
use crate::find::{self, FindError, Needle, Place};
use crate::findings::Findings;
use crate::plan::{Draft, Observed, Work, check_presence, finish, read_text};
use crate::splice::{lines_of, narrow, refuse_mark};
use crate::text::Text;
use crate::text_edit::TextEdit;
use crate::validate::Base;
use crate::validate::replacements::{StepPlace, ValidStep};
use crate::{nearest_text, new_text};

/// Plans the steps of one file.
///
/// # Errors
/// Why the first step that cannot be made cannot be made; what the steps below would meet is then not known.
pub(crate) fn plan<'a>(
    precondition: Base,
    steps: &[ValidStep<'a>],
    observed: &'a Observed<'a>,
    work: &mut Work<'_>,
) -> Result<FilePlan<'a>, Findings> {
    let original = check_presence(precondition, observed)?;
    let nothing = Original::new(&[], None);
    let base = original.as_ref().unwrap_or(&nothing);
    let text = read_text(base, &work.settings.limits)?;
    let mut course = Course {
        base: &text,
        edit: TextEdit::default(),
        result: None,
        places: Vec::with_capacity(steps.len()),
        normalized: Vec::new(),
        warnings: Vec::new(),
    };
    for (index, step) in steps.iter().enumerate() {
        course.make(step, work).map_err(|failure| match &original {
            Some(original) => failure.change(index).current(original.digest(0)),
            None => failure.change(index),
        })?;
    }
    let warnings = course.warnings;
    let result = Text::new(course.result.as_deref().unwrap_or(base.bytes)).map_err(|error| not_text(&error))?;
    let report = |place: &StepReport| {
        let (above, lines) = lines_of(&result, &place.range);
        ChangeReport {
            tier: place.tier,
            candidates: narrow(place.candidates),
            start_line: narrow(above + 1),
            end_line: narrow(above + lines),
        }
    };
    let changes = course.places.iter().map(report).collect();
    let draft = Draft { action: FileAction::Edit(course.edit), normalized: course.normalized, warnings, changes };
    Ok(finish(observed, original, draft))
}

/// What has come of the steps so far.
struct Course<'t> {
    base: &'t Text<'t>,
    /// All steps so far, as one edit of the base.
    edit: TextEdit,
    /// The text they come to; none yet, if none was changed.
    result: Option<Vec<u8>>,
    /// Where in that text each step left something.
    places: Vec<StepReport>,
    normalized: Vec<Normalization>,
    warnings: Vec<Warning>,
}

/// Where a step left something, and how its place was found.
struct StepReport {
    range: Range<usize>,
    tier: Tier,
    candidates: usize,
}

/// What one step does to the text it meets.
struct Made {
    edit: TextEdit,
    tier: Tier,
    candidates: usize,
    has_other_ends: bool,
    /// Where nothing changes, the place that was found.
    at: Range<usize>,
}

impl Course<'_> {
    fn make(&mut self, step: &ValidStep<'_>, work: &mut Work<'_>) -> Result<(), Failure> {
        let before = self.result.take();
        let text = match &before {
            Some(bytes) => Text::new(bytes).map_err(|error| not_text(&error))?.come_from(self.base),
            None => self.base.clone(),
        };
        let cost = 2 * text.bytes().len() + self.edit.size() + 64 * self.places.len();
        let made = match work.budget.charge(cost) {
            Err(error) => Err(nearest_text::explain(&error, &text, &Needle::text(step.find), work)),
            Ok(()) => match step.place {
                StepPlace::First => self.first(step, &text, work),
                StepPlace::All => all(step, &text, work),
                StepPlace::Block(line) => {
                    let hint = line.and_then(|line| self.now_at(line.get()));
                    block::make(step, hint, &text, work)
                }
            },
        }
        .map_err(|failure| nearest_text::with_new_text(failure, &text, step.replace))
        .map_err(|failure| if before.is_some() { of_result(failure) } else { failure })?;
        refuse_mark(&text, &made.edit)?;
        if made.has_other_ends && self.normalized.is_empty() {
            self.normalized.push(Normalization::LineEndings);
        }
        self.follow(&made);
        if made.edit.start().is_some() {
            self.edit = self.edit.then(&made.edit);
            self.result = Some(made.edit.apply(text.bytes()));
        } else {
            self.result = before;
        }
        Ok(())
    }

    fn first(&mut self, step: &ValidStep<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<Made, Failure> {
        let needle = Needle::text(step.find);
        let found = find::first(text, &needle, work.settings.recovers, &mut work.budget);
        let (place, others) = found.map_err(|error| nearest_text::explain(&error, text, &needle, work))?;
        if !others.is_empty() {
            if work.settings.refuses_several {
                let line = text.lines_above(place.range.start) + 1;
                let has_more = others.len() == find::LISTED;
                let lines = [line].into_iter().chain(others).take(find::LISTED).collect();
                let error = FindError::Ambiguous { tier: place.tier, lines, has_more };
                return Err(nearest_text::explain(&error, text, &needle, work));
            }
            self.warnings.push(several(self.places.len(), &others));
        }
        replace(&[place], step.replace, text, &needle, work)
    }

    /// Where a line of the base is now.
    fn now_at(&self, line: usize) -> Option<usize> {
        let mut cursor = self.base.cursor();
        cursor.seek(line - 1).ok()?;
        Some(self.edit.moved(cursor.at()))
    }

    /// Moves what the steps so far left along with the text, and adds what this one left.
    fn follow(&mut self, made: &Made) {
        for place in &mut self.places {
            place.range = made.edit.moved_range(&place.range);
        }
        let (start, mut end) = match made.edit.start() {
            Some(start) => (start, start),
            None => (made.at.start, made.at.end),
        };
        let (mut kept, mut at) = (0, 0);
        for (range, text) in made.edit.replacements() {
            at += range.start - kept + text.len();
            kept = range.end;
            end = at;
        }
        self.places.push(StepReport { range: start..end, tier: made.tier, candidates: made.candidates });
    }
}

fn all(step: &ValidStep<'_>, text: &Text<'_>, work: &mut Work<'_>) -> Result<Made, Failure> {
    let needle = Needle::text(step.find);
    let found = find::all(text, &needle, work.settings.recovers, &mut work.budget);
    let places = found.map_err(|error| nearest_text::explain(&error, text, &needle, work))?;
    let made = replace(&places, step.replace, text, &needle, work)?;
    Ok(Made { candidates: places.len(), ..made })
}

/// Puts new text in the place of every one of these, which are disjoint and top to bottom.
fn replace(
    places: &[Place],
    new: &str,
    text: &Text<'_>,
    needle: &Needle<'_>,
    work: &mut Work<'_>,
) -> Result<Made, Failure> {
    let growth = (places.len() as u64).saturating_mul(new.len() as u64);
    let (found, limit) = (growth.saturating_add(text.bytes().len() as u64), work.settings.limits.file_bytes);
    if found > limit && growth > 0 {
        let message = format!("a file to be edited has at most {limit} bytes, and this would grow beyond that");
        return Err(Failure::new(Reason::TooLarge, message).detail(Detail::File).hint("make smaller changes"));
    }
    let mut edit = TextEdit::with_capacity(places.len(), places.len() * new.len());
    let mut has_other_ends = false;
    for place in places {
        let fitted = new_text::fit(text, needle, place, new).map_err(|error| {
            let line = text.lines_above(place.range.start) + 1;
            nearest_text::unshiftable(&error, text, line, needle.as_lines().len())
        })?;
        work.take_room(fitted.bytes.len())?;
        has_other_ends |= fitted.has_other_ends;
        edit.begin(fitted.range.start.max(edit.end().unwrap_or(0)));
        edit.insert(&fitted.bytes);
        edit.remove_to(fitted.range.end);
    }
    let first = places.first();
    Ok(Made {
        edit: edit.finished(),
        tier: first.map_or(Tier::Exact, |place| place.tier),
        candidates: first.map_or(0, |place| place.candidates),
        has_other_ends,
        at: first.map_or(0..0, |place| place.range.clone()),
    })
}

/// Says that the lines a failure names are not those of the file.
fn of_result(mut failure: Failure) -> Failure {
    if failure.line.is_some() {
        failure.message.push_str(" (lines are counted in the result of the replacements above)");
    }
    failure
}

fn several(step: usize, others: &[usize]) -> Warning {
    let mut lines: Vec<String> = others.iter().map(ToString::to_string).collect();
    // Several places may be on one line.
    lines.dedup();
    let more = if others.len() < find::LISTED { "" } else { ", ..." };
    let what = match lines.as_slice() {
        [line] if more.is_empty() => format!("line {line} has it"),
        lines => format!("lines {}{more} have it", lines.join(", ")),
    };
    Warning {
        code: "SEVERAL_OCCURRENCES".to_string(),
        message: format!("replacements[{step}] took the first place of its text; {what} too"),
        line: None,
    }
}

/// A text stays one whatever text comes.
fn not_text(error: &crate::text::NotText) -> Failure {
    Failure::new(Reason::NotText, error.to_string()).hint("only text can be edited; leave this file out of the batch")
}
