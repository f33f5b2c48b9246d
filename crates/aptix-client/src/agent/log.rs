//! What is logged of each batch.

use aptix_model::batch::Origin;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::record::BatchRecord;
use aptix_model::report::Report;

/// Failures of one batch that are logged.
const LOGGED: usize = 20;

/// Logs an event of a batch with the ids of its origin.
macro_rules! event {
    ($level:ident, $name:literal, $batch:expr, $origin:expr, $($fields:tt)*) => {
        tracing::$level!(
            name: $name,
            Event = $name,
            SessionId = $origin.session_id,
            ConversationId = $origin.conversation_id,
            TurnId = $origin.turn_id,
            BatchId = %$batch,
            $($fields)*
        )
    };
}

/// Logs the warnings of a batch that was applied.
pub(super) fn warnings(batch: BatchId, report: &Report) {
    for file in &report.files {
        for warning in &file.warnings {
            tracing::warn!(BatchId = %batch, DocPath = %file.doc_path, Code = %warning.code, "{}", warning.message);
        }
    }
}

pub(super) fn withdrawn(batch: BatchId) {
    tracing::info!(name: "Batch.Withdrawn", Event = "Batch.Withdrawn", BatchId = %batch);
}

pub(super) fn received(record: &BatchRecord) {
    event!(info, "Batch.Received", record.id, record.origin, Files = record.batch.files.len());
}

pub(super) fn applied(record: &BatchRecord) {
    event!(info, "Batch.Applied", record.id, record.origin, Files = record.batch.files.len());
}

/// Logs a refused batch: the reason, the file if one is to blame, and all that was found (TUL-002 9).
pub(super) fn refused(batch: BatchId, origin: &Origin, failures: &[Failure]) {
    let first = failures.first();
    let found: Vec<_> = failures.iter().take(LOGGED).map(ToString::to_string).collect();
    event!(
        warn, "Batch.Refused", batch, origin,
        Reason = first.map(|failure| failure.reason.code()),
        DocPath = first.and_then(|failure| failure.path.as_deref()),
        Failures = ?found
    );
}
