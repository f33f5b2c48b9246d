//! Pseudo-random numbers, reproducible from their seed.

use std::collections::BTreeSet;
use std::hash::{BuildHasher, RandomState};

/// A seed that is another one each time.
pub(crate) fn seed() -> u64 {
    RandomState::new().hash_one(()) % 1_000_000
}

/// The numbers that follow from a seed (SplitMix64).
#[derive(Debug)]
pub(crate) struct Random(u64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a bound that is not 0.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        usize::try_from((mixed ^ (mixed >> 31)) % bound as u64).unwrap_or_default()
    }

    /// All numbers below a bound, or so many of them.
    pub(crate) fn sample(&mut self, count: usize, bound: usize) -> BTreeSet<usize> {
        if bound <= count {
            return (0..bound).collect();
        }
        let mut numbers = BTreeSet::new();
        while numbers.len() < count {
            numbers.insert(self.below(bound));
        }
        numbers
    }
}
