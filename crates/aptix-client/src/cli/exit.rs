//! How a command ended, and its exit code.

use std::process::ExitCode;

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
    /// Somebody interrupted it.
    Interrupted,
}

impl Exit {
    pub(super) fn of(refusal: &Refusal) -> Self {
        if refusal.is_environment() { Self::Environment } else { Self::Refused }
    }
}

impl From<&OpenError> for Exit {
    fn from(error: &OpenError) -> Self {
        match error {
            OpenError::Root(_) | OpenError::NoRoot => Self::Usage,
            OpenError::State(_) | OpenError::Recovery(_) => Self::Environment,
        }
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
