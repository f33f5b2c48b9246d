//! A copy of the whole new side of a change in the file, and what it proves.

use core::ops::Range;

/// Where the whole new side of a change already occurs.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Copy {
    pub(crate) range: Range<usize>,
    pub(crate) proves: Proves,
}

/// What a copy of the new side proves.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Proves {
    /// The change was made.
    Made,
    /// Little: what the change adds is blank.
    Blank,
    /// Little: the old side occurs at this offset with other white space, and the copy is not around it.
    Elsewhere(usize),
}

impl Copy {
    /// A copy that proves that the change was made.
    pub(crate) const fn made(range: Range<usize>) -> Self {
        Self { range, proves: Proves::Made }
    }

    /// A copy that proves little where everything that it adds is blank.
    pub(super) const fn unless_blank(range: Range<usize>, is_blank: bool) -> Self {
        Self { range, proves: if is_blank { Proves::Blank } else { Proves::Made } }
    }
}
