//! What a suite is given, and how it ends.

use crate::random::Random;

/// Arguments of every suite.
pub(crate) struct Job {
    /// Whether every case is run.
    pub(crate) long: bool,
    /// How often processes are killed.
    pub(crate) cycles: usize,
    /// Decides about everything random.
    pub(crate) random: Random,
}

/// How a suite ended, if nothing was found.
pub(crate) enum Ending {
    /// Everything held; contains what was done.
    Held(String),
    /// It could not be run; contains the reason.
    Skipped(String),
}
