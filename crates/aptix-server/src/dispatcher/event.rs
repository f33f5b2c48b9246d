//! One event of a workspace as its readers are sent it: what happened, with the batch or with what is damaged of it.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::{EventFacts, EventKind, StepRecord};
use aptix_model::cursor::Cursor;
use aptix_model::id::{BatchId, Revision, WorkspaceId};
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

use super::Dispatcher;
use super::stream::{FeedEnd, Position, Stop, lost, stop};
use crate::store::{BatchSelector, Event, Listed, StoreError};

/// Something that happened in a workspace.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct WorkspaceEvent {
    /// Its number.
    pub revision: Revision,
    /// The position of a reader afterwards; `None` if the event's own record cannot be read.
    pub cursor: Option<Cursor>,
    /// What happened; `None` if no record that can be read has it.
    pub facts: Option<EventFacts>,
    /// The batch as it is now, or why it cannot be read.
    pub batch: Result<Box<BatchRecord>, Damage>,
}

impl WorkspaceEvent {
    /// How far a reader has come who has this event.
    pub(super) fn position(&self) -> Position {
        Position { revision: self.revision, digest: self.cursor.map(|cursor| cursor.digest) }
    }
}

/// What cannot be read of an event.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Damage {
    /// The batch that it happened to, if that is known.
    pub batch: Option<BatchId>,
    /// What is wrong.
    pub why: String,
}

impl Dispatcher {
    /// An event with its batch. A record that cannot be read is reported in its place.
    ///
    /// # Errors
    /// When the store fails, or the history does not have the event any more.
    pub(super) async fn event(&self, workspace: &WorkspaceId, event: Listed) -> Result<WorkspaceEvent, Stop> {
        let Event { revision, batch: id, digest, facts } = match event {
            Ok(event) => event,
            Err(damaged) => {
                log_damaged(workspace, damaged.revision, None, &damaged.why);
                let batch = Err(Damage { batch: None, why: damaged.why });
                return Ok(WorkspaceEvent { revision: damaged.revision, cursor: None, facts: None, batch });
            }
        };
        let damaged = |why| Err(Damage { batch: Some(id), why });
        let batch = match self.store.batch(workspace.clone(), BatchSelector::Id(id)).await {
            Ok(Some(batch)) => Ok(Box::new(batch)),
            Ok(None) => {
                // If both were removed since the event was read, that is no damage: the error is COMPACTED.
                let before = Revision(revision.0.saturating_sub(1));
                let now = self.store.events(workspace.clone(), before, 1).await.map_err(stop)?;
                self.not_deleted(workspace).await.map_err(stop)?;
                // Nor is it if the history went back before the event.
                let is_event = |now: &Listed| now.as_ref().is_ok_and(|now| (now.batch, now.digest) == (id, digest));
                if self.fleet.is_shared() && !now.first().is_some_and(is_event) {
                    return Err(Some(FeedEnd::SetBack));
                }
                damaged(lost(id).to_string())
            }
            // A reader skips a damaged batch for ever, so a failure that will pass is not damage.
            Err(error) if error.will_pass() => return Err(stop(error)),
            Err(error) => damaged(error.to_string()),
        };
        if let Err(Damage { why, .. }) = &batch {
            log_damaged(workspace, revision, Some(id), why);
        }
        let facts = facts.or_else(|| derived(revision, batch.as_deref().ok()?));
        Ok(WorkspaceEvent { revision, cursor: self.cursor(revision, digest), facts, batch })
    }

    /// What happened at an event; that of an earlier version is known by its batch. `None` if no record that can be read has it.
    pub(super) async fn facts(&self, workspace: &WorkspaceId, event: Event) -> Result<Option<EventFacts>, StoreError> {
        let Event { revision, batch, facts, .. } = event;
        if facts.is_some() {
            return Ok(facts);
        }
        match self.store.batch(workspace.clone(), BatchSelector::Id(batch)).await {
            Ok(batch) => Ok(batch.and_then(|batch| derived(revision, &batch))),
            Err(error) if error.will_pass() => Err(error),
            Err(_) => Ok(None),
        }
    }

