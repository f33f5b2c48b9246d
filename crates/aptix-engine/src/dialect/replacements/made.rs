//! The one place of a step, and whether the step was made before: looked at in the text that it meets, less what the steps
//! above it added.

use alloc::vec::Vec;

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::sequence::{Attempt, Sequence};
use crate::already::{self, Copy, Several};
use crate::planning::work::Work;
use crate::text::edit::slice;
use crate::text::find::{self, Budget, FindError, Needle, Place};
use crate::text::new_text;

impl<'s> Sequence<'_, 's> {
    /// The one place of a step, where it was not made before; of several, the one that begins at `chosen` will do.
    pub(super) fn only(
        &self,
        attempt: &Attempt<'_, 's>,
        chosen: Option<usize>,
        work: &mut Work<'_>,
    ) -> Result<Place, Failure> {
        let Attempt { needle, text, .. } = attempt;
        let found = find::only(text, needle, attempt.region(), chosen, work.settings.recovers, &mut work.budget);
        let place = found.map_err(|error| self.unplaced(&error, attempt, work))?;
        self.refuse_made(attempt, &place, work)?;
        Ok(place)
    }

    /// Why a step without a place cannot be made.
    pub(super) fn unplaced(&self, error: &FindError, attempt: &Attempt<'_, 's>, work: &mut Work<'_>) -> Failure {
        let Attempt { needle, text, .. } = attempt;
        let found = match error {
            FindError::NotFound => already::between(text, needle, &attempt.step.new_side(), &mut work.budget),
            FindError::Ambiguous { has_more: false, tier: Tier::Exact | Tier::Eol, .. } => {
                already::everywhere(text, needle, attempt.region(), &mut work.budget, |place, budget| {
                    self.existing_copy(attempt, place, budget)
                })
            }
            FindError::Ambiguous { .. } | FindError::BudgetExceeded => Ok(None),
        };
        match found {
            Ok(Some(copy)) => already::applied(text, &copy),
            Ok(None) => attempt.explain(error, work),
            Err(error) => attempt.explain(&error, work),
        }
    }

    /// Keeps a place for each of equal steps, if there are exactly as many places.
    pub(super) fn reserve_equal(&mut self, attempt: &Attempt<'_, 's>, work: &mut Work<'_>) -> Result<(), Failure> {
        let Some(count) = self.equal.count(attempt.index, attempt.step) else { return Ok(()) };
        match find::all(attempt.text, &attempt.needle, work.settings.recovers, &mut work.budget) {
            Ok(places) if places.len() == count => {
                self.refuse_made_at_all(attempt, &places, work)?;
                self.equal.keep(attempt.step, &places);
                Ok(())
            }
            Ok(_) | Err(FindError::NotFound | FindError::Ambiguous { .. }) => Ok(()),
            Err(error) => Err(attempt.explain(&error, work)),
        }
    }

    /// Refuses a step whose new side occurs around its place.
    pub(super) fn refuse_made(
        &self,
        attempt: &Attempt<'_, 's>,
        place: &Place,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let copy = self.existing_copy(attempt, place, &mut work.budget);
        let copy = copy.and_then(|copy| match copy {
            Some(copy) => Ok(Some(copy)),
            None => self.at_other_white_space(attempt, place, &mut work.budget),
        });
        match copy {
            Ok(None) => Ok(()),
            Ok(Some(copy)) => Err(already::applied(attempt.text, &copy)),
            Err(error) => Err(attempt.explain(&error, work)),
        }
    }

    fn at_other_white_space(
        &self,
        attempt: &Attempt<'_, 's>,
        place: &Place,
        budget: &mut Budget,
    ) -> Result<Option<Copy>, FindError> {
        if already::is_as_written(place) {
            return Ok(None);
        }
        let Some(whole) = attempt.whole_side(place) else { return Ok(None) };
        let copy = already::at_other_white_space(attempt.text, place, &whole, &attempt.step.new_side(), budget)?;
        Ok(copy.filter(|copy| !self.wrote(&copy.range)))
    }

    /// Refuses a step at several places if its new side occurs around all of them, or around some.
    pub(super) fn refuse_made_at_all(
        &self,
        attempt: &Attempt<'_, 's>,
        places: &[Place],
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let held = already::several(places, |place| self.existing_copy(attempt, place, &mut work.budget));
        match held.map_err(|error| attempt.explain(&error, work))? {
            Several::All(copy) => Err(already::applied(attempt.text, &copy)),
            Several::Some(made, open) => Err(already::partly(attempt.text, &made, &open)),
            Several::None => match places.first() {
                Some(place) if !already::is_as_written(place) => self.refuse_made(attempt, place, work),
                _ => Ok(()),
            },
        }
    }

    /// Refuses the first place of an old text if the new one occurs above it: the change may have been made there. Lines
    /// that occur at one place are assumed to have been unique before; whether they were is asked the first time.
    pub(super) fn refuse_next(
        &self,
        attempt: &Attempt<'_, 's>,
        place: &Place,
        is_only: bool,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let Attempt { needle: old, text, step, .. } = attempt;
        let new = Needle::text(step.replace);
        let is_word = step.replace.bytes().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        let are_lines = is_only && old.as_lines().len() > 1;
        if are_lines || !is_word || place.tier > Tier::Eol || already::adds_nothing(old.as_lines(), new.as_lines()) {
            return Ok(());
        }
        let region = text.start()..place.range.start;
        let copies = find::at_most(text, &new, region, find::LISTED, &mut work.budget);
        let copies = copies.map_err(|error| attempt.explain(&error, work))?;
        let is_like = |copy: &&Place| already::is_bounded_alike(text, &copy.range, &place.range);
        match copies.iter().filter(is_like).find(|copy| !self.wrote(&copy.range)) {
            Some(copy) => Err(already::next_place(text, &copy.range, place.range.start)),
            None => Ok(()),
        }
    }

    /// Where the new side of a step occurs around a place, if no step above that is another one wrote it there.
    fn existing_copy(
        &self,
        attempt: &Attempt<'_, 's>,
        place: &Place,
        budget: &mut Budget,
    ) -> Result<Option<Copy>, FindError> {
        let Some(whole) = attempt.whole_side(place) else { return Ok(None) };
        let copy = already::around(attempt.text, &place.range, &whole, place.tier, budget)?;
        let is_there = |copy: &Copy| {
            let above = copy.range.start..place.range.start;
            let below = place.range.end..copy.range.end;
            self.is_of_equal(attempt, &copy.range) || !(self.wrote(&above) || self.wrote(&below))
        };
        Ok(copy.filter(is_there))
    }
}

impl Attempt<'_, '_> {
    /// The whole new side at a place.
    fn whole_side(&self, place: &Place) -> Option<Vec<u8>> {
        let fitted = new_text::fit(self.text, &self.needle, place, self.step.replace).ok()?;
        already::whole_side(self.text, &place.range, &fitted)
    }

    /// Whether the step would be found around its place once it is made.
    pub(super) fn is_found_again(&self, place: &Place) -> bool {
        place.tier <= Tier::Eol
            && self.whole_side(place).is_some_and(|whole| {
                slice(self.text.bytes(), place.range.clone()) != whole
                    && already::is_found_again(self.text, &place.range, &whole, self.needle.is_lines())
            })
    }
}
