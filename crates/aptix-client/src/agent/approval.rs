//! Whether a batch may be written: asked of the person at the terminal, or decided once for all.

use std::collections::VecDeque;
use std::io::IsTerminal;
use std::sync::{Mutex, MutexGuard, OnceLock, PoisonError};

use aptix_model::batch::Batch;
use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Failure;
use aptix_model::id::BatchId;
use aptix_model::reason::Reason;
use tokio_util::sync::CancellationToken;

use crate::apply::Hidden;
use crate::apply::path_style::PathStyle;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::subject;
use crate::person::prompt::say;
use crate::person::{Answer, Person, allow_for_ever};
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
    /// Nobody.
    Never,
}

/// What was decided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Verdict {
    /// This.
    Decided(Decision),
    /// Nothing: the batch was withdrawn, the connection died, or the agent stops.
    Void,
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
    /// What a person agreed to lately, and for which batch: who has agreed to it is not asked again when the same is tried
    /// again, and is when it has become something else.
    agreed: Mutex<VecDeque<(BatchId, Sha256Digest)>>,
}

/// What a decision is about.
#[derive(Clone, Copy)]
pub(super) struct Question<'a> {
    pub(super) batch: BatchId,
    pub(super) proposal: &'a Proposal<'a>,
    pub(super) policy: &'a Policy,
    pub(super) policies: &'a PolicyFiles,
    /// Cancelled when the batch was withdrawn.
    pub(super) withdrawn: &'a CancellationToken,
    /// Cancelled when the agent stops.
    pub(super) stop: &'a CancellationToken,
}

/// What is asked before edits are compared with files that are withheld from their author.
#[derive(Clone, Copy)]
pub(super) struct Comparison<'a> {
    pub(super) batch: BatchId,
    pub(super) content: &'a Batch,
    pub(super) hidden: &'a [Hidden<'a>],
    pub(super) policy: &'a Policy,
    /// Cancelled when the batch was withdrawn.
    pub(super) withdrawn: &'a CancellationToken,
    /// Cancelled when the agent stops.
    pub(super) stop: &'a CancellationToken,
}

impl Comparison<'_> {
    /// What exactly is agreed to: these edits, and these files.
    fn subject(&self) -> Sha256Digest {
        let hidden: Vec<_> = self.hidden.iter().map(|hidden| (hidden.file, hidden.why.word())).collect();
        subject::digest_of(&(self.content, hidden))
    }
}

impl Approval {
    /// Decides in this way, with the person at the terminal if there is one.
    pub(super) fn new(approve: Approve, attended: Attended) -> Self {
        let approval =
            Self { approve, attended, person: OnceLock::new(), asking: Mutex::default(), agreed: Mutex::default() };
        if approve == Approve::Ask {
            // What is typed while no question is open is then read, and means nothing.
            approval.person();
        }
        approval
    }

    /// What can be said without seeing what would change.
    pub(super) fn beforehand(&self) -> Option<Failure> {
        (self.approve == Approve::Never).then(|| {
            let message = "the agent runs with --approve never and refuses every batch";
            let hint = "whoever runs the agent has to start it with another --approve; until then send nothing";
            Failure::new(Reason::Rejected, message).hint(hint)
        })
    }

    /// Decides about a proposal; asks where a person decides, until the batch is withdrawn or the agent stops. Blocks:
    /// must not be called from asynchronous code.
    pub(super) fn decide(&self, question: Question<'_>) -> Verdict {
        let decided = self.decided(question);
        if question.withdrawn.is_cancelled() { Verdict::Void } else { decided }
    }