    /// Every step of a batch, oldest first; one that cannot be read is left out with all before it.
    ///
    /// # Errors
    /// When the store fails.
    pub async fn steps(&self, batch: &BatchRecord) -> Result<Vec<StepRecord>, StoreError> {
        let steps = self.store.steps(batch.workspace.clone(), batch.id, batch.revision).await?;
        let facts = steps.into_iter().map_while(|Event { revision, facts, .. }| {
            Some(StepRecord { revision, facts: facts.or_else(|| derived(revision, batch))? })
        });
        let mut steps: Vec<_> = facts.collect();
        steps.reverse();
        Ok(steps)
    }
}

/// What happened in an event that was stored without it. Those versions stored an approved batch with one event, and ended it
/// with one other.
fn derived(revision: Revision, batch: &BatchRecord) -> Option<EventFacts> {
    if revision < batch.revision || batch.state.is_open() {
        let actor = Actor::unnamed(ActorKind::Author);
        let (kind, state) = (EventKind::Submitted, BatchState::Approved);
        return Some(EventFacts { kind, state, at: batch.created, actor, reason: None });
    }
    let (kind, actor) = match batch.state {
        BatchState::Applied | BatchState::Failed | BatchState::Partial => (EventKind::Reported, ActorKind::Agent),
        BatchState::Rejected => (EventKind::Reported, ActorKind::Person),
        BatchState::Cancelled => (EventKind::Cancelled, ActorKind::Author),
        _ => return None,
    };
    Some(EventFacts { kind, state: batch.state, at: batch.updated, actor: Actor::unnamed(actor), reason: None })
}

/// Logs that a record was passed over.
fn log_damaged(workspace: &WorkspaceId, revision: Revision, batch: Option<BatchId>, why: &str) {
    tracing::error!(WorkspaceId = %workspace, Revision = revision.0, BatchId = batch.map(tracing::field::display), why,
        "a stored record is damaged and passed over; run `aptix-server verify`");
}

#[cfg(test)]
mod tests {
    use aptix_model::batch::{Batch, Origin};
    use aptix_model::id::Uuid;
    use aptix_model::record::{Sent, Source, UnixMillis};

    use super::*;

    #[test]
    fn what_was_not_stored_follows_from_the_batch_or_stays_unknown() {
        let ended = |state| BatchRecord {
            id: BatchId(Uuid::nil()),
            workspace: "w".parse().unwrap(),
            revision: Revision(7),
            state,
            batch: Batch::default(),
            ids: Vec::new(),
            origin: Origin::default(),
            request_id: "r".parse().unwrap(),
            created: UnixMillis(1),
            updated: UnixMillis(2),
            report: None,
            source: Source::Submitted,
            reverted_by: None,
            is_restricted: false,
            removed_content: None,
            sent: Sent::default(),
        };
        let found = |revision, state| {
            let facts = derived(Revision(revision), &ended(state))?;
            Some((facts.kind, facts.state, facts.at.0, facts.actor.kind))
        };
        let submitted = Some((EventKind::Submitted, BatchState::Approved, 1, ActorKind::Author));
        assert_eq!(found(7, BatchState::Approved), submitted);
        for (state, kind) in [
            (BatchState::Applied, ActorKind::Agent),
            (BatchState::Failed, ActorKind::Agent),
            (BatchState::Partial, ActorKind::Agent),
            (BatchState::Rejected, ActorKind::Person),
        ] {
            assert_eq!(found(3, state), submitted);
            assert_eq!(found(7, state), Some((EventKind::Reported, state, 2, kind)));
        }
        let cancelled = (EventKind::Cancelled, BatchState::Cancelled, 2, ActorKind::Author);
        assert_eq!(found(7, BatchState::Cancelled), Some(cancelled));
        assert_eq!(found(7, BatchState::Expired), None, "no earlier version let a batch expire");
    }
}
