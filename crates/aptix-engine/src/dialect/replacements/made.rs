//! Whether a step was made before: looked at in the text that it meets, less what the steps above it added.

use aptix_model::failure::Failure;
use aptix_model::report::Tier;

use super::check::ValidStep;
use super::course::Course;
use crate::already::{self, Copy, Several};
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::edit::slice;
use crate::text::find::{self, Budget, FindError, Needle, Place};
use crate::text::lines::Text;
use crate::text::new_text;

impl<'s> Course<'_, 's> {
    /// Why a step without a place cannot be made.
    pub(super) fn unplaced(
        &self,
        error: &FindError,
        index: usize,
        step: &ValidStep<'s>,
        needle: &Needle<'_>,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Failure {
        let new = step.new_side();
        let found = match error {
            FindError::NotFound => already::between(text, needle, &new, &mut work.budget),
            FindError::Ambiguous { has_more: false, tier: Tier::Exact | Tier::Eol, .. } => {
                let region = text.start()..text.bytes().len();
                already::everywhere(text, needle, region, &mut work.budget, |place, budget| {
                    self.standing(index, step, place, needle, text, budget)
                })
            }
            FindError::Ambiguous { .. } | FindError::BudgetExceeded => Ok(None),
        };
        match found {
            Ok(Some(copy)) => already::applied(text, &copy),
            Ok(None) => old_text::explain(error, text, needle, work),
            Err(error) => old_text::explain(&error, text, needle, work),
        }
    }

    /// Keeps a place for each of equal steps, if there are exactly as many places.
    pub(super) fn reserve_equal(
        &mut self,
        index: usize,
        step: &ValidStep<'s>,
        needle: &Needle<'_>,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let Some(count) = self.equal.count(index, step) else { return Ok(()) };
        match find::all(text, needle, work.settings.recovers, &mut work.budget) {
            Ok(places) if places.len() == count => {
                self.refuse_made_at_all(index, step, &places, needle, text, work)?;
                self.equal.keep(step, &places);
                Ok(())
            }
            Ok(_) | Err(FindError::NotFound | FindError::Ambiguous { .. }) => Ok(()),
            Err(error) => Err(old_text::explain(&error, text, needle, work)),
        }
    }

    /// Refuses a step whose new side stands around its place.
    pub(super) fn refuse_made(
        &self,
        index: usize,
        step: &ValidStep<'s>,
        place: &Place,
        needle: &Needle<'_>,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let copy = self.standing(index, step, place, needle, text, &mut work.budget);
        let copy = copy.and_then(|copy| match copy {
            Some(copy) => Ok(Some(copy)),
            None => self.at_other_white_space(step, place, needle, text, &mut work.budget),
        });
        match copy {
            Ok(None) => Ok(()),
            Ok(Some(copy)) => Err(already::applied(text, &copy)),
            Err(error) => Err(old_text::explain(&error, text, needle, work)),
        }
    }

    fn at_other_white_space(
        &self,
        step: &ValidStep<'s>,
        place: &Place,
        needle: &Needle<'_>,
        text: &Text<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Copy>, FindError> {
        if already::is_as_written(place) {
            return Ok(None);
        }
        let Some(whole) = whole_side(text, needle, place, step.replace) else { return Ok(None) };
        let copy = already::at_other_white_space(text, place, &whole, &step.new_side(), budget)?;
        Ok(copy.filter(|copy| !self.wrote(&copy.range)))
    }

    /// Refuses a step at several places if its new side stands around all of them, or around some.
    pub(super) fn refuse_made_at_all(
        &self,
        index: usize,
        step: &ValidStep<'s>,
        places: &[Place],
        needle: &Needle<'_>,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let held = already::several(places, |place| self.standing(index, step, place, needle, text, &mut work.budget));
        match held.map_err(|error| old_text::explain(&error, text, needle, work))? {
            Several::All(copy) => Err(already::applied(text, &copy)),
            Several::Some(made, open) => Err(already::partly(text, &made, &open)),
            Several::None => match places.first() {
                Some(place) if !already::is_as_written(place) => {
                    self.refuse_made(index, step, place, needle, text, work)
                }
                _ => Ok(()),
            },
        }
    }

    /// Refuses the first place of an old text if the new one stands above it: the change may have been made there. Lines
    /// that stand at one place are taken for unique before as well; whether they were is asked the first time.
    pub(super) fn refuse_next(
        &self,
        step: &ValidStep<'s>,
        place: &Place,
        is_only: bool,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Result<(), Failure> {
        let (old, new) = (Needle::text(step.find), Needle::text(step.replace));
        let is_told = step.replace.bytes().any(|byte| byte.is_ascii_alphanumeric() || !byte.is_ascii());
        let are_lines = is_only && old.as_lines().len() > 1;
        if are_lines || !is_told || place.tier > Tier::Eol || already::adds_nothing(old.as_lines(), new.as_lines()) {
            return Ok(());
        }
        let region = text.start()..place.range.start;
        let copies = find::at_most(text, &new, region, find::LISTED, &mut work.budget);
        let copies = copies.map_err(|error| old_text::explain(&error, text, &new, work))?;
        let is_like = |copy: &&Place| already::is_bounded_alike(text, &copy.range, &place.range);
        match copies.iter().filter(is_like).find(|copy| !self.wrote(&copy.range)) {
            Some(copy) => Err(already::next_place(text, &copy.range, place.range.start)),
            None => Ok(()),
        }
    }

    /// Where the new side of a step stands around a place, if no step above that is another one wrote it there.
    pub(super) fn standing(
        &self,
        index: usize,
        step: &ValidStep<'s>,
        place: &Place,
        needle: &Needle<'_>,
        text: &Text<'_>,
        budget: &mut Budget,
    ) -> Result<Option<Copy>, FindError> {
        let Some(whole) = whole_side(text, needle, place, step.replace) else { return Ok(None) };
        let copy = already::around(text, &place.range, &whole, place.tier, budget)?;
        let is_there = |copy: &Copy| {
            let above = copy.range.start..place.range.start;
            let below = place.range.end..copy.range.end;
            self.is_of_equal(index, step, &copy.range) || !(self.wrote(&above) || self.wrote(&below))
        };
        Ok(copy.filter(is_there))
    }
}

/// The whole new side at a place.
fn whole_side(text: &Text<'_>, needle: &Needle<'_>, place: &Place, new: &str) -> Option<alloc::vec::Vec<u8>> {
    let fitted = new_text::fit(text, needle, place, new).ok()?;
    already::whole_side(text, &place.range, &fitted)
}

/// Whether a change would be found around its place once it is made.
pub(super) fn is_found_again(text: &Text<'_>, needle: &Needle<'_>, place: &Place, new: &str) -> bool {
    place.tier <= Tier::Eol
        && whole_side(text, needle, place, new).is_some_and(|whole| {
            slice(text.bytes(), place.range.clone()) != whole
                && already::is_found_again(text, &place.range, &whole, needle.is_lines())
        })
}
