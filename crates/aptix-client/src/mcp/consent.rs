//! What a person has to agree to before a call writes it, and what they answered.
//!
//! Nothing is held while a person is asked: the call is carried out up to the question, and once more with the answer, which counts
//! for exactly the change that was shown.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::{Detail, Reason};

use crate::apply::proposal::{Decision, Proposal};
use crate::person::answer::Answer;
use crate::person::shown::{Shown, shown};

/// What helps where nobody can be asked, or nobody answers.
pub(super) const WAYS: &str = "leave the file out, or ask the user to approve it: on the page of `aptix mcp --review 127.0.0.1:0`, with \
                               `aptix apply` at a terminal, or for good in their policy file";
/// How often a person is asked about one call: each time it would write something else than what they saw.
const QUESTIONS: usize = 3;

/// What a person has to be asked about a call.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// What it is about, in a line.
    pub(super) title: String,
    /// Everything there is to see of it.
    pub(super) shown: Arc<Shown>,
    /// The digest of that.
    pub(super) subject: Sha256Digest,
    /// How long the person may take.
    pub(super) patience: Duration,
    /// Whether it shows something of a file that models are not shown: no client may have it.
    pub(super) is_withheld: bool,
    /// The refusal where it cannot be asked.
    unanswered: Vec<Failure>,
}

impl Question {
    /// The answer where it cannot be asked, and what helps then.
    pub(super) fn unasked(&self, hint: &str) -> Answer {
        let failures = self.unanswered.iter().cloned().map(|failure| failure.hint(hint));
        Answer { verdict: Err(failures.collect()), always: Vec::new(), agreed: Vec::new() }
    }
}

/// Who answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Answering {
    /// The person who has the review page open.
    Page,
    /// The person at the client, as that says.
    Client,
    /// Nobody.
    None,
}

/// The consent to what a call writes.
#[derive(Debug)]
pub(super) struct Consent {
    /// Who can be asked.
    pub(super) answering: Answering,
    /// The questions that were answered, and the last one with its answer.
    asked: usize,
    last: Option<(Question, Answer)>,
    /// The question that came up and is not answered.
    open: Mutex<Option<Question>>,
}

impl Consent {
    /// That of a call which nobody was asked about yet.
    pub(super) fn none(answering: Answering) -> Self {
        Self { answering, asked: 0, last: None, open: Mutex::default() }
    }

    /// That of the same call once a question is answered.
    pub(super) fn with_answer(&self, question: Question, answer: Answer) -> Self {
        Self { asked: self.asked + 1, last: Some((question, answer)), ..Self::none(self.answering) }
    }

    /// What the last question was about, in a line; nothing while nobody was asked.
    pub(super) fn title(&self) -> Option<&str> {
        self.last.as_ref().map(|(question, _)| question.title.as_str())
    }

    /// Whether the call goes on when a question is answered.
    pub(super) fn is_asking(&self) -> bool {
        self.with_open(|open| open.is_some())
    }

    /// Takes the question that came up.
    pub(super) fn take(&self) -> Option<Question> {
        self.with_open(Option::take)
    }

    /// Decides about what is to be written, as far as that is known; notes the question otherwise. The batches of calls are applied
    /// whole or not at all.
    pub(super) fn decide(&self, batch: BatchId, proposal: &Proposal<'_>, patience: Duration) -> Decision {
        let unanswered = proposal.unanswered();
        if unanswered.is_empty() {
            return Decision::Apply;
        }
        if let Some((_, Answer { verdict: Err(failures), .. })) = &self.last {
            return Decision::Refuse(failures.clone());
        }
        if self.answering == Answering::None {
            return Decision::Refuse(unanswered.into_iter().map(|failure| failure.hint(WAYS)).collect());
        }
        // Every byte before and after counts: it takes as long as the files are.
        let subject = proposal.digest();
        if self.last.as_ref().is_some_and(|(question, _)| question.subject == subject) {
            return Decision::Approved(subject);
        }
        if self.asked >= QUESTIONS {
            return Decision::Refuse(vec![overtaken()]);
        }
        let title = format!("Batch {batch}");
        let shown = shown(&title, proposal, subject);
        let is_on_page = self.answering == Answering::Page;
        let shown = Arc::new(if is_on_page { shown.with_bases(proposal) } else { shown });
        let is_withheld = proposal.is_withheld;
        self.with_open(|open| *open = Some(Question { title, shown, subject, patience, is_withheld, unanswered }));
        Decision::Refuse(vec![Failure::new(Reason::ApprovalRequired, "a person is asked")])
    }

    fn with_open<T>(&self, access: impl FnOnce(&mut Option<Question>) -> T) -> T {
        access(&mut self.open.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The refusal of a call that would have written another change each time that a person had looked at one.
fn overtaken() -> Failure {
    let message = "while a person looked at the change it became another one, time after time; nothing was written";
    let hint = "wait until nothing else changes the files, then send the call again";
    Failure::new(Reason::ApprovalRequired, message).detail(Detail::Changed).hint(hint)
}
