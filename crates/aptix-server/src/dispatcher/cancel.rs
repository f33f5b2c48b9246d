//! Withdrawing a batch, and refusing one in the name of a person.

use std::sync::Arc;

use aptix_model::actor::{Actor, ActorKind};
use aptix_model::batch_event::{EventKind, StepRecord};
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::BatchRecord;
use aptix_model::report::{Outcome, Report};
use aptix_model::state::{BatchState, Step};

use super::Dispatcher;
use super::decided::{Decided, what_became};
use super::refusal::Refusal;
use super::step::Move;

/// A person's refusal of a batch.
#[derive(Clone, Debug)]
pub struct Rejection {
    /// Why, for the author; empty if they did not say.
    pub reason: String,
    /// The name of the person, if it is known.
    pub reviewer: Option<String>,
}

/// Why a batch is withdrawn, and by whom.
#[derive(Clone, Debug, Default)]
pub struct Withdrawal {
    /// Why, if they said.
    pub reason: Option<String>,
    /// Their name, if it is known.
    pub author: Option<String>,
}

impl Dispatcher {
    /// Withdraws a batch; one that is withdrawn already stays so.
    ///
    /// # Errors
    /// When there is no such batch, it has ended another way, or a text is too long.
    pub async fn cancel(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        withdrawal: Withdrawal,
    ) -> Result<BatchRecord, Refusal> {
        self.check_texts([("reason", withdrawal.reason.as_ref()), ("author", withdrawal.author.as_ref())])?;
        let (this, now) = (Arc::clone(self), self.clock.now());
        let withdraw = move |batch: &BatchRecord| match batch.state {
            BatchState::Cancelled => Ok(None),
            state if state.is_open() => {
                let author = Actor { kind: ActorKind::Author, name: withdrawal.author.clone() };
                let step = Move::new(Step::Cancel, EventKind::Cancelled, author, now, Event::Cancelled);
                Ok(Some(Move { reason: withdrawal.reason.clone(), ..step }))
            }
            _ => Ok(None),
        };
        self.to_the_end(async move {
            let batch = this.step(&workspace, id, withdraw).await?;
            match batch.state {
                BatchState::Cancelled => Ok(batch),
                _ => Err(has_ended(&batch, &this.steps(&batch).await?, "cancelled")),
            }
        })
        .await
    }

    /// Refuses a batch in the name of a person; one that is rejected already stays so, with its first reason: the answer names who
    /// rejected it.
    ///
    /// # Errors
    /// When there is no such batch, it has ended another way, or a text is too long.
    pub async fn reject(
        self: &Arc<Self>,
        workspace: WorkspaceId,
        id: BatchId,
        rejection: Rejection,
    ) -> Result<Decided, Refusal> {
        self.check_texts([("reason", Some(&rejection.reason)), ("reviewer", rejection.reviewer.as_ref())])?;
        let (this, now) = (Arc::clone(self), self.clock.now());
        let refuse = move |batch: &BatchRecord| match batch.state {
            BatchState::Rejected => Ok(None),
            state if state.is_open() => {
                let person = Actor { kind: ActorKind::Person, name: rejection.reviewer.clone() };
                let step = Move::new(Step::Reject, EventKind::Rejected, person, now, Event::Rejected);
                let reason = Some(rejection.reason.clone()).filter(|reason| !reason.is_empty());
                Ok(Some(Move { report: Some(rejected(&rejection)), reason, ..step }))
            }
            _ => Ok(None),
        };
        self.to_the_end(async move {
            let batch = this.step(&workspace, id, refuse).await?;
            let steps = this.steps(&batch).await?;
            match batch.state {
                BatchState::Rejected => Ok(Decided::by(batch, EventKind::Rejected, steps)),
                _ => Err(has_ended(&batch, &steps, "rejected")),
            }
        })
        .await
    }

    /// Refuses a text of this name that is longer than what is kept.
    pub(super) fn check_texts(&self, texts: [(&str, Option<&String>); 2]) -> Result<(), Refusal> {
        let most = self.settings.limits.text_bytes;
        let too_long = texts.into_iter().find(|(_, text)| text.is_some_and(|text| text.len() > most));
        let Some((field, Some(text))) = too_long else { return Ok(()) };
        let message = format!("{field} has {} bytes, at most {most} are kept", text.len());
        Err(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field(field).into())
    }
}

/// The report of a batch that a person refused.
fn rejected(rejection: &Rejection) -> Report {
    let who = rejection.reviewer.as_deref().unwrap_or("a reviewer");
    let message = match rejection.reason.as_str() {
        "" => format!("{who} rejected the batch, and gave no reason"),
        reason => format!("{who} rejected the batch: {reason}"),
    };
    let hint = "change what the reviewer asked for before resubmitting";
    let failures = vec![Failure::new(Reason::Rejected, message).hint(hint)];
    Report { outcome: Outcome::Rejected, failures, ..Report::applied(Vec::new()) }
}

/// Refuses to end a batch that has ended another way.
fn has_ended(batch: &BatchRecord, steps: &[StepRecord], done: &str) -> Refusal {
    let message = format!("{}; only an open batch can be {done}", what_became(batch, steps));
    let hint = match batch.state {
        BatchState::Applied | BatchState::Partial => "have what it changed taken back: RevertBatch, or `aptix revert`",
        _ => "nothing is left to do: the batch changed no file",
    };
    Refusal::denied(Failure::new(Reason::InvalidState, message).hint(hint))
}
