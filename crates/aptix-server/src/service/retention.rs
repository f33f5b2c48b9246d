//! Limits of retention, and what came of them, on the wire.

use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, Revision};
use aptix_model::reason::Reason;
use aptix_model::wire::{self, v1};

use crate::retention::Outcome;
use crate::store::retention::{HeldBy, Limits, Retained};

/// Reads limits.
pub(super) fn limits(limits: v1::RetentionLimits) -> Limits {
    Limits {
        content_age: limits.content_seconds.map(Duration::from_secs),
        content_batches: limits.content_batches,
        content_bytes: limits.content_bytes,
        record_age: limits.record_seconds.map(Duration::from_secs),
        record_events: limits.record_events,
        record_least: Duration::from_secs(limits.record_least_seconds),
    }
}

/// Writes limits.
pub(super) fn to_wire(limits: &Limits) -> v1::RetentionLimits {
    v1::RetentionLimits {
        content_seconds: limits.content_age.map(|age| age.as_secs()),
        content_batches: limits.content_batches,
        content_bytes: limits.content_bytes,
        record_seconds: limits.record_age.map(|age| age.as_secs()),
        record_events: limits.record_events,
        record_least_seconds: limits.record_least.as_secs(),
    }
}

/// Writes what was removed, or would be.
pub(super) fn response(outcome: &Outcome) -> v1::RetainWorkspaceResponse {
    let Outcome { limits, retained, newest, open_batches } = outcome;
    let (held, batch) = match retained.held_by {
        Some(HeldBy::Open(revision, batch)) => (revision, Some(batch)),
        Some(HeldBy::Damaged(revision)) => (revision, None),
        None => (Revision(0), None),
    };
    v1::RetainWorkspaceResponse {
        limits: Some(to_wire(limits)),
        contents: retained.contents,
        content_bytes: retained.content_bytes,
        records: retained.records,
        events: retained.events,
        oldest_revision: retained.oldest.0,
        newest_revision: newest.0,
        open_batches: *open_batches,
        held_revision: held.0,
        held_batch_id: batch.as_ref().map(BatchId::to_string).unwrap_or_default(),
        has_more: retained.has_more,
    }
}

/// Reads what was removed, or would be.
pub(super) fn outcome(response: &v1::RetainWorkspaceResponse) -> Result<Outcome, Failure> {
    let held_by = match (Revision(response.held_revision), response.held_batch_id.as_str()) {
        (Revision(0), _) => None,
        (revision, "") => Some(HeldBy::Damaged(revision)),
        (revision, batch) => Some(HeldBy::Open(revision, wire::id("heldBatchId", batch)?)),
    };
    let retained = Retained {
        contents: response.contents,
        content_bytes: response.content_bytes,
        records: response.records,
        events: response.events,
        oldest: Revision(response.oldest_revision),
        held_by,
        has_more: response.has_more,
    };
    let limits = limits(response.limits.unwrap_or_default());
    Ok(Outcome { limits, retained, newest: Revision(response.newest_revision), open_batches: response.open_batches })
}

/// Limits that are not configured remove nothing.
pub(super) fn not_configured() -> Failure {
    Failure::new(Reason::InvalidRequest, "limits are given, and it is not a dry run; expected limits with dryRun alone")
        .field("limits")
        .hint("configure them at the server, or set dryRun")
}
