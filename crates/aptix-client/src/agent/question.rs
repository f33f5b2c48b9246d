//! What a person is shown before a batch is written.

use std::fmt::Write as _;

use aptix_engine::plan::BatchPlan;
use aptix_model::batch::Batch;
use aptix_model::failure::Visible;
use aptix_model::id::BatchId;

use crate::cli::diff::{Paths, show_diff};
use crate::workspace::Workspace;

/// The whole change, file by file, with nothing in it that could steer a terminal.
pub(super) fn about(id: BatchId, batch: &Batch, plan: &BatchPlan<'_>, local: &Workspace) -> String {
    let paths = Paths::among(local.roots().len());
    let label = batch.label.as_deref().unwrap_or("(no label)");
    let mut text = format!("\nBatch {id}: {}\n", Visible(label));
    for file in &plan.files {
        if paths == Paths::WithRoot {
            let _ = writeln!(text, "{}:", Visible(&paths.name(file.path.as_str(), file.doc_path)));
        }
        show_diff(&mut text, &String::from_utf8_lossy(&file.diff(usize::MAX).unwrap_or_default()));
    }
    for (file, patch) in plan.files.iter().zip(&batch.files) {
        let _ = write!(text, "{} {}", file.status.word(), Visible(&paths.name(file.path.as_str(), file.doc_path)));
        let _ = match &patch.label {
            Some(label) => writeln!(text, ": {}", Visible(label)),
            None => writeln!(text),
        };
    }
    text
}
