//! How the author of refused text that looks like an edit (SUSPECT_CONTENT) has it written as it is, from where they are.

use aptix_model::batch::{AnchorEdit, AnchorPlace, Batch, FileEdit};
use aptix_model::failure::Failure;
use aptix_model::reason::Reason;

use crate::policy::caller::Caller;

/// Adds the way past the refusal to the hints of failures to plan a batch.
pub(super) fn add_way_past(failures: &mut [Failure], batch: &Batch, caller: Caller) {
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
