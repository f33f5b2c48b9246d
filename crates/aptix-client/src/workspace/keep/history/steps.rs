//! The steps of a batch as its entry keeps them: what was done to it, when, by whom and why.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::{EventFacts, EventKind};
use aptix_model::limits::Limits;
use aptix_model::record::UnixMillis;
use aptix_model::state::BatchState;
use serde::{Deserialize, Serialize};

/// One step.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub(super) struct KeptStep {
    event: String,
    state: String,
    /// Milliseconds since 1970.
    time: u64,
    actor: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

/// The text, of one that is longer than a record may have the beginning.
fn bounded(text: &str) -> String {
    text.get(..text.floor_char_boundary(Limits::DEFAULT.text_bytes)).unwrap_or_default().to_owned()
}

impl From<&EventFacts> for KeptStep {
    fn from(EventFacts { kind, state, at, actor, reason }: &EventFacts) -> Self {
        Self {
            event: kind.word().to_owned(),
            state: state.word().to_owned(),
            time: at.0,
            actor: actor.kind.word().to_owned(),
            name: actor.name.as_deref().map(bounded),
            reason: reason.as_deref().map(bounded),
        }
    }
}

impl KeptStep {
    /// The step; `None` if it is of a later version, whose words this one does not know.
    pub(super) fn facts(&self) -> Option<EventFacts> {
        Some(EventFacts {
            kind: EventKind::from_word(&self.event)?,
            state: BatchState::from_word(&self.state)?,
            at: UnixMillis(self.time),
            actor: Actor { kind: ActorKind::from_word(&self.actor)?, name: self.name.clone() },
            reason: self.reason.clone(),
        })
    }
}
