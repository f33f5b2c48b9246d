//! Decides whether a batch may be written: asks the person at the terminal, or as the agent was started.

use std::collections::{HashSet, VecDeque};
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use aptix_model::batch::{Atomicity, Batch};
use aptix_model::digest::Sha256Digest;
use aptix_model::events::event::Event;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::{Detail, Reason};
use tokio_util::sync::CancellationToken;

use crate::apply::Hidden;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::subject;
use crate::apply::traced::Traced;
use crate::person::prompt::say;
use crate::person::{Answer, Person, allow_always};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;

/// Agreements that are remembered, in case the same is tried again.
const AGREED: usize = 16;

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Approve {
    /// The person at the terminal is shown the diff and asked; without a terminal, only what policy allows is applied.
    Ask,
    /// Every batch that passes all checks is applied; only what policy asks about is asked.
    Auto,
    /// Every batch is refused.
    Never,
}

/// Who there is to be asked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Attended {
    /// The person at the terminal, if the process was started on one.
    OnTerminal,
    /// No one.
    Never,
}

/// Decides, and asks where that is needed.
#[derive(Debug)]
pub(super) struct Approval {
    approve: Approve,
    attended: Attended,
    /// Who is asked; looked for when there is a question.
    person: OnceLock<Option<Person>>,
    /// One question at a time.
    asking: Mutex<()>,
    /// What a person agreed to lately, and for which batch: the same is not asked about again when it is tried again.
    agreed: Mutex<VecDeque<Agreed>>,
}

/// What a person agreed to at once.
#[derive(Debug)]
struct Agreed {
    batch: BatchId,
    /// The digest of the proposal; of a batch that is applied file by file, that of each change.
    parts: HashSet<Sha256Digest>,
}

/// What every question about a batch depends on.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) batch: BatchId,
    pub(super) traced: &'a Traced,
    pub(super) policy: &'a Policy,
    pub(super) policies: &'a PolicyFiles,
    /// Cancelled when the batch was withdrawn.
    pub(super) withdrawn: &'a CancellationToken,
    /// Cancelled when the agent stops.
    pub(super) stop: &'a CancellationToken,
}

impl Question<'_> {
    fn is_void(&self) -> bool {
        self.withdrawn.is_cancelled() || self.stop.is_cancelled()
    }

    /// Waits for an answer; nothing once the question is void.
    fn wait<T>(&self, answer: impl Future<Output = T>) -> Option<T> {
        tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                answer = answer => Some(answer),
                () = self.withdrawn.cancelled() => None,
                () = self.stop.cancelled() => None,
            }
        })
    }
}

impl Approval {
    /// Decides as the agent was started, with the person at the terminal if there is one.
    pub(super) fn new(approve: Approve, attended: Attended) -> Self {
        let approval =
            Self { approve, attended, person: OnceLock::new(), asking: Mutex::default(), agreed: Mutex::default() };
        if approve == Approve::Ask {
            // From now on, what is typed while no question is open is read and dropped.
            approval.person();
        }
        approval
    }

    /// The refusal that needs no look at the batch, if there is one.
    pub(super) fn beforehand(&self) -> Option<Failure> {
        (self.approve == Approve::Never).then(|| {
            let message = "the agent runs with --approve never and refuses every batch";
            let hint = "the user has to restart the agent with another --approve; until then send nothing";
            Failure::new(Reason::Rejected, message).detail(Detail::NeverApproves).hint(hint)
        })
    }

    /// Decides about a proposal; asks where a person decides. Nothing once the batch is withdrawn, or the agent stops before
    /// there is an answer. Blocks: must not be called from asynchronous code.
    pub(super) fn decide(&self, question: Question<'_>, proposal: &Proposal<'_>) -> Option<Decision> {
        let decision = self.decision(question, proposal);
        decision.filter(|_| !question.withdrawn.is_cancelled())
    }

