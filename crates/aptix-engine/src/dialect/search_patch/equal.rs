//! Equal changes on exactly as many places: they count as one change to all of them (rule 3.4).

use alloc::collections::BTreeMap;
use alloc::vec::Vec;

use aptix_model::failure::Failure;

use super::replace::existing_copy;
use super::source::new_text;
use crate::already::{self, Several};
use crate::dialect::search_patch::check::{Source, Spot, ValidSearch};
use crate::nearest::old_text;
use crate::planning::work::Work;
use crate::text::find::{self, FindError, Needle, Place};
use crate::text::lines::Text;

/// What makes changes equal: the old text, the new text, and how it is reindented.
type Key<'c> = (&'c str, &'c str, Option<(&'c str, &'c str)>);

/// The equal changes of a patch, and the places that are left for them.
pub(super) struct Equal<'c> {
    counts: BTreeMap<Key<'c>, usize>,
    places: BTreeMap<Key<'c>, Vec<Place>>,
}

impl<'c> Equal<'c> {
    pub(super) fn of(changes: &[ValidSearch<'c>]) -> Self {
        let mut counts = BTreeMap::new();
        if changes.len() > 1 {
            changes.iter().filter_map(key).for_each(|key| *counts.entry(key).or_insert(0) += 1);
            counts.retain(|_, count| *count > 1);
        }
        Self { counts, places: BTreeMap::new() }
    }

    /// The place of a change that has equal ones on exactly as many places.
    ///
    /// # Errors
    /// When the change was made at all of them before, or at some.
    pub(super) fn place(
        &mut self,
        change: &ValidSearch<'c>,
        text: &Text<'_>,
        work: &mut Work<'_>,
    ) -> Result<Option<Place>, Failure> {
        let Some(key) = key(change) else { return Ok(None) };
        let Some(count) = self.counts.get(&key) else { return Ok(None) };
        if let Some(places) = self.places.get_mut(&key) {
            return Ok(places.pop());
        }
        let needle = Needle::text(key.0);
        let new = new_text(change, work)?;
        let found = match find::all(text, &needle, work.settings.recovers, &mut work.budget) {
            Ok(found) if found.len() == *count => found,
            Ok(_) | Err(FindError::NotFound | FindError::Ambiguous { .. }) => return Ok(None),
            Err(error) => return Err(old_text::explain(&error, text, &needle, work)),
        };
        let held = already::several(&found, |place| existing_copy(text, &needle, place, &new, &mut work.budget));
        match held.map_err(|error| old_text::explain(&error, text, &needle, work))? {
            Several::All(copy) => return Err(already::applied(text, &copy)),
            Several::Some(made, open) => return Err(already::partly(text, &made, &open)),
            Several::None => {}
        }
        let places = self.places.entry(key).or_default();
        places.extend(found.into_iter().rev());
        Ok(places.pop())
    }
}

fn key<'c>(change: &ValidSearch<'c>) -> Option<Key<'c>> {
    let reindent = change.reindent.map(|reindent| (reindent.strip.as_str(), reindent.add.as_str()));
    match (change.spot, change.source, change.keep) {
        (Spot::Replace(old), Source::Text(new), None) => Some((old, new, reindent)),
        _ => None,
    }
}
