//! The result of the steps so far.

use alloc::vec::Vec;
use core::ops::Range;

use aptix_model::failure::Failure;
use aptix_model::report::{Normalization, Tier, Warning};

use super::check::{StepPlace, ValidStep};
use super::equal::Equal;
use crate::already;
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::edit::{TextEdit, slice};
use crate::text::find::{FindError, Needle};
use crate::text::lines::Text;

/// The result of the steps so far.
pub(super) struct Sequence<'t, 's> {
    pub(super) base: &'t Text<'t>,
    /// All steps so far, as one edit of the base.
    pub(super) edit: TextEdit,
    /// The text after them; none yet, if none was changed.
    pub(super) result: Option<Vec<u8>>,
    /// Where in that text each step left something.
    pub(super) places: Vec<StepReport>,
    /// Equal steps on exactly as many places.
    pub(super) equal: Equal<'s>,
    /// Whether a place was taken that was one of several.
    pub(super) is_choice: bool,
    /// What the first step left, and whether it would be found there.
    pub(super) first: Option<First>,
    pub(super) normalized: Vec<Normalization>,
    pub(super) warnings: Vec<Warning>,
}

/// Where a step left something, and how its place was found.
pub(super) struct StepReport {
    pub(super) range: Range<usize>,
    pub(super) tier: Tier,
    pub(super) candidates: usize,
}

/// What one step does to the text it meets.
pub(super) struct Made {
    pub(super) edit: TextEdit,
    pub(super) tier: Tier,
    pub(super) candidates: usize,
    pub(super) has_other_ends: bool,
    pub(super) joins_last_line: bool,
    /// Where nothing changes, the place that was found.
    pub(super) at: Range<usize>,
    /// Whether the new text holds the old one, so that it is found around its place.
    pub(super) is_found_again: bool,
}

/// One step, and the text that it meets.
pub(super) struct Attempt<'t, 's> {
    pub(super) index: usize,
    pub(super) step: &'t ValidStep<'s>,
    /// The old side of the step.
    pub(super) needle: Needle<'s>,
    pub(super) text: &'t Text<'t>,
}

impl Attempt<'_, '_> {
    /// All of the text.
    pub(super) fn region(&self) -> Range<usize> {
        self.text.start()..self.text.bytes().len()
    }

    pub(super) fn explain(&self, error: &FindError, work: &mut Work<'_>) -> Failure {
        old_text::explain(error, self.text, &self.needle, work)
    }
}

impl<'s> Sequence<'_, 's> {
    /// Where a line of the base is now.
    pub(super) fn now_at(&self, line: usize) -> Option<usize> {
        let mut cursor = self.base.cursor();
        cursor.seek(line - 1).ok()?;
        Some(self.edit.moved(cursor.at()))
    }

    /// Moves what the steps so far left along with the text, and adds what this one left.
    pub(super) fn follow(&mut self, made: &Made) {
        for range in self.places.iter_mut().map(|place| &mut place.range).chain(self.equal.reserved()) {
            *range = made.edit.moved_range(range);
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

    /// Whether an equal step above left something in a range.
    pub(super) fn is_of_equal(&self, attempt: &Attempt<'_, 's>, range: &Range<usize>) -> bool {
        let mut equal = self.equal.above(attempt.index, attempt.step).filter_map(|other| self.places.get(other));
        self.equal.at(attempt.index).is_none() && equal.any(|place| meets(&place.range, range))
    }

    /// Whether the steps so far wrote something in a range of their result.
    pub(super) fn wrote(&self, range: &Range<usize>) -> bool {
        let (mut kept, mut at) = (0, 0);
        self.edit.replacements().any(|(cut, text)| {
            at += cut.start - kept;
            let written = at..at + text.len();
            (kept, at) = (cut.end, written.end);
            meets(&written, range)
        })
    }
}

const fn meets(a: &Range<usize>, b: &Range<usize>) -> bool {
    a.start < b.end && b.start < a.end
}

/// What the first step left.
pub(super) struct First {
    pub(super) left: Vec<u8>,
    pub(super) is_found_again: bool,
    /// Whether a missing old text proves that the step was made.
    pub(super) shows: bool,
}

impl First {
    /// What a step left in the text that it came to; `None` if that is too much to keep.
    pub(super) fn of(
        made: &Made,
        place: Option<&StepReport>,
        result: Option<&[u8]>,
        step: &ValidStep<'_>,
    ) -> Option<Self> {
        let (place, result) = (place?, result?);
        if step.find.is_empty() || step.place == StepPlace::All && made.candidates > 1 {
            return None;
        }
        let (old, new) = (step.old_side(), Needle::text(step.replace));
        let shows = made.tier <= Tier::Eol && !already::adds_nothing(old.as_lines(), new.as_lines());
        let left = slice(result, place.range.clone()).to_vec();
        Some(Self { left, is_found_again: made.is_found_again, shows })
    }
}
