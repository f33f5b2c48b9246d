//! A class of differences, as the page tells it.

use crate::proof::Proof;
use crate::seen::{By, Seen};

/// A difference that is meant.
pub(crate) struct Class {
    /// As the page calls it.
    pub(crate) name: &'static str,
    pub(crate) by: By,
    /// How far git has to agree once the diff is written anew. A difference that nothing proves is in no class.
    pub(crate) needs: Proof,
    /// Why, as the page says it.
    pub(crate) reason: &'static str,
    /// Whether the cause is there.
    pub(crate) is_it: fn(&Seen<'_>) -> bool,
}

impl Class {
    /// Whether a difference belongs to the class.
    pub(crate) fn has(&self, seen: &Seen<'_>) -> bool {
        seen.by() == Some(self.by) && seen.proof >= self.needs && (self.is_it)(seen)
    }
}
