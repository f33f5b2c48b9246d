//! What storing a batch records, and which other batch it withdraws.

use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::record::{BatchRecord, Source};
use aptix_model::state::BatchState;

use super::Transition;

/// What the event records that stores a batch.
pub(super) fn submitted(batch: &BatchRecord) -> EventFacts {
    let actor = batch.author();
    let kind = if batch.preparation().is_some() { EventKind::Prepared } else { EventKind::Submitted };
    let reason = match &batch.source {
        Source::Revert(reverting) => reverting.reason.clone(),
        Source::Submitted | Source::Prepared(_) | Source::Local { .. } => None,
    };
    EventFacts { kind, state: batch.state, at: batch.created, actor, reason }
}

/// The step that withdraws the batch whose place a new one takes.
pub(super) fn replacement(batch: &BatchRecord) -> Option<Transition> {
    let replaced = batch.preparation().filter(|_| batch.state == BatchState::Prepared)?.replaces?;
    Some(Transition {
        workspace: batch.workspace.clone(),
        batch: replaced,
        kind: EventKind::Cancelled,
        actor: batch.author(),
        reason: Some(format!("batch {} takes its place", batch.id)),
        from: BatchState::Prepared,
        to: BatchState::Cancelled,
        at: batch.created,
        lease: None,
        report: None,
        files: Vec::new(),
        freed: None,
    })
}
