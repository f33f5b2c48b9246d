//! Which step decided about a batch, and by whom: for reviewers and authors whose own decision came second.

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::{EventKind, StepRecord};
use aptix_model::failure::Visible;
use aptix_model::record::BatchRecord;
use aptix_model::state::BatchState;

/// How much of a name or a reason a message repeats, in characters.
const SHOWN: usize = 200;

/// A batch after a person decided about it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decided {
    /// The batch as it is now.
    pub batch: BatchRecord,
    /// The step that decided: that of this call, or of the one that came first. `None` if no record that can be read has it.
    pub step: Option<StepRecord>,
}

impl Decided {
    /// With the newest of these steps that is of this kind.
    pub(super) fn by(batch: BatchRecord, kind: EventKind, steps: Vec<StepRecord>) -> Self {
        let step = steps.into_iter().rev().find(|step| step.facts.kind == kind);
        Self { batch, step }
    }
}

/// What became of a batch, with who decided it and why: "batch ID was rejected by Rita: no tests".
pub(super) fn what_became(batch: &BatchRecord, steps: &[StepRecord]) -> String {
    let BatchRecord { id, state, .. } = batch;
    let newest = |kind: EventKind| steps.iter().rev().map(|step| &step.facts).find(|facts| facts.kind == kind);
    let verb = match state {
        BatchState::Rejected => newest(EventKind::Rejected).map(|facts| ("was rejected", facts)),
        BatchState::Cancelled => newest(EventKind::Cancelled).map(|facts| ("was cancelled", facts)),
        BatchState::Approved | BatchState::Applied | BatchState::Partial | BatchState::Failed => {
            newest(EventKind::Approved).map(|facts| ("was approved", facts))
        }
        _ => None,
    };
    let Some((verb, facts)) = verb else { return format!("batch {id} is {state}") };
    let reason = facts.reason.as_ref().map(|reason| format!(": {}", shown(reason))).unwrap_or_default();
    format!("batch {id} is {state}: it {verb} by {}{reason}", who(&facts.actor))
}

/// A name as messages show it.
fn who(actor: &Actor) -> String {
    match (&actor.name, actor.kind) {
        (Some(name), _) => shown(name),
        (None, ActorKind::Person) => "a reviewer".to_owned(),
        (None, ActorKind::Author) => "its author".to_owned(),
        (None, ActorKind::Agent) => "its agent".to_owned(),
        (None, ActorKind::Server) => "the server".to_owned(),
    }
}

fn shown(text: &str) -> String {
    let cut: String = text.chars().take(SHOWN).collect();
    let more = if cut.len() < text.len() { "..." } else { "" };
    format!("{}{more}", Visible(&cut))
}
