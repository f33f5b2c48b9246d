//! Answers the server's questions, beside the batches and whatever becomes of those: off the async workers, so many at one
//! time, and no longer than they are wanted.

use std::collections::HashMap;
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::plan::Planned;
use aptix_model::presence::QuestionKind;
use aptix_model::question::{Question as Asked, Reply};
use aptix_model::reason::Reason;
use aptix_model::wire::question::{Answer, Ask};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::answer_places::Held;
use super::blobs;
use super::error::AgentError;
use super::report::refusal;
use super::service::Agent;
use crate::connection::question::{Answers, Question, Wanted, fitting, unsupported};
use crate::connection::{CallError, Connection};

/// Questions that are open at one time. The server asks no more.
const OPEN: usize = 64;

/// Questions that wait or are worked on, with those that were cancelled until they notice.
const UNSENT: usize = 2 * OPEN;

/// The questions of one connection. Dropped, it answers none of them any more.
pub(super) struct Desk {
    agent: Arc<Agent>,
    /// Has the blobs that questions name.
    connection: Connection,
    answers: Answers,
    /// Cancelled when the connection is dead.
    alive: CancellationToken,
    open: HashMap<u64, CancellationToken>,
    tasks: JoinSet<u64>,
}

impl Desk {
    pub(super) fn new(
        agent: Arc<Agent>,
        (connection, answers): (Connection, Answers),
        alive: CancellationToken,
    ) -> Self {
        Self { agent, connection, answers, alive, open: HashMap::new(), tasks: JoinSet::new() }
    }

    /// Takes a question and returns at once. A server that asks more than it may, and takes no answers, gets none.
    pub(super) fn ask(&mut self, question: Question) {
        self.clear_away();
        let Question { number, time_left, ask } = question;
        if self.tasks.len() >= UNSENT {
            tracing::warn!(question = number, "the server asks more than it takes answers to; it gets none");
            return;
        }
        let cancelled = self.alive.child_token();
        let wanted = Wanted::for_time(time_left, cancelled.clone());
        let (agent, answers) = (Arc::clone(&self.agent), self.answers.clone());
        let connection = self.connection.clone();
        let is_open = self.open.len() < OPEN;
        if is_open {
            self.open.insert(number, cancelled);
        }
        self.tasks.spawn(async move {
            let answer = match ask {
                Some(ask) if is_open => answer(&agent, &connection, ask, wanted.clone()).await,
                Some(_) => Some((too_many(), None)),
                None => Some((unsupported(), None)),
            };
            if let Some((answer, _places)) = answer.filter(|_| !wanted.is_over()) {
                tokio::select! {
                    () = answers.send(number, answer) => {}
                    () = wanted.over() => {}
                }
            }
            number
        });
    }

    /// Ends a question whose answer is not wanted any more.
    pub(super) fn cancel(&mut self, number: u64) {
        self.clear_away();
        if let Some(cancelled) = self.open.remove(&number) {
            cancelled.cancel();
        }
    }

    /// Forgets the questions that are answered.
    fn clear_away(&mut self) {
        while let Some(ended) = self.tasks.try_join_next() {
            if let Ok(number) = ended {
                self.open.remove(&number);
            }
        }
    }
}

/// The answer and its places, or nothing if it is not wanted any more.
async fn answer(
    agent: &Arc<Agent>,
    connection: &Connection,
    ask: Ask,
    wanted: Wanted,
) -> Option<(Answer, Option<Held>)> {
    let kind = ask.kind();
    let places = tokio::select! {
        places = agent.places.take(kind) => places?,
        () = wanted.over() => return None,
    };
    if let Some(refused) = agent.approval.beforehand().and_then(|failure| refused(kind, failure)) {
        return Some((refused, Some(places)));
    }
    let question = match agent.blocking(move |_| Asked::try_from(ask.0)).await {
        Ok(Ok(question)) => question,
        Ok(Err(failures)) => return Some((not_understood(failures), Some(places))),
        Err(error) => return Some((broken(&error), None)),
    };
    let whole = tokio::select! {
        whole = blobs::in_question(connection, question) => whole,
        () = wanted.over() => return None,
    };
    let question = match whole {
        Ok(Ok(question)) => question,
        Ok(Err(failure)) => return Some((refused(kind, failure)?, Some(places))),
        Err(error) => return Some((not_downloaded(&error), Some(places))),
    };
    let work = agent.blocking(move |agent| {
        let service = &agent.service;
        let answer = fitting(service.answering.answer(&agent.local, &service.policy, &question, &wanted));
        (answer, Some(places))
    });
    Some(work.await.unwrap_or_else(|error| (broken(&error), None)))
}

fn broken(error: &AgentError) -> Answer {
    tracing::error!(%error, "a question was not answered");
    let failure = Failure::new(Reason::Internal, "the agent failed at its answer").hint("its log says why");
    Answer::failed(failure)
}

/// Why a question cannot be answered; a server that checks it never asks it.
fn not_understood(failures: Vec<Failure>) -> Answer {
    let first = failures.into_iter().next();
    Answer::failed(first.unwrap_or_else(|| Failure::new(Reason::InvalidRequest, "the question cannot be understood")))
}

/// The answer that a batch would be refused; nothing for a question that is about no batch.
fn refused(kind: QuestionKind, failure: Failure) -> Option<Answer> {
    let report = refusal(vec![failure]);
    let reply = match kind {
        QuestionKind::Preview => Reply::Preview(report),
        QuestionKind::Prepare => Reply::Prepare(Box::new(Planned::Refused(report))),
        QuestionKind::Read
        | QuestionKind::Stat
        | QuestionKind::List
        | QuestionKind::Search
        | QuestionKind::Tool
        | QuestionKind::Paths => {
            return None;
        }
    };
    Some(fitting(Answer(reply.into())))
}

/// The answer to a question whose blobs did not come, for a reason that may pass.
fn not_downloaded(error: &CallError) -> Answer {
    tracing::warn!(%error, "the content of a batch could not be downloaded to plan it");
    let message = "the agent could not download the content of the batch from the server";
    Answer::failed(Failure::new(Reason::Unavailable, message).hint("call again; the agent's log says why it failed"))
}

fn too_many() -> Answer {
    let failure = Failure::new(Reason::ResourceExhausted, format!("{OPEN} questions are open on this connection"));
    Answer::failed(failure.hint("ask again once one of them is answered"))
}
