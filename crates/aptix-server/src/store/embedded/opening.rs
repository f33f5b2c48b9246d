//! How a data directory is opened.

/// Files of its tables that the store keeps open by default.
const OPEN_FILES: usize = 500;

/// How a store is opened.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Opening {
    /// Files of its tables that are open at one time.
    pub open_files: usize,
    /// What to do when something that was acknowledged is missing.
    pub on_loss: OnLoss,
}

impl Default for Opening {
    fn default() -> Self {
        Self { open_files: OPEN_FILES, on_loss: OnLoss::Refuse }
    }
}

/// What to do when something that was acknowledged is missing.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OnLoss {
    /// The store does not open.
    Refuse,
    /// The journals are copied aside, and the store opens with what is left.
    Accept,
}
