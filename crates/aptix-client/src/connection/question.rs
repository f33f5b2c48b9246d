//! What the server asks of the agent: who answers it, and how the answers go back.

use std::fmt;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::presence::QuestionKind;
use aptix_model::question::Question as Asked;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::{Answer, Ask};
use aptix_model::wire::v1;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use crate::policy::files::PolicyFiles;
use crate::workspace::roots::workspace::Workspace;

/// Bytes of a message besides its answer.
const AROUND_ANSWER: usize = 64;

/// Answers questions about the files of a workspace.
pub trait Answering: fmt::Debug + Send + Sync {
    /// The kinds of question that it answers; the server asks no others.
    fn kinds(&self) -> &[QuestionKind];

    /// Answers one question; content of a batch has come with it, never as a blob. It may block, and is called for several questions at one time. What takes long checks
    /// [`Wanted::is_over`] again and again, and returns any answer once that is true.
    fn answer(&self, local: &Workspace, policy: &PolicyFiles, question: &Asked, wanted: &Wanted) -> Answer;
}

/// Answers nothing.
#[derive(Clone, Copy, Debug)]
pub struct Unanswered;

impl Answering for Unanswered {
    fn kinds(&self) -> &[QuestionKind] {
        &[]
    }

    fn answer(&self, _: &Workspace, _: &PolicyFiles, _: &Asked, _: &Wanted) -> Answer {
        unsupported()
    }
}

/// Whether an answer is still wanted.
#[derive(Clone, Debug)]
pub struct Wanted {
    until: Instant,
    cancelled: CancellationToken,
}

impl Wanted {
    /// Until this much time has passed, or the token is cancelled.
    #[must_use]
    pub fn for_time(time: Duration, cancelled: CancellationToken) -> Self {
        let now = Instant::now();
        // A time that no clock reaches is as good as a day.
        let until = now.checked_add(time).unwrap_or(now + Duration::from_secs(24 * 3600));
        Self { until, cancelled }
    }

    /// Whether the time is over, or the caller has gone.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.cancelled.is_cancelled() || Instant::now() >= self.until
    }

    /// Waits until it is over.
    pub async fn over(&self) {
        let _ = timeout_at(self.until, self.cancelled.cancelled()).await;
    }
}

/// A question of the server.
#[derive(Clone, PartialEq, Debug)]
pub struct Question {
    /// Names it on the connection.
    pub number: u64,
    /// How long an answer is of use.
    pub time_left: Duration,
    /// What is asked; absent if this version does not know it.
    pub ask: Option<Ask>,
}

impl From<v1::Question> for Question {
    fn from(question: v1::Question) -> Self {
        let time_left = question.time_left.and_then(|left| Duration::try_from(left).ok());
        Self { number: question.question_id, time_left: time_left.unwrap_or_default(), ask: question.ask.map(Ask) }
    }
}

/// Sends answers to the server.
#[derive(Clone, Debug)]
pub struct Answers(pub(super) mpsc::Sender<v1::ServeRequest>);

impl Answers {
    /// Sends an answer, as soon as the server takes it. Nothing happens if the connection has ended.
    pub async fn send(&self, number: u64, answer: Answer) {
        let answer = v1::Answer { question_id: number, answer: Some(answer.0) };
        let message = v1::ServeRequest { message: Some(v1::serve_request::Message::Answer(answer)) };
        let _ = self.0.send(message).await;
    }
}

/// The answer to a question that this agent does not know.
#[must_use]
pub fn unsupported() -> Answer {
    let failure = Failure::new(Reason::Unavailable, "this agent does not answer questions of this kind");
    Answer::failed(failure.detail(Detail::NoAgent).hint("update aptix on the workstation"))
}

/// An answer that fits into a message, or the failure that says that it does not.
#[must_use]
pub fn fitting(answer: Answer) -> Answer {
    let most = MESSAGE_BYTES - AROUND_ANSWER;
    match answer.size() {
        size if size <= most => answer,
        size => {
            let failure =
                Failure::new(Reason::TooLarge, format!("the answer has {size} bytes, at most {most} are sent"));
            Answer::failed(failure.hint("ask for fewer files, or for a part of them"))
        }
    }
}
