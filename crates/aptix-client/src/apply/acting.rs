//! Who has a batch applied, and why: the steps of the batch that the history keeps.

use aptix_model::actor::Actor;
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;

/// Who has a batch applied, and why.
#[derive(Clone, Copy, Default, Debug)]
pub struct Acting<'a> {
    /// What was done to the batch before, oldest first: of a batch of a server, that it was stored there.
    pub before: &'a [EventFacts],
    /// Who applies it, unless a person is asked and agrees. Absent if that is not known: then the history keeps no step.
    pub actor: Option<&'a Actor>,
    /// The person who is asked where one has to agree.
    pub person: Option<&'a Actor>,
    /// Why, if a reason was given.
    pub reason: Option<&'a str>,
}

impl<'a> Acting<'a> {
    /// Of a program that does not state who has the batch applied.
    pub const UNKNOWN: Self = Self { before: &[], actor: None, person: None, reason: None };

    /// Of this actor, whether or not a person is asked, without a reason.
    #[must_use]
    pub const fn of(actor: &'a Actor) -> Self {
        Self { actor: Some(actor), ..Self::UNKNOWN }
    }

    /// The steps of a batch that reaches this state now, by this person if one agreed to it: then who asked for it is the step before.
    pub(super) fn steps(self, agreed: Option<&Actor>, state: BatchState, at: UnixMillis) -> Vec<EventFacts> {
        let Some(actor) = agreed.or(self.actor).cloned() else { return Vec::new() };
        let kind = if self.before.is_empty() { EventKind::Local } else { EventKind::Reported };
        let author = self.actor.filter(|_| agreed.is_some() && self.before.is_empty()).cloned();
        let asked =
            author.map(|actor| EventFacts { kind, state: BatchState::PendingApproval, at, actor, reason: None });
        let last = EventFacts { kind, state, at, actor, reason: self.reason.map(str::to_owned) };
        self.before.iter().cloned().chain(asked).chain([last]).collect()
    }
}
