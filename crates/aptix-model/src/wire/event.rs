//! What an event records, between the wire and the model.

use super::field::{given, millis, missing, unknown_enum};
use super::record::batch_state;
use super::v1;
use crate::actor::{Actor, ActorKind};
use crate::batch_event::{EventFacts, EventKind, StepRecord};
use crate::failure::Failure;
use crate::id::Revision;

impl From<EventKind> for v1::EventKind {
    fn from(kind: EventKind) -> Self {
        match kind {
            EventKind::Submitted => Self::Submitted,
            EventKind::Reported => Self::Reported,
            EventKind::Cancelled => Self::Cancelled,
            EventKind::Expired => Self::Expired,
            EventKind::Local => Self::Local,
            EventKind::Prepared => Self::Prepared,
            EventKind::Freed => Self::Freed,
            EventKind::Rejected => Self::Rejected,
            EventKind::Approved => Self::Approved,
        }
    }
}

/// Reads a kind of event from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (UNKNOWN_ENUM), naming the field.
pub fn event_kind(field: &str, value: i32) -> Result<EventKind, Failure> {
    let known = EventKind::ALL.into_iter().find(|kind| v1::EventKind::from(*kind) as i32 == value);
    known.ok_or_else(|| unknown_enum(field, value))
}

impl From<ActorKind> for v1::ActorKind {
    fn from(kind: ActorKind) -> Self {
        match kind {
            ActorKind::Author => Self::Author,
            ActorKind::Agent => Self::Agent,
            ActorKind::Person => Self::Person,
            ActorKind::Server => Self::Server,
        }
    }
}

/// Reads what an actor is from the field of this name.
///
/// # Errors
/// INVALID_REQUEST (UNKNOWN_ENUM), naming the field.
pub fn actor_kind(field: &str, value: i32) -> Result<ActorKind, Failure> {
    let known = ActorKind::ALL.into_iter().find(|kind| v1::ActorKind::from(*kind) as i32 == value);
    known.ok_or_else(|| unknown_enum(field, value))
}

impl From<Actor> for v1::Actor {
    fn from(actor: Actor) -> Self {
        Self { kind: v1::ActorKind::from(actor.kind).into(), name: actor.name.unwrap_or_default() }
    }
}

impl TryFrom<v1::Actor> for Actor {
    type Error = Failure;

    fn try_from(actor: v1::Actor) -> Result<Self, Failure> {
        Ok(Self { kind: actor_kind("actor.kind", actor.kind)?, name: given(actor.name) })
    }
}

impl TryFrom<&v1::BatchEvent> for EventFacts {
    type Error = Failure;

    fn try_from(event: &v1::BatchEvent) -> Result<Self, Failure> {
        let at = event.time.as_ref().ok_or_else(|| missing("event.time", "a time"))?;
        Ok(Self {
            kind: event_kind("event.kind", event.kind)?,
            state: batch_state("event.state", event.state)?,
            at: millis(at),
            actor: event.actor.clone().unwrap_or_default().try_into()?,
            reason: given(event.reason.clone()),
        })
    }
}

impl From<StepRecord> for v1::BatchStep {
    fn from(StepRecord { revision, facts }: StepRecord) -> Self {
        Self {
            revision: revision.0,
            kind: v1::EventKind::from(facts.kind).into(),
            state: v1::BatchState::from(facts.state).into(),
            time: Some(facts.at.into()),
            actor: Some(facts.actor.into()),
            reason: facts.reason.unwrap_or_default(),
        }
    }
}

impl TryFrom<v1::BatchStep> for StepRecord {
    type Error = Failure;

    fn try_from(step: v1::BatchStep) -> Result<Self, Failure> {
        let at = step.time.as_ref().ok_or_else(|| missing("steps.time", "a time"))?;
        let facts = EventFacts {
            kind: event_kind("steps.kind", step.kind)?,
            state: batch_state("steps.state", step.state)?,
            at: millis(at),
            actor: step.actor.unwrap_or_default().try_into()?,
            reason: given(step.reason),
        };
        Ok(Self { revision: Revision(step.revision), facts })
    }
}
