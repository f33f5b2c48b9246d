//! Letting a batch go ahead: at once, or once a person has approved it.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch::Batch;
use aptix_model::batch_event::EventKind;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::state::{BatchState, Step};

use super::Dispatcher;
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

    /// Lets a batch go ahead that waits for a person. Repeated while it is free it is a no-op.
    ///
    /// # Errors
    /// NOT_FOUND; TOO_LARGE (TEXT); INVALID_STATE when the batch waits for no person: it has ended, needs no approval, or is not
    /// let go ahead by its author.
    pub async fn approve(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        consent: Consent,
    ) -> Result<BatchRecord, Refusal> {
        self.check_texts([("reason", consent.reason.as_ref()), ("reviewer", consent.reviewer.as_ref())])?;
        let this = Arc::clone(self);
        self.to_the_end(async move {
            let approve = |batch: &BatchRecord| this.may_approve(batch, &consent);
            let batch = this.step(&workspace, id, approve).await?;
            match batch.state {
                BatchState::Expired => Err(waits_for_nobody(&batch)),
                BatchState::Approved if !this.was_approved(&batch).await? => Err(waits_for_nobody(&batch)),
                _ => Ok(batch),
            }
        })
        .await
    }

    fn may_approve(&self, batch: &BatchRecord, consent: &Consent) -> Result<Option<Move>, Refusal> {
        let now = self.clock.now();
        match batch.state {
            BatchState::PendingApproval if is_over(batch, now) => Ok(Some(expiry(now))),
            BatchState::PendingApproval => {
                let person = Actor { kind: ActorKind::Person, name: consent.reviewer.clone() };
                let step = Move::new(Step::Approve, EventKind::Approved, person, now, Event::Approved);
                Ok(Some(Move { reason: consent.reason.clone(), ..step }))
            }
            // Whether a person approved it is looked up.
            BatchState::Approved => Ok(None),
            _ => Err(waits_for_nobody(batch)),
        }
    }

    async fn was_approved(&self, batch: &BatchRecord) -> Result<bool, Refusal> {
        let steps = self.steps(batch).await?;
        Ok(steps.iter().any(|step| step.facts.kind == EventKind::Approved))
    }
}

/// Whether the time of a batch is over.
pub(super) fn is_over(batch: &BatchRecord, now: UnixMillis) -> bool {
    batch.expires().is_some_and(|expires| expires <= now)
}

/// Refuses to approve a batch that waits for no person.
fn waits_for_nobody(batch: &BatchRecord) -> Refusal {
    let BatchRecord { id, state, .. } = batch;
    let (message, hint) = match state {
        BatchState::Approved => {
            (format!("batch {id} needs no approval here"), "nothing is left to do: it waits for its agent")
        }
        BatchState::Prepared | BatchState::Preparing => (
            format!("batch {id} is {state}, and its owner has not let it be applied"),
            "approve it after its owner has called ApplyPrepared",
        ),
        state => (
            format!("batch {id} is {state}, and only a batch that is PENDING_APPROVAL can be approved"),
            "look at what became of the batch; submit it again if it is still wanted",
        ),
    };
    Refusal::denied(Failure::new(Reason::InvalidState, message).hint(hint))
}
