//! How much searching a batch has left, and why a search has no answer.

use alloc::vec::Vec;

use aptix_model::report::Tier;

/// What comparing a line costs beside its bytes, in bytes searched through.
const LINE_COST: usize = 1024;
/// Failures of a batch for which a whole file is searched for what was meant.
const SEARCHES: usize = 8;

/// Why a needle has no place.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum FindError {
    /// It occurs nowhere, at no tier.
    NotFound,
    /// It occurs at several places of the same tier.
    Ambiguous {
        tier: Tier,
        /// The first places' first lines.
        lines: Vec<usize>,
        /// Whether there are more places than listed.
        has_more: bool,
    },
    /// Finding out would take too long.
    BudgetExceeded,
}

/// How much work the searches of a batch have left, in bytes searched through.
#[derive(Debug)]
pub(crate) struct Budget(u64);

impl Budget {
    /// What a batch whose files have so many bytes gets.
    pub(crate) const fn new(bytes: usize) -> Self {
        Self((4_u64 << 30).saturating_add((bytes as u64).saturating_mul(64)))
    }

    pub(crate) const fn spent() -> Self {
        Self(0)
    }

    pub(crate) fn charge(&mut self, cost: usize) -> Result<(), FindError> {
        self.0 = self.0.checked_sub(cost as u64).ok_or(FindError::BudgetExceeded)?;
        Ok(())
    }

    /// Takes the cost of looking at a line.
    pub(crate) fn charge_line(&mut self, line: &[u8]) -> Result<(), FindError> {
        self.charge(LINE_COST + line.len())
    }
}

/// How many searches of whole files a batch has left.
#[derive(Debug)]
pub(crate) struct Searches(usize);

impl Searches {
    pub(crate) const fn new() -> Self {
        Self(SEARCHES)
    }

    pub(crate) const fn none() -> Self {
        Self(0)
    }

    /// Takes one, if there is one left.
    pub(crate) fn take(&mut self) -> Option<()> {
        self.0 = self.0.checked_sub(1)?;
        Some(())
    }
}
