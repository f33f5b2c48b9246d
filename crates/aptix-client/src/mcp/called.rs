//! One call of a tool, and what is logged of it.

use std::sync::Arc;

use aptix_model::batch::Batch;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::tools::result::tool_result::{ToolResult, refused};
use aptix_model::tools::tool::{Effect, Tool};

use super::consent::{Consent, Question};
use super::hunks::CallNumber;
use super::tried::Tried;
use super::until::Until;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::traced::Traced;
use crate::person::answer::Answer;
use crate::policy::Policy;
use crate::review::Board;

/// A call of a tool.
#[derive(Clone, Debug)]
pub(super) struct Called {
    pub(super) tool: &'static Tool,
    /// Position of the call among all messages of the connection.
    pub(super) number: CallNumber,
    pub(super) traced: Traced,
    /// The consent of a person to what it writes.
    pub(super) consent: Arc<Consent>,
}

impl Called {
    /// Refuses the call, before there is a batch.
    pub(super) fn refused(&self, failures: &[Failure]) -> ToolResult {
        if !self.consent.is_asking() {
            self.traced.log(match self.tool.effect {
                Effect::Reads => Event::CallRefused(failures),
                Effect::Prepares | Effect::Writes => Event::Refused(None, failures),
            });
        }
        refused(self.tool.form, failures)
    }

    /// The same call, once a person has answered.
    pub(super) fn with_answer(&self, question: Question, answer: Answer) -> Self {
        Self { consent: Arc::new(self.consent.with_answer(question, answer)), ..self.clone() }
    }

    /// The same call, whose batch has had its id since an earlier call.
    pub(super) fn of_batch(&self, batch: BatchId) -> Self {
        let mut called = self.clone();
        called.traced.trace.batch = Some(batch);
        called
    }

    /// Decides about what is to be written, as far as a person has to and has; nothing is written once the client does not wait.
    pub(super) fn decide(&self, batch: BatchId, proposal: &Proposal<'_>, policy: &Policy, until: &Until) -> Decision {
        if until.is_over() {
            return Decision::Refuse(vec![until.failure()]);
        }
        let decision = self.consent.decide(batch, proposal, policy.approval);
        if let Decision::Approved(subject) = decision {
            self.traced.log(Event::Agreed(subject));
        }
        decision
    }

    /// Notes on the review page what became of a change that a person decided about.
    pub(super) fn note_outcome(&self, board: &Board, answer: &ToolResult) {
        let Some(title) = self.consent.title() else { return };
        let why = answer.text.first().map_or("", String::as_str);
        board.note_outcome(title, if answer.is_error { Err(why) } else { Ok(()) });
    }

    /// Logs what became of the batch of the call, if it does not wait for a person.
    pub(super) fn ended(&self, batch: &Batch, tried: &Tried) {
        if self.consent.is_asking() {
            return;
        }
        let outcome = tried.outcome.as_ref();
        self.traced.ended(Some(batch), outcome.map_err(|refusal| refusal.failures.as_slice()));
    }
}
