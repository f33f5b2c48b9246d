//! What the agent's log says of the warnings of a batch that was applied.

use aptix_model::failure::Visible;
use aptix_model::id::BatchId;
use aptix_model::report::{Report, Warning};

use crate::workspace::commit::displaced_writes::list::DisplacedWrite;

/// The warnings whose messages are about the machine. Others may quote a file, which no log does.
const OF_THE_MACHINE: [&str; 8] = [
    "ATTRIBUTE_LOST",
    "HARD_LINK_BROKEN",
    "LATE_WRITE",
    "NOT_UNDOABLE",
    "OWNER_CHANGED",
    "SETUID_CLEARED",
    "WRITTEN_AFTERWARDS",
    DisplacedWrite::CODE,
];

/// Logs the warnings of a batch.
pub(super) fn log(batch: BatchId, report: &Report) {
    for file in &report.files {
        for Warning { code, message, .. } in &file.warnings {
            let message = if OF_THE_MACHINE.contains(&code.as_str()) { message } else { "the report says more" };
            tracing::warn!(BatchId = %batch, DocPath = %Visible(&file.doc_path), Code = code, "{}", Visible(message));
        }
    }
}
