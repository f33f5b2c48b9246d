//! A place of old text: where it is, how loosely it was compared, and how its indentation differs.

use core::ops::Range;

use aptix_model::report::Tier;

use crate::text::find::shift::Shift;

/// Where a needle stands: the match certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Place {
    /// The bytes; of whole lines, with the terminator of the last one, if it has any.
    pub(crate) range: Range<usize>,
    /// How loosely it had to be compared.
    pub(crate) tier: Tier,
    /// How many places came into question at that tier.
    pub(crate) candidates: usize,
    /// How the file's indentation differs; the place then begins where a line does.
    pub(crate) shift: Shift,
    /// How many blank lines of the needle's beginning and end do not belong to it.
    pub(crate) dropped: (usize, usize),
    /// Whether the file ends where the needle has a last terminator.
    pub(crate) is_open: bool,
}

impl Place {
    /// A place that nothing sets apart from what is written but its tier.
    pub(crate) const fn plain(range: Range<usize>, tier: Tier) -> Self {
        Self { range, tier, candidates: 1, shift: Shift::None, dropped: (0, 0), is_open: false }
    }
}
