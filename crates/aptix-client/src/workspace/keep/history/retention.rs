//! How much of the history is kept.

use std::time::Duration;

/// How much of the past is kept for undoing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Retention {
    /// For how long.
    pub age: Duration,
    /// At most so many bytes on disk for one root.
    pub bytes: u64,
}

impl Retention {
    /// What holds unless somebody configures otherwise: thirty days, 256 MiB.
    pub const DEFAULT: Self = Self { age: Duration::from_secs(30 * 24 * 60 * 60), bytes: 256 << 20 };
}

impl Default for Retention {
    fn default() -> Self {
        Self::DEFAULT
    }
}
