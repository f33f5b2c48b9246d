//! The old and the new text of a step as they are searched for.

use super::check::{StepPlace, ValidStep};
use crate::text::find::Needle;

/// The old text of a step as it is searched for.
pub(super) fn needle<'s>(step: &ValidStep<'s>) -> Needle<'s> {
    match step.place {
        StepPlace::First | StepPlace::All => Needle::text(step.find),
        StepPlace::Block(_) => Needle::lines(lines(step.find)),
    }
}

/// The new text of a step as it is searched for.
pub(super) fn new_side<'s>(step: &ValidStep<'s>) -> Needle<'s> {
    match step.place {
        StepPlace::First | StepPlace::All => Needle::text(step.replace),
        StepPlace::Block(_) => Needle::lines(lines(step.replace)),
    }
}

/// The lines of a block, which end as the file's do, whatever they end with here.
pub(super) fn lines(text: &str) -> impl Iterator<Item = &str> {
    text.split_terminator('\n').map(|line| line.strip_suffix('\r').unwrap_or(line))
}
