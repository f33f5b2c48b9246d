//! A plan: what a prepared batch would do to each file, as it was shown before it was applied (WS-MOD 2.1).

use alloc::vec::Vec;

use crate::preview::EditEvidence;
use crate::report::Report;

/// What a prepared batch would do. Applying the batch does exactly this, or nothing.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Plan {
    /// The report that the batch would have had. Its digests before and after bind the batch; its outcome is APPLIED.
    pub report: Report,
    /// The places that change in each file, in the batch's order, each list top to bottom. A list is empty where the file does
    /// not change at places (it is created, deleted, renamed or written whole), where it is withheld, where a place cannot be
    /// found again by its text, and where the places are larger than [`PLACES_BYTES`](crate::limits::PLACES_BYTES).
    pub places: Vec<Vec<Place>>,
    /// What the author of each file's edit is shown of its place, in the batch's order; `None` for an edit that is not an anchor
    /// edit, and where the file is withheld. Nothing is applied by it.
    pub evidence: Vec<Option<EditEvidence>>,
}

/// What came of preparing a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Planned {
    /// The plan.
    Plan(Plan),
    /// The report that says why there is none; its outcome is not APPLIED.
    Refused(Report),
}

/// Whole lines of a file that a plan replaces, with as many of the lines around them as single the place out in the file.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Place {
    /// Number of the first line of `old`, from 1; for lines that are only added, of the line below them.
    pub start_line: u32,
    /// Lines above, unchanged.
    pub above: Vec<u8>,
    /// The lines that go; empty where lines are only added.
    pub old: Vec<u8>,
    /// The lines that come.
    pub new: Vec<u8>,
    /// Lines below, unchanged.
    pub below: Vec<u8>,
}

impl Place {
    /// Bytes of its texts.
    #[must_use]
    pub fn size(&self) -> usize {
        self.above.len() + self.old.len() + self.new.len() + self.below.len()
    }
}
