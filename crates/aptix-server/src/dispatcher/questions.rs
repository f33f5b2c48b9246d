//! The questions that callers ask of the agent that serves a workspace. A question is open for as long as its caller, its
//! time and the agent's connection last; nothing of it is stored.
//!
//! At most [`OPEN`] questions are open on one connection. They are shared out like turns (`turns.rs`): the caller that was
//! served longest ago is next, and one that has open questions does not get the last place.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::AgentId;
use aptix_model::presence::{Presence, QuestionKind};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::UnixMillis;
use aptix_model::wire::question::{Answer, Ask};
use tokio::sync::{Notify, oneshot};
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::refusal::{Refusal, agent_lost, exhausted, unknown_question};
use crate::mint;
use crate::ticket::Asker;
use crate::turns::Turns;

/// Questions that an agent is asked at most before it has answered the first of them.
pub const OPEN: usize = 64;

/// Questions of one connection that wait to be asked or are open.
const WAITING: usize = 1024;

/// Their bytes.
const WAITING_BYTES: usize = 16 << 20;

/// Cancelled questions whose answers are still expected to be on their way.
const CANCELLED: usize = 1024;

/// How a workspace is served now.
#[derive(Clone, Debug)]
pub struct Serving {
    /// Which agent.
    pub agent: AgentId,
    /// When the present agent connected.
    pub since: UnixMillis,
    /// What it stated of itself.
    pub presence: Arc<Presence>,
}

/// What an agent answers to the question with this number.
#[derive(Clone, PartialEq, Debug)]
pub struct Answered(pub u64, pub Answer);

/// A message about a question, on its way to the agent.
#[derive(Clone, PartialEq, Debug)]
pub enum Asked {
    /// It is asked: its number, the time that is left for it, and what is asked.
    Question(u64, Duration, Box<Ask>),
    /// Its answer is not wanted any more.
    Cancelled(u64),
}

/// The questions of one connection.
#[derive(Debug)]
pub(super) struct Questions {
    pub(super) serving: Serving,
    places: Turns,
    open: Mutex<Open>,
    /// Rung when there is something to send.
    bell: Notify,
    /// Cancelled when the connection has ended.
    ended: CancellationToken,
}

#[derive(Debug, Default)]
struct Open {
    /// The number of the newest question.
    newest: u64,
    /// Questions that were not sent yet.
    unsent: VecDeque<(u64, Instant, Box<Ask>)>,
    /// Cancellations that were not sent yet.
    unsent_cancels: VecDeque<u64>,
    /// Who waits for which answer.
    callers: HashMap<u64, (QuestionKind, oneshot::Sender<Answer>)>,
    /// Questions that were cancelled after they were sent: an answer may be on its way.
    cancelled: BTreeSet<u64>,
    /// Up to here the numbers of cancelled questions are not known any more.
    forgotten: u64,
    /// Questions that callers wait for, asked or not, and their bytes.
    waiting: (usize, usize),
}

impl Questions {
    pub(super) fn new(agent: AgentId, presence: Presence) -> Arc<Self> {
        Arc::new(Self {
            serving: Serving { agent, since: mint::now(), presence: Arc::new(presence) },
            places: Turns::new(OPEN),
            open: Mutex::default(),
            bell: Notify::new(),
            ended: CancellationToken::new(),
        })
    }

    fn lock(&self) -> MutexGuard<'_, Open> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fails every question: the connection has ended.
    pub(super) fn end(&self) {
        self.ended.cancel();
        self.lock().callers.clear();
    }

    /// Waits until there is a message to the agent.
    pub(super) async fn sendable(&self) {
        loop {
            // Rung in between, the bell is heard afterwards.
            if self.has_unsent() {
                return;
            }
            self.bell.notified().await;
        }
    }

    fn has_unsent(&self) -> bool {
        let open = self.lock();
        !open.unsent.is_empty() || !open.unsent_cancels.is_empty()
    }

    /// The next message to the agent, if there still is one.
    pub(super) fn next(&self) -> Option<Asked> {
        let mut open = self.lock();
        if let Some(cancelled) = open.unsent_cancels.pop_front() {
            return Some(Asked::Cancelled(cancelled));
        }
        let (question, deadline, ask) = open.unsent.pop_front()?;
        Some(Asked::Question(question, deadline.saturating_duration_since(Instant::now()), ask))
    }

