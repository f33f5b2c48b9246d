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

/// What helps where nobody can be asked.
pub(super) const WAYS: &str = "leave the file out, or have the user approve it: on the page of `aptix mcp --review 127.0.0.1:0`, in the form of \
                    a client that declares elicitation, with `aptix apply` at a terminal, or for good in the policy file, which \
                    `aptix policy explain PATH` names";

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
    /// The refusal where it cannot be asked.
    unanswered: Vec<Failure>,
}

impl Question {
    /// The answer where it cannot be asked, and what helps then.
    pub(super) fn unasked(&self, hint: &str) -> Answer {
        let failures = self.unanswered.iter().cloned().map(|failure| failure.hint(hint));
        Answer { verdict: Err(failures.collect()), always: Vec::new(), agreed: Vec::new() }
    }

    /// The answer to a question that was asked so often that another change was to be written each time.
    pub(super) fn overtaken() -> Answer {
        let message = "while a person looked at the change it became another one, time after time; nothing was written";
        let hint = "wait until nothing else changes the files, then send the call again";
        Answer::no(Failure::new(Reason::ApprovalRequired, message).detail(Detail::Changed).hint(hint))
    }
}

/// A question, and what the person answered.
#[derive(Debug)]
struct Answered {
    question: Question,
    answer: Answer,
}

/// The consent to what a call writes.
#[derive(Debug, Default)]
pub(super) struct Consent {
    /// Whether there is someone to be asked.
    can_ask: bool,
    answered: Option<Answered>,
    /// What came up.
    question: Mutex<Option<Question>>,
}

impl Consent {
    /// That of a call which nobody was asked about yet.
    pub(super) fn open(can_ask: bool) -> Self {
        Self { can_ask, ..Self::default() }
    }

    /// That of the same call once a question is answered.
    pub(super) fn answered(&self, question: Question, answer: Answer) -> Self {
        Self { answered: Some(Answered { question, answer }), ..Self::open(self.can_ask) }
    }

    /// Whether the call is carried out for the first time.
    pub(super) const fn is_first(&self) -> bool {
        self.answered.is_none()
    }

    /// Whether the call goes on when a question is answered.
    pub(super) fn is_asking(&self) -> bool {
        self.with(|question| question.is_some())
    }

    /// Takes the question that came up.
    pub(super) fn take(&self) -> Option<Question> {
        self.with(Option::take)
    }

    /// Decides about what is to be written, as far as that is known; notes the question otherwise.
    pub(super) fn decide(&self, batch: BatchId, proposal: &Proposal<'_>, patience: Duration) -> Decision {
        let unanswered = proposal.unanswered();
        if unanswered.is_empty() {
            return Decision::Apply;
        }
        if let Some(decision) = self.answered.as_ref().and_then(|answered| answered.about(proposal)) {
            return decision;
        }
        if !self.can_ask {
            return Decision::Refuse(unanswered.into_iter().map(|failure| failure.hint(WAYS)).collect());
        }
        let (title, subject) = (title(batch), proposal.digest());
        let shown = Arc::new(shown(&title, proposal, subject));
        self.with(|question| *question = Some(Question { title, shown, subject, patience, unanswered }));
        Decision::Refuse(vec![Failure::new(Reason::ApprovalRequired, "a person is asked")])
    }

    fn with<T>(&self, access: impl FnOnce(&mut Option<Question>) -> T) -> T {
        access(&mut self.question.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Answered {
    /// What the answer says of a proposal; nothing if that is not what was shown.
    fn about(&self, proposal: &Proposal<'_>) -> Option<Decision> {
        let Self { question, answer } = self;
        match &answer.verdict {
            Ok(()) => (proposal.digest() == question.subject).then_some(Decision::Approved(question.subject)),
            Err(failures) => Some(Decision::Refuse(failures.clone())),
        }
    }
}

/// What questions about a batch are called.
pub(super) fn title(batch: BatchId) -> String {
    format!("Batch {batch}")
}
