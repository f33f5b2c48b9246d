//! How a command ended, and its exit code.

use std::process::ExitCode;

use aptix_model::failure::Failure;

use crate::apply::Refusal;
use crate::workspace::open::OpenError;

/// How a command ended, by the fixed exit codes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Exit {
    /// It was done, or would have been.
    Done,
    /// It was refused; nothing changed.
    Refused,
    /// It was called wrongly.
    Usage,
    /// The environment failed.
    Environment,
    /// The user interrupted it.
    Interrupted,
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
        Self::from(match exit {
            Exit::Done => 0,
            Exit::Refused => 1,
            Exit::Usage => 2,
            Exit::Environment => 3,
            Exit::Interrupted => 130,
        })
    }
}