    fn decision(&self, question: Question<'_>, proposal: &Proposal<'_>) -> Option<Decision> {
        if let Some(failure) = self.beforehand() {
            return Some(Decision::Refuse(vec![failure]));
        }
        let unanswered = proposal.unanswered();
        if proposal.is_allowed() || (self.approve == Approve::Auto && unanswered.is_empty()) {
            return Some(Decision::Apply);
        }
        match self.person() {
            Some(person) => self.ask(person, question, proposal),
            None if unanswered.is_empty() => {
                let message = "a person has to agree, and the agent runs without a terminal on which to ask one";
                let hint = "start the agent on a terminal, or with --approve auto";
                Some(Decision::Refuse(vec![Failure::new(Reason::ApprovalRequired, message).hint(hint)]))
            }
            None => Some(Decision::Refuse(unanswered)),
        }
    }

    fn ask(&self, person: &Person, question: Question<'_>, proposal: &Proposal<'_>) -> Option<Decision> {
        let Question { batch, policy, policies, .. } = question;
        let subject = proposal.digest();
        // What is left of a batch that is applied file by file was agreed to with the files that are refused now.
        let parts = match proposal.batch.atomicity {
            Atomicity::AllOrNothing => vec![subject],
            Atomicity::PerFile => proposal.parts(),
        };
        if self.has_agreed(batch, &parts) {
            return Some(Decision::Approved(subject));
        }
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if question.is_void() {
            return None;
        }
        let name = format!("Batch {batch}");
        tracing::info!(BatchId = %batch, "waiting for the person at the terminal to decide");
        let Some(Answer { verdict, always }) = question.wait(person.decide(&name, proposal, subject, policy.approval))
        else {
            say("\nThe question is void: the batch was withdrawn, the connection is lost, or the agent stops.\n");
            return None;
        };
        allow_always(proposal, policies, &always);
        if let Err(failures) = verdict {
            return Some(Decision::Refuse(failures));
        }
        question.traced.log(Event::Agreed(subject));
        self.remember(batch, parts);
        Some(Decision::Approved(subject))
    }

    /// Asks whether edits may be compared with withheld files, also where no person decides about writes. Nothing once the batch is withdrawn
    /// or the agent stops. Blocks, as [`Self::decide`].
    pub(super) fn may_compare(&self, question: Question<'_>, content: &Batch, hidden: &[Hidden<'_>]) -> Option<bool> {
        let Question { batch, policy, .. } = question;
        // What exactly is agreed to: these edits, and these files.
        let files: Vec<_> = hidden.iter().map(|hidden| (hidden.file, hidden.why.word())).collect();
        let subject = subject::digest_of(&(content, files));
        let answer = match self.person() {
            None => Some(false),
            Some(_) if self.has_agreed(batch, &[subject]) => Some(true),
            Some(person) => {
                let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
                tracing::info!(BatchId = %batch, "waiting for the person at the terminal to let a batch be compared");
                question.wait(person.may_compare(&format!("Batch {batch}"), hidden, policy.approval))
            }
        };
        let answer = answer.filter(|_| !question.is_void());
        if answer == Some(true) {
            self.remember(batch, vec![subject]);
        }
        answer
    }

    /// Whether a person has agreed to all of these at once, for this batch.
    fn has_agreed(&self, batch: BatchId, parts: &[Sha256Digest]) -> bool {
        let covers = |agreed: &Agreed| agreed.batch == batch && parts.iter().all(|part| agreed.parts.contains(part));
        self.agreed().iter().any(covers)
    }

    fn remember(&self, batch: BatchId, parts: Vec<Sha256Digest>) {
        if !self.has_agreed(batch, &parts) {
            let mut agreed = self.agreed();
            agreed.push_front(Agreed { batch, parts: parts.into_iter().collect() });
            agreed.truncate(AGREED);
        }
    }

    fn agreed(&self) -> MutexGuard<'_, VecDeque<Agreed>> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The person at the terminal, if there is one.
    pub(super) fn person(&self) -> Option<&Person> {
        let look = || match self.attended {
            Attended::OnTerminal if std::io::stdin().is_terminal() => Person::present(),
            Attended::OnTerminal | Attended::Never => None,
        };
        self.person.get_or_init(look).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_never_approves_says_so_before_it_looks() {
        let fixed = |approve| Approval::new(approve, Attended::Never);
        assert_eq!(fixed(Approve::Never).beforehand().unwrap().reason, Reason::Rejected);
        assert_eq!(fixed(Approve::Auto).beforehand(), None);
        assert_eq!(fixed(Approve::Ask).beforehand(), None);
    }
}
