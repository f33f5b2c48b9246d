//! An event of a workspace as a message, for the agent and for other readers.

use aptix_model::record::BatchRecord;
use aptix_model::wire::{fit, v1};

use super::batch_list::damage;
use crate::dispatcher::event::{Damage, WorkspaceEvent};

/// The message of an event; `encode` makes that of its batch.
pub(super) fn message(event: WorkspaceEvent, encode: impl FnOnce(BatchRecord) -> v1::Batch) -> v1::BatchEvent {
    let WorkspaceEvent { revision, cursor, facts, batch } = event;
    let mut message =
        v1::BatchEvent { revision: revision.0, cursor: cursor.map(Into::into), ..v1::BatchEvent::default() };
    if let Some(facts) = facts {
        message.kind = v1::EventKind::from(facts.kind).into();
        message.state = v1::BatchState::from(facts.state).into();
        message.time = Some(facts.at.into());
        message.actor = Some(fit::actor(facts.actor.into()));
        message.reason = fit::words(facts.reason.unwrap_or_default());
    }
    match batch {
        Ok(batch) => message.batch = Some(encode(*batch)),
        Err(Damage { batch, why }) => {
            message.batch = batch.map(|id| v1::Batch { batch_id: id.to_string(), ..v1::Batch::default() });
            message.damage = Some(damage(revision, batch, why));
        }
    }
    message
}
