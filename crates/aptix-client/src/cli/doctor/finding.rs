//! What one check found.

use aptix_model::failure::{Failure, Visible};
use serde::Serialize;

/// How good it is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum Grade {
    /// It works.
    Ok,
    /// It works, and may not for long or not in every respect.
    Warning,
    /// Commands fail because of it.
    Problem,
}

/// What one check found.
#[derive(Debug, Serialize)]
pub(super) struct Finding {
    /// The name of the check.
    check: &'static str,
    /// The file, directory or address that was checked; `None` for a property of the whole machine.
    subject: Option<String>,
    pub(super) state: Grade,
    message: String,
    /// What mends it; `None` where nothing has to be mended.
    hint: Option<String>,
}

/// What is checked: the name of the check, and the file, directory or address.
#[derive(Clone, Debug)]
pub(super) struct Subject(pub(super) &'static str, pub(super) Option<String>);

impl Subject {
    /// A check of a file or directory.
    pub(super) fn at(check: &'static str, path: &std::path::Path) -> Self {
        Self(check, Some(path.display().to_string()))
    }

    pub(super) fn ok(self, message: impl Into<String>) -> Finding {
        self.found(Grade::Ok, message.into(), None)
    }

    pub(super) fn warning(self, message: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.found(Grade::Warning, message.into(), Some(hint.into()))
    }

    pub(super) fn problem(self, message: impl Into<String>, hint: impl Into<String>) -> Finding {
        self.found(Grade::Problem, message.into(), Some(hint.into()))
    }

    /// That a command would fail so; `hint` serves where the failure has none.
    pub(super) fn failed(self, failure: Failure, hint: &str) -> Finding {
        let Failure { message, hint: own, .. } = failure;
        self.problem(message, own.unwrap_or_else(|| hint.to_owned()))
    }

    fn found(self, state: Grade, message: String, hint: Option<String>) -> Finding {
        Finding { check: self.0, subject: self.1, state, message, hint }
    }
}

impl Finding {
    /// A line for people, and one with what mends it.
    pub(super) fn text(&self) -> String {
        let state = match self.state {
            Grade::Ok => "ok",
            Grade::Warning => "warning",
            Grade::Problem => "problem",
        };
        let subject = self.subject.as_ref().map(|subject| format!(" {}", Visible(subject))).unwrap_or_default();
        let hint = self.hint.as_ref().map(|hint| format!("         hint: {}\n", Visible(hint))).unwrap_or_default();
        format!("{state:<8} {}{subject}: {}\n{hint}", self.check, Visible(&self.message))
    }
}
