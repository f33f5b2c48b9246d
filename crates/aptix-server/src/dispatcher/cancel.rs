//! Withdrawing a batch.

use std::sync::Arc;
use std::time::Instant;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::EventKind;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::BatchRecord;
use aptix_model::state::{BatchState, Step};

use super::Dispatcher;
use super::refusal::{Refusal, not_found};
use crate::mint;
use crate::store::{BatchSelector, Transition, Transitioned};

impl Dispatcher {
    /// Withdraws a batch; one that is withdrawn already stays so.
    ///
    /// # Errors
    /// When there is no such batch, or it has ended another way.
    pub async fn cancel(self: &Arc<Self>, workspace: WorkspaceId, id: BatchId) -> Result<BatchRecord, Refusal> {
        let this = Arc::clone(self);
        self.to_the_end(async move { this.withdraw(&workspace, id).await }).await
    }

    async fn withdraw(&self, workspace: &WorkspaceId, id: BatchId) -> Result<BatchRecord, Refusal> {
        let began = Instant::now();
        let mut batch = self.batch(workspace, BatchSelector::Id(id)).await?;
        // A state that changed meanwhile is looked at again; states only go forward, so this ends.
        loop {
            if batch.state == BatchState::Cancelled {
                return Ok(batch);
            }
            let step = Transition {
                workspace: workspace.clone(),
                batch: id,
                kind: EventKind::Cancelled,
                actor: Actor::unnamed(ActorKind::Author),
                from: batch.state,
                to: batch.state.after(Step::Cancel).map_err(|_| has_ended(batch.state))?,
                at: mint::now(),
                lease: None,
                report: None,
                files: Vec::new(),
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    Trace::of(Via::Server, &batch).log(began.elapsed(), Event::Cancelled);
                    self.wakes.wake(workspace, id);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                Transitioned::Unknown | Transitioned::OtherLease => {
                    return Err(Refusal::denied(not_found(workspace, &format!("batch {id}"))));
                }
            }
        }
    }
}

fn has_ended(state: BatchState) -> Refusal {
    let message = format!("the batch is {state}, only an open batch can be cancelled");
    let hint = "look at what became of the batch; what it changed can be undone where its agent runs";
    Refusal::denied(Failure::new(Reason::InvalidState, message).hint(hint))
}
