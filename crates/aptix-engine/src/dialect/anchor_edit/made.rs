//! Whether the lines of an anchor edit already stand at its place (rule 3.7). Lines that are replaced by number say nothing
//! of what they were, so that only those that the new ones hold can be told.

use core::ops::Range;

use aptix_model::report::Tier;
use memchr::memchr_iter;

use super::check::Place;
use crate::already::{self, Copy, Proves};
use crate::text::edit::slice;
use crate::text::find::Budget;
use crate::text::lines::Text;

/// Where the new lines already stand, of which blank ones alone prove nothing.
pub(super) fn copy(place: &Place<'_>, text: &Text<'_>, range: &Range<usize>, new: &[u8]) -> Option<Copy> {
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

/// Where the new lines stand above a place, below it, or on both sides: an anchor that is one of several can be one of
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
