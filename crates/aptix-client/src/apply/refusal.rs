//! A batch that was not applied, and why.

use std::fmt;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

/// A batch that was not applied; nothing has changed unless a failure says so.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// Everything that is known to be wrong, never empty.
    pub failures: Vec<Failure>,
}

impl Refusal {
    /// Whether the system failed, rather than the batch being wrong.
    #[must_use]
    pub fn is_environment(&self) -> bool {
        self.failures.iter().any(|failure| {
            matches!(
                failure.reason,
                Reason::DirectoryCreateFailed
                    | Reason::Internal
                    | Reason::NeedsOperator
                    | Reason::ReadFailed
                    | Reason::ResourceExhausted
                    | Reason::WorkspaceBusy
                    | Reason::WriteFailed
            )
        })
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut failures = self.failures.iter();
        failures.next().into_iter().try_for_each(|failure| failure.fmt(f))?;
        failures.try_for_each(|failure| write!(f, "; {failure}"))
    }
}

impl std::error::Error for Refusal {}

impl From<Vec<Failure>> for Refusal {
    fn from(failures: Vec<Failure>) -> Self {
        Self { failures }
    }
}

impl From<Failure> for Refusal {
    fn from(failure: Failure) -> Self {
        Self { failures: vec![failure] }
    }
}
