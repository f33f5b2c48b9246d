//! What storing a batch records, and which other batch it takes the place of.

use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::id::BatchId;
use aptix_model::record::{BatchRecord, Source};
use aptix_model::state::BatchState;

use super::Transition;

/// What the event records that stores a batch.
pub(super) fn submitted(batch: &BatchRecord) -> EventFacts {
    let actor = batch.sender();
    let kind = match batch.preparation() {
        Some(preparation) if preparation.freed.is_some() => EventKind::Freed,
        Some(_) => EventKind::Prepared,
        None => EventKind::Submitted,
    };
    let reason = match &batch.source {
        Source::Revert(reverting) => reverting.reason.clone(),
        Source::Submitted | Source::Prepared(_) | Source::Local { .. } => None,
    };
    EventFacts { kind, state: batch.state, at: batch.created, actor, reason }
}

/// The batch whose place a new one takes.
pub(super) fn former(batch: &BatchRecord) -> Option<BatchId> {
    batch.preparation().filter(|preparation| preparation.plan.is_some())?.replaces
}

/// What becomes of the batch whose place a new one takes: the step that withdraws it, or `None` within, if it failed and stays so.
/// `None` if its place cannot be taken: it has left the state for that, or is not the `newest` batch of its plan any more.
///
/// `newest` is given for a plan that tools know by an id: they alone have one that failed prepared or applied again.
#[expect(clippy::option_option, reason = "whether it is replaced, and by which step")]
pub(super) fn replacement(
    batch: &BatchRecord,
    former: &BatchRecord,
    newest: Option<BatchId>,
) -> Option<Option<Transition>> {
    match former.state {
        _ if former.workspace != batch.workspace || newest.is_some_and(|newest| newest != former.id) => None,
        BatchState::Prepared => Some(Some(withdrawal(batch, former.id))),
        BatchState::Failed if newest.is_some() && former.hunk().is_some() => Some(None),
        _ => None,
    }
}

/// The step that withdraws a prepared batch.
fn withdrawal(batch: &BatchRecord, former: BatchId) -> Transition {
    Transition {
        workspace: batch.workspace.clone(),
        batch: former,
        kind: EventKind::Cancelled,
        actor: batch.sender(),
        reason: Some(format!("batch {} takes its place", batch.id)),
        from: BatchState::Prepared,
        to: BatchState::Cancelled,
        at: batch.created,
        lease: None,
        report: None,
        files: Vec::new(),
        freed: None,
    }
}
