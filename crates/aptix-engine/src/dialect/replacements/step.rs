//! One step after the other, each made in the result of those above it.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use aptix_model::report::{Normalization, Tier, Warning};

use super::block;
use super::check::{StepPlace, ValidStep};
use super::equal::Equal;
use super::sequence::{Attempt, First, Made, Sequence};
use crate::findings::warning;
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::edit::TextEdit;
use crate::text::find::{self, FindError, Place};
use crate::text::lines::Text;
use crate::text::new_text;
use crate::text::outcome::refuse_mark;

/// Makes the steps one after the other.
///
/// # Errors
/// The first step that cannot be made, and why.
pub(super) fn run<'t, 's>(
    steps: &[ValidStep<'s>],
    base: &'t Text<'t>,
    work: &mut Work<'_>,
) -> Result<Sequence<'t, 's>, (usize, Failure)> {
    let mut sequence = Sequence {
        base,
        edit: TextEdit::default(),
        result: None,
        places: Vec::with_capacity(steps.len()),
        equal: Equal::of(steps),
        is_choice: false,
        first: None,
        normalized: Vec::new(),
        warnings: Vec::new(),
    };
    for (index, step) in steps.iter().enumerate() {
        sequence.make(index, step, work).map_err(|failure| (index, failure))?;
    }
    Ok(sequence)
}

impl<'s> Sequence<'_, 's> {
    fn make(&mut self, index: usize, step: &ValidStep<'s>, work: &mut Work<'_>) -> Result<(), Failure> {
        let before = self.result.take();
        let text = match &before {
            Some(bytes) => Text::new(bytes).map_err(|error| not_text(&error))?.come_from(self.base),
            None => self.base.clone(),
        };
        let cost = 2 * text.bytes().len() + self.edit.size() + 64 * self.places.len();
        let attempt = Attempt { index, step, needle: step.old_side(), text: &text };
        let charged = work.budget.charge(cost).map_err(|error| attempt.explain(&error, work));
        let made = charged
            .and_then(|()| self.place(&attempt, work))
            .map_err(|failure| old_text::with_new_text(failure, &text, step.replace))
            .map_err(|failure| if before.is_some() { of_result(failure) } else { failure })?;
        refuse_mark(&text, &made.edit)?;
        let flags = [
            (made.has_other_ends, Normalization::LineEndings),
            (made.joins_last_line, Normalization::FileEofNewlineAdded),
        ];
        for (_, flag) in flags.into_iter().filter(|(is_set, _)| *is_set) {
            if !self.normalized.contains(&flag) {
                self.normalized.push(flag);
            }
        }
        self.follow(&made);
        if made.edit.start().is_some() {
            self.edit = self.edit.then(&made.edit);
            self.result = Some(made.edit.apply(text.bytes()));
        } else {
            self.result = before;
        }
        if index == 0 {
            self.first = First::of(&made, self.places.last(), self.result.as_deref(), step);
        }
        Ok(())
    }

    /// Finds the place of a step, and what it does there.
    fn place(&mut self, attempt: &Attempt<'_, 's>, work: &mut Work<'_>) -> Result<Made, Failure> {
        self.reserve_equal(attempt, work)?;
        let reserved = self.equal.at(attempt.index);
        match attempt.step.place {
            // Its own place among those of equal steps.
            StepPlace::First if reserved.is_some() => replace(&[self.only(attempt, reserved, work)?], attempt, work),
            StepPlace::First => self.first(attempt, work),
            StepPlace::All => self.all(attempt, work),
            StepPlace::Block(line) => {
                let hint = line.and_then(|line| self.now_at(line.get()));
                block::make(self, attempt, (reserved, hint), work)
            }
        }
    }

    fn all(&self, attempt: &Attempt<'_, 's>, work: &mut Work<'_>) -> Result<Made, Failure> {
        let found = find::all(attempt.text, &attempt.needle, work.settings.recovers, &mut work.budget);
        let places = found.map_err(|error| self.unplaced(&error, attempt, work))?;
        self.refuse_made_at_all(attempt, &places, work)?;
        let made = replace(&places, attempt, work)?;
        Ok(Made { candidates: places.len(), ..made })
    }

    fn first(&mut self, attempt: &Attempt<'_, 's>, work: &mut Work<'_>) -> Result<Made, Failure> {
        let Attempt { needle, text, .. } = attempt;
        let found = find::first(text, needle, work.settings.recovers, &mut work.budget);
        let (place, others) = found.map_err(|error| self.unplaced(&error, attempt, work))?;
        self.refuse_made(attempt, &place, work)?;
        self.refuse_next(attempt, &place, others.is_empty(), work)?;
        if !others.is_empty() {
            self.is_choice = true;
            if work.settings.refuses_several {
                let line = text.lines_above(place.range.start) + 1;
                let has_more = others.len() == find::LISTED;
                let lines = [line].into_iter().chain(others).take(find::LISTED).collect();
                return Err(attempt.explain(&FindError::Ambiguous { tier: place.tier, lines, has_more }, work));
            }
            self.warnings.push(several(self.places.len(), &others));
        }
        replace(&[place], attempt, work)
    }
}

/// Puts new text in the place of every one of these, which are disjoint and top to bottom.
fn replace(places: &[Place], attempt: &Attempt<'_, '_>, work: &mut Work<'_>) -> Result<Made, Failure> {
    let Attempt { needle, text, .. } = attempt;
    let new = attempt.step.replace;
    work.check_growth(text.bytes().len(), (places.len() as u64).saturating_mul(new.len() as u64))?;
    let mut edit = TextEdit::with_capacity(places.len(), places.len() * new.len());
    let mut has_other_ends = false;
    for place in places {
        let fitted = new_text::fit(text, needle, place, new).map_err(|error| {
            let line = text.lines_above(place.range.start) + 1;
            old_text::unshiftable(&error, text, line, needle.as_lines().len())
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
        tier: places.iter().map(|place| place.tier).max().unwrap_or(Tier::Exact),
        candidates: first.map_or(0, |place| place.candidates),
        has_other_ends,
        joins_last_line: false,
        at: first.map_or(0..0, |place| place.range.clone()),
        is_found_again: first.is_some_and(|place| attempt.is_found_again(place)),
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
    warning("SEVERAL_OCCURRENCES", format!("replacements[{step}] took the first place of its text; {what} too"))
}

/// A text stays one with any new text.
pub(super) fn not_text(error: &crate::text::lines::NotText) -> Failure {
    Failure::new(Reason::NotText, error.to_string()).hint("only text can be edited; leave this file out of the batch")
}