    /// Hands an answer to the caller that waits for it. One to a question that was cancelled is dropped.
    ///
    /// # Errors
    /// When no such question is open, or it is of another kind.
    pub(super) fn answer(&self, Answered(question, answer): Answered) -> Result<(), Refusal> {
        let mut open = self.lock();
        let was_sent = !open.unsent.iter().any(|(unsent, ..)| *unsent == question);
        let caller = if was_sent { open.callers.remove(&question) } else { None };
        let Some((kind, caller)) = caller else {
            let on_its_way = open.cancelled.remove(&question) || (1..=open.forgotten).contains(&question);
            return if on_its_way { Ok(()) } else { Err(unknown_question(question).into()) };
        };
        drop(open);
        match answer.kind() {
            // A caller that has just gone does not need it.
            None => drop(caller.send(answer)),
            Some(found) if found == kind => drop(caller.send(answer)),
            Some(found) => {
                let message = format!(
                    "question {question} is of the kind {}, its answer of the kind {}",
                    kind.feature(),
                    found.feature()
                );
                let failure = Failure::new(Reason::InvalidRequest, message).detail(Detail::UnexpectedField);
                return Err(failure.field("answer.answer").hint("answer with the member of the question").into());
            }
        }
        Ok(())
    }

    /// Asks the agent, and waits for its answer until the deadline.
    pub(super) async fn ask(self: &Arc<Self>, asker: &Asker, ask: Ask, deadline: Instant) -> Result<Answer, Refusal> {
        let _waiting = Waiting::begin(self, ask.size())?;
        let place = tokio::select! {
            place = timeout_at(deadline, self.places.take(asker.peer.party())) => place.map_err(|_| too_late())?,
            () = self.ended.cancelled() => return Err(Refusal::denied(agent_lost())),
        };
        let kind = ask.kind();
        let (sender, answer) = oneshot::channel();
        let _open = OpenQuestion { number: self.add(kind, sender, ask, deadline)?, questions: Arc::clone(self) };
        let answer =
            timeout_at(deadline, answer).await.map_err(|_| too_late())?.map_err(|_| Refusal::denied(agent_lost()))?;
        drop(place);
        answer.into_result().map_err(Refusal::denied)
    }

    fn add(
        &self,
        kind: QuestionKind,
        caller: oneshot::Sender<Answer>,
        ask: Ask,
        deadline: Instant,
    ) -> Result<u64, Refusal> {
        let mut open = self.lock();
        // Checked under the lock: whatever is added later is not failed by the end.
        if self.ended.is_cancelled() {
            return Err(Refusal::denied(agent_lost()));
        }
        open.newest += 1;
        let number = open.newest;
        open.callers.insert(number, (kind, caller));
        open.unsent.push_back((number, deadline, Box::new(ask)));
        drop(open);
        self.bell.notify_one();
        Ok(number)
    }

    /// Takes back a question that its caller does not wait for any more.
    fn withdraw(&self, number: u64) {
        let mut open = self.lock();
        if open.callers.remove(&number).is_none() {
            return;
        }
        let before = open.unsent.len();
        open.unsent.retain(|(unsent, ..)| *unsent != number);
        if open.unsent.len() < before {
            return;
        }
        open.unsent_cancels.push_back(number);
        open.cancelled.insert(number);
        if open.cancelled.len() > CANCELLED
            && let Some(oldest) = open.cancelled.pop_first()
        {
            open.forgotten = oldest;
        }
        drop(open);
        self.bell.notify_one();
    }
}

/// A question that is open; withdrawn when it is dropped without an answer.
struct OpenQuestion {
    number: u64,
    questions: Arc<Questions>,
}

impl Drop for OpenQuestion {
    fn drop(&mut self) {
        self.questions.withdraw(self.number);
    }
}

/// A caller that waits, counted with its question's bytes.
struct Waiting {
    bytes: usize,
    questions: Arc<Questions>,
}

impl Waiting {
    fn begin(questions: &Arc<Questions>, bytes: usize) -> Result<Self, Refusal> {
        let mut open = questions.lock();
        let (count, all) = (open.waiting.0 + 1, open.waiting.1 + bytes);
        if count > WAITING {
            return Err(Refusal::denied(exhausted("questions of one workspace", WAITING)));
        }
        if all > WAITING_BYTES {
            return Err(Refusal::denied(exhausted("bytes of questions of one workspace", WAITING_BYTES)));
        }
        open.waiting = (count, all);
        drop(open);
        Ok(Self { bytes, questions: Arc::clone(questions) })
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let mut open = self.questions.lock();
        open.waiting = (open.waiting.0.saturating_sub(1), open.waiting.1.saturating_sub(self.bytes));
    }
}

pub(super) fn too_late() -> Refusal {
    let failure = Failure::new(Reason::DeadlineExceeded, "the agent gave no answer in time");
    Refusal::denied(failure.hint("call again, and allow more time"))
}
