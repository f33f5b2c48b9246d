//! A batch that was not applied, and why.

use std::fmt;

use aptix_model::batch::{AnchorEdit, AnchorPlace, Batch, FileEdit};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::policy::caller::Caller;

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

/// Adds to the hints of SUSPECT_CONTENT how its author, who calls from there, can write the text as it is.
pub(super) fn add_verbatim_hints(failures: &mut [Failure], batch: &Batch, caller: Caller) {
    for failure in failures.iter_mut().filter(|failure| failure.reason == Reason::SuspectContent) {
        let edit = failure.file_index.and_then(|file| batch.files.get(file)).map(|file| &file.edit);
        let way = match (caller, edit) {
            (Caller::Shell, _) => "run `aptix apply` with --verbatim",
            (_, Some(FileEdit::AnchorEdit(AnchorEdit { place: AnchorPlace::Whole { .. }, .. }))) => {
                "set content_format to \"verbatim\""
            }
            _ => "write the whole file and declare contentFormat \"verbatim\"",
        };
        let mended = failure.hint.take().map_or_else(String::new, |hint| hint + "; ");
        failure.hint = Some(format!("{mended}if the file must hold exactly this text, {way}"));
    }
}
