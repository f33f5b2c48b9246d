//! How a command ended, and its exit code.

use std::process::ExitCode;

use aptix_model::failure::Failure;

use crate::apply::Refusal;
use crate::workspace::open::OpenError;

/// How a command ended, by the fixed exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[repr(u8)]
pub(super) enum Exit {
    /// It was done, or would have been.
    Done = 0,
    /// It was refused and nothing changed, or some files of a batch were refused.
    Refused = 1,
    /// It was called wrongly.
    Usage = 2,
    /// The environment failed.
    Environment = 3,
    /// The user interrupted it.
    Interrupted = 130,
}

/// A command that changed nothing: why, and how it ends.
pub(super) struct Refused {
    pub(super) exit: Exit,
    pub(super) refusal: Refusal,
}

impl From<Refusal> for Refused {
    fn from(refusal: Refusal) -> Self {
        Self { exit: if refusal.is_environment() { Exit::Environment } else { Exit::Refused }, refusal }
    }
}

impl From<Failure> for Refused {
    fn from(failure: Failure) -> Self {
        Refusal::from(failure).into()
    }
}

impl From<OpenError> for Refused {
    fn from(error: OpenError) -> Self {
        let exit = match error {
            OpenError::Root(_) => Exit::Usage,
            OpenError::State(_) | OpenError::Recovery(_) => Exit::Environment,
        };
        Self { exit, refusal: error.failure().into() }
    }
}

impl From<Exit> for ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}
