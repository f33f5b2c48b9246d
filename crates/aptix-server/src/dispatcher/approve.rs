//! Letting a batch go ahead: at once, or once a person has approved it.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::Batch;
use aptix_model::batch_event::{EventKind, StepRecord};
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::{BatchState, Step};

use super::Dispatcher;
use super::decided::{Decided, what_became};
use super::refusal::Refusal;
use super::step::{Move, expiry};

/// A person's approval of a batch.
#[derive(Clone, Debug, Default)]
pub struct Consent {
    /// Why, if they said.
    pub reason: Option<String>,
    /// The name of the person, if it is known.
    pub reviewer: Option<String>,
}

impl Dispatcher {
    /// The state of a batch that its author has let go ahead.
    pub(super) fn state_when_free(&self, workspace: &WorkspaceId, batch: &Batch) -> BatchState {
        match self.approvals.ask_about(workspace, batch) {
            true => BatchState::PendingApproval,
            false => BatchState::Approved,
        }
    }

    /// Lets a batch go ahead that waits for a person. One that a person approved before stays as it is, whatever its agent made of
    /// it since: the answer names who approved it.
    ///
    /// # Errors
    /// NOT_FOUND; TOO_LARGE (TEXT); INVALID_STATE when the batch waits for no person and none approved it: it has ended, needs no
    /// approval, or is not let go ahead by its author; and when it was rejected or withdrawn after a person approved it.
    /// POLICY_DENIED (RESTRICTED_MODE) while the session of the batch may not write; the batch goes on waiting.
    pub async fn approve(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        consent: Consent,
    ) -> Result<Decided, Refusal> {
        self.check_texts([("reason", consent.reason.as_ref()), ("reviewer", consent.reviewer.as_ref())])?;
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let approve = |batch: &BatchRecord| Ok(this.approval(batch, &consent));
            let batch = this.step(&workspace, id, approve).await.map_err(for_reviewer)?;
            let steps = this.steps(&batch).await?;
            let was_approved = steps.iter().any(|step| step.facts.kind == EventKind::Approved);
            match batch.state {
                BatchState::Approved | BatchState::Applied | BatchState::Partial | BatchState::Failed
                    if was_approved =>
                {
                    Ok(Decided::by(batch, EventKind::Approved, steps))
                }
                _ => Err(waits_for_nobody(&batch, &steps)),
            }
        })
        .await
    }

    /// The step that approves a batch, or ends one whose time is over; `None` if it does not wait for a person.
    fn approval(&self, batch: &BatchRecord, consent: &Consent) -> Option<Move> {
        let now = self.clock.now();
        match batch.state {
            BatchState::PendingApproval if is_over(batch, now) => Some(expiry(now)),
            BatchState::PendingApproval => {
                let person = Actor { kind: ActorKind::Person, name: consent.reviewer.clone() };
                let step = Move::new(Step::Approve, EventKind::Approved, person, now, Event::Approved);
                Some(Move { reason: consent.reason.clone(), ..step })
            }
            _ => None,
        }
    }
}

/// Adds to the refusal of an approval in Restricted mode what a reviewer can do.
fn for_reviewer(refusal: Refusal) -> Refusal {
    match refusal {
        Refusal::Denied(failure) if failure.detail == Some(Detail::RestrictedMode) => {
            let session = failure.hint.clone().unwrap_or_default();
            Refusal::denied(
                failure.hint(format!("{session}; until then the batch waits: approve it afterwards, or reject it")),
            )
        }
        refusal => refusal,
    }
}

/// Whether the time of a batch is over.
pub(super) fn is_over(batch: &BatchRecord, now: UnixMillis) -> bool {
    batch.expires().is_some_and(|expires| expires <= now)
}

/// Refuses to approve a batch that waits for no person.
fn waits_for_nobody(batch: &BatchRecord, steps: &[StepRecord]) -> Refusal {
    let BatchRecord { id, state, .. } = batch;
    let (message, hint) = match state {
        BatchState::Approved => {
            (format!("batch {id} needs no approval here"), "nothing is left to do: it waits for its agent")
        }
        BatchState::Prepared | BatchState::Preparing => (
            format!("batch {id} is {state}, and its owner has not let it be applied"),
            "approve it after its owner has called ApplyPrepared, or `aptix apply-prepared`",
        ),
        BatchState::Applied | BatchState::Partial | BatchState::Failed => (
            format!("batch {id} is {state}, and needed no approval here"),
            "nothing is left to do: look at what became of the batch",
        ),
        _ => (
            format!("{}; only a batch that is PENDING_APPROVAL can be approved", what_became(batch, steps)),
            "nothing was written; submit the batch again if it is still wanted",
        ),
    };
    Refusal::denied(Failure::new(Reason::InvalidState, message).hint(hint))
}
