//! Equal steps on exactly as many places: they count as one to all of them, and each has a place of its own (rule 3.4).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;
use core::ops::Range;

use super::check::{StepPlace, ValidStep};
use crate::text::find::Place;

/// The steps that have equal ones, and the places that are kept for them.
#[derive(Default)]
pub(super) struct Equal<'s> {
    groups: BTreeMap<(&'s str, &'s str), Vec<usize>>,
    /// The groups whose places were looked for.
    seen: BTreeSet<usize>,
    places: BTreeMap<usize, Range<usize>>,
}

impl<'s> Equal<'s> {
    pub(super) fn of(steps: &[ValidStep<'s>]) -> Self {
        let mut groups: BTreeMap<_, Vec<usize>> = BTreeMap::new();
        if steps.len() > 1 {
            let single =
                steps.iter().enumerate().filter(|(_, step)| step.place != StepPlace::All && !step.find.is_empty());
            single.for_each(|(index, step)| groups.entry((step.find, step.replace)).or_default().push(index));
            groups.retain(|_, steps| steps.len() > 1);
        }
        Self { groups, ..Self::default() }
    }

    /// How many steps are equal to the first of them, the first time that is asked.
    pub(super) fn count(&mut self, index: usize, step: &ValidStep<'s>) -> Option<usize> {
        let group = self.groups.get(&(step.find, step.replace)).filter(|group| group.contains(&index))?;
        let first = group.first()?;
        self.seen.insert(*first).then_some(group.len())
    }

    /// Keeps a place for each of the steps, top to bottom.
    pub(super) fn keep(&mut self, step: &ValidStep<'s>, places: &[Place]) {
        let group = self.groups.get(&(step.find, step.replace)).map(Vec::as_slice).unwrap_or_default();
        self.places.extend(group.iter().copied().zip(places.iter().map(|place| place.range.clone())));
    }

    /// Where the place of a step begins.
    pub(super) fn at(&self, index: usize) -> Option<usize> {
        self.places.get(&index).map(|range| range.start)
    }

    /// Every place that is kept, to be moved along with the text.
    pub(super) fn reserved(&mut self) -> impl Iterator<Item = &mut Range<usize>> {
        self.places.values_mut()
    }

    /// The steps above one that are equal to it.
    pub(super) fn above(&self, index: usize, step: &ValidStep<'s>) -> impl Iterator<Item = usize> {
        let group = self.groups.get(&(step.find, step.replace)).map(Vec::as_slice).unwrap_or_default();
        group.iter().copied().take_while(move |other| *other < index)
    }
}
