//! One step in the life of a stored batch, as its state allows (`aptix_model::state`) and its caller may take it.

use std::time::Instant;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::EventKind;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, RequestId, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::record::{BatchRecord, UnixMillis};
use aptix_model::report::Report;
use aptix_model::state::Step;

use super::Dispatcher;
use super::refusal::{Refusal, not_found};
use super::submit::request_reused;
use crate::metrics::Metric;
use crate::store::{BatchSelector, Transition, Transitioned};

/// A step that is to be taken.
pub(super) struct Move {
    pub(super) step: Step,
    pub(super) kind: EventKind,
    pub(super) actor: Actor,
    /// Why, if a reason was given.
    pub(super) reason: Option<String>,
    pub(super) at: UnixMillis,
    pub(super) report: Option<Report>,
    /// The request that has a prepared batch applied.
    pub(super) freed: Option<RequestId>,
    pub(super) logged: Event<'static>,
}

impl Move {
    /// A step of which nothing else is to be kept.
    pub(super) const fn new(step: Step, kind: EventKind, actor: Actor, at: UnixMillis, logged: Event<'static>) -> Self {
        Self { step, kind, actor, reason: None, at, report: None, freed: None, logged }
    }
}

/// The step that ends a batch whose time is over.
pub(super) const fn expiry(now: UnixMillis) -> Move {
    Move::new(Step::Expire, EventKind::Expired, Actor::unnamed(ActorKind::Server), now, Event::Expired)
}

impl Dispatcher {
    /// Takes the step that `decide` wants of the batch as it is; `None` leaves it as it is.
    ///
    /// # Errors
    /// Whatever `decide` refuses; INVALID_STATE when the state does not allow the step; when there is no such batch, or the store
    /// fails.
    pub(super) async fn step(
        &self,
        workspace: &WorkspaceId,
        id: BatchId,
        decide: impl Fn(&BatchRecord) -> Result<Option<Move>, Refusal> + Send,
    ) -> Result<BatchRecord, Refusal> {
        let began = Instant::now();
        let mut batch = self.batch(workspace, BatchSelector::Id(id)).await?;
        // A state that changed meanwhile is looked at again; states only go forward, so this ends.
        loop {
            let Some(taken) = decide(&batch)? else { return Ok(batch) };
            let Move { step, kind, actor, reason, at, report, freed, logged } = taken;
            let step = Transition {
                workspace: workspace.clone(),
                batch: id,
                kind,
                actor,
                reason,
                from: batch.state,
                to: batch.state.after(step).map_err(|error| {
                    Refusal::denied(Failure::new(Reason::InvalidState, error.to_string()).hint("look at the batch"))
                })?,
                at,
                lease: None,
                report,
                files: Vec::new(),
                freed,
            };
            match self.store.transition(step).await? {
                Transitioned::Done(batch) => {
                    Trace::of(Via::Server, &batch).log(began.elapsed(), logged);
                    Metric::BatchSteps.add(&[batch.state.word()], 1.0);
                    self.wakes.wake(workspace, id);
                    return Ok(batch);
                }
                Transitioned::OtherState(now) => batch = now,
                Transitioned::Restricted(failure) => return Err(Refusal::Denied(failure)),
                Transitioned::Reused(by) => return Err(request_reused(by)),
                Transitioned::Unknown | Transitioned::OtherLease => {
                    return Err(Refusal::denied(not_found(workspace, &format!("batch {id}"))));
                }
            }
        }
    }
}
