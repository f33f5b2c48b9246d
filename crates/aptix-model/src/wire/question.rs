//! What a server asks of an agent, and what it answers: carried as protobuf, and known to those in between by kind and size.

use prost::Message as _;

use super::v1;
use crate::failure::Failure;
use crate::presence::QuestionKind;

/// What is asked.
#[derive(Clone, PartialEq, Debug)]
pub struct Ask(pub v1::question::Ask);

/// What is answered.
#[derive(Clone, PartialEq, Debug)]
pub struct Answer(pub v1::answer::Answer);

impl Ask {
    /// Its kind, which the agent must have named among its features.
    #[must_use]
    pub const fn kind(&self) -> QuestionKind {
        match &self.0 {
            v1::question::Ask::ReadFiles(_) => QuestionKind::Read,
            v1::question::Ask::StatFiles(_) => QuestionKind::Stat,
            v1::question::Ask::ListFiles(_) => QuestionKind::List,
            v1::question::Ask::SearchFiles(_) => QuestionKind::Search,
            v1::question::Ask::Preview(_) => QuestionKind::Preview,
            v1::question::Ask::Prepare(_) => QuestionKind::Prepare,
            v1::question::Ask::CallTool(_) => QuestionKind::Tool,
            v1::question::Ask::ResolvePaths(_) => QuestionKind::Paths,
        }
    }

    /// Bytes that it takes in a message, at most ten fewer than the whole message has.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.0 {
            v1::question::Ask::ReadFiles(ask) => ask.encoded_len(),
            v1::question::Ask::StatFiles(ask) => ask.encoded_len(),
            v1::question::Ask::ListFiles(ask) => ask.encoded_len(),
            v1::question::Ask::SearchFiles(ask) => ask.encoded_len(),
            v1::question::Ask::Preview(edit) => edit.encoded_len(),
            v1::question::Ask::Prepare(ask) => ask.encoded_len(),
            v1::question::Ask::CallTool(ask) => ask.encoded_len(),
            v1::question::Ask::ResolvePaths(ask) => ask.encoded_len(),
        }
    }
}

impl Answer {
    /// Answers why there is no answer.
    #[must_use]
    pub fn failed(failure: Failure) -> Self {
        Self(v1::answer::Answer::Failure(failure.into()))
    }

    /// Bytes that it takes in a message.
    #[must_use]
    pub fn size(&self) -> usize {
        match &self.0 {
            v1::answer::Answer::Failure(answer) => answer.encoded_len(),
            v1::answer::Answer::ReadFiles(answer) => answer.encoded_len(),
            v1::answer::Answer::StatFiles(answer) => answer.encoded_len(),
            v1::answer::Answer::ListFiles(answer) => answer.encoded_len(),
            v1::answer::Answer::SearchFiles(answer) => answer.encoded_len(),
            v1::answer::Answer::Preview(answer) => answer.encoded_len(),
            v1::answer::Answer::Prepare(answer) => answer.encoded_len(),
            v1::answer::Answer::CallTool(answer) => answer.encoded_len(),
            v1::answer::Answer::ResolvePaths(answer) => answer.encoded_len(),
        }
    }

    /// The answer, or why there is none.
    ///
    /// # Errors
    /// What the agent found.
    pub fn into_result(self) -> Result<Self, Failure> {
        match self.0 {
            v1::answer::Answer::Failure(failure) => Err(failure.into()),
            _ => Ok(self),
        }
    }

    /// The kind of question that it answers; absent for a failure, which answers any.
    #[must_use]
    pub const fn kind(&self) -> Option<QuestionKind> {
        match &self.0 {
            v1::answer::Answer::Failure(_) => None,
            v1::answer::Answer::ReadFiles(_) => Some(QuestionKind::Read),
            v1::answer::Answer::StatFiles(_) => Some(QuestionKind::Stat),
            v1::answer::Answer::ListFiles(_) => Some(QuestionKind::List),
            v1::answer::Answer::SearchFiles(_) => Some(QuestionKind::Search),
            v1::answer::Answer::Preview(_) => Some(QuestionKind::Preview),
            v1::answer::Answer::Prepare(_) => Some(QuestionKind::Prepare),
            v1::answer::Answer::CallTool(_) => Some(QuestionKind::Tool),
            v1::answer::Answer::ResolvePaths(_) => Some(QuestionKind::Paths),
        }
    }
}