    fn decided(&self, question: Question<'_>) -> Verdict {
        let refused = |failures| Verdict::Decided(Decision::Refuse(failures));
        if let Some(failure) = self.beforehand() {
            return refused(vec![failure]);
        }
        let unanswered = question.proposal.unanswered();
        if question.proposal.is_allowed() || (self.approve == Approve::Auto && unanswered.is_empty()) {
            return Verdict::Decided(Decision::Apply);
        }
        match self.person() {
            Some(person) => self.ask(person, question),
            None if unanswered.is_empty() => {
                let message = "a person has to agree, and the agent runs without a terminal on which to ask one";
                let hint = "start the agent on a terminal, or with --approve auto";
                refused(vec![Failure::new(Reason::ApprovalRequired, message).hint(hint)])
            }
            None => refused(unanswered),
        }
    }

    fn ask(&self, person: &Person, question: Question<'_>) -> Verdict {
        let Question { batch, proposal, policy, policies, withdrawn, stop } = question;
        let subject = proposal.digest();
        if self.agreed().contains(&(batch, subject)) {
            return Verdict::Decided(Decision::Approved(subject));
        }
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if withdrawn.is_cancelled() || stop.is_cancelled() {
            return Verdict::Void;
        }
        let (name, paths) = (format!("Batch {batch}"), PathStyle::among(proposal.workspace.roots().len()));
        tracing::info!(BatchId = %batch, "waiting for the person at the terminal to decide");
        let decided = person.decide(&name, proposal, subject, paths, policy.approval);
        let answer = tokio::runtime::Handle::current().block_on(async {
            tokio::select! {
                answer = decided => Some(answer),
                () = withdrawn.cancelled() => None,
                () = stop.cancelled() => None,
            }
        });
        let Some(Answer { verdict, always }) = answer else { return void() };
        allow_for_ever(proposal, policies, &always);
        if let Err(failures) = verdict {
            return Verdict::Decided(Decision::Refuse(failures));
        }
        tracing::info!(name: "Batch.Agreed", Event = "Batch.Agreed", BatchId = %batch, Subject = %subject);
        self.remember(batch, subject);
        Verdict::Decided(Decision::Approved(subject))
    }

    /// Asks whether edits may be compared with withheld files, in whatever way else is decided; nothing is decided where the
    /// batch was withdrawn or the agent stops. Blocks, as [`Self::decide`].
    pub(super) fn may_compare(&self, question: Comparison<'_>) -> Option<bool> {
        let Comparison { batch, hidden, policy, withdrawn, stop, .. } = question;
        let answer = match self.person() {
            None => Some(false),
            Some(_) if self.agreed().contains(&(batch, question.subject())) => Some(true),
            Some(person) => {
                let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
                tracing::info!(BatchId = %batch, "waiting for the person at the terminal to let a batch be compared");
                let name = format!("Batch {batch}");
                let asked = person.may_compare(&name, hidden, policy.approval);
                tokio::runtime::Handle::current().block_on(async {
                    tokio::select! {
                        answer = asked => Some(answer),
                        () = withdrawn.cancelled() => None,
                        () = stop.cancelled() => None,
                    }
                })
            }
        };
        if withdrawn.is_cancelled() || stop.is_cancelled() {
            return None;
        }
        if answer == Some(true) {
            self.remember(batch, question.subject());
        }
        answer
    }

    fn remember(&self, batch: BatchId, subject: Sha256Digest) {
        let mut agreed = self.agreed();
        if !agreed.contains(&(batch, subject)) {
            agreed.push_front((batch, subject));
            agreed.truncate(AGREED);
        }
    }

    fn agreed(&self) -> MutexGuard<'_, VecDeque<(BatchId, Sha256Digest)>> {
        self.agreed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn person(&self) -> Option<&Person> {
        let look = || match self.attended {
            Attended::OnTerminal if std::io::stdin().is_terminal() => Person::present(),
            Attended::OnTerminal | Attended::Never => None,
        };
        self.person.get_or_init(look).as_ref()
    }
}

fn void() -> Verdict {
    say("\nThe question is void: the batch was withdrawn, the connection is lost, or the agent stops.\n");
    Verdict::Void
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
