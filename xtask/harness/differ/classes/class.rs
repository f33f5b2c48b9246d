//! One class of differences.

use crate::seen::Seen;

/// A difference that is meant.
pub(crate) struct Class {
    /// As the page calls it.
    pub(crate) name: &'static str,
    /// Why, as the page says it.
    pub(super) reason: &'static str,
    /// Whether the cause is there.
    pub(super) is_it: fn(&Seen<'_>) -> bool,
}
