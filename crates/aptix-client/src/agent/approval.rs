//! Whether a batch may be written: asked of the person at the terminal, or decided once for all.

use std::io::IsTerminal;
use std::sync::OnceLock;

use aptix_model::failure::Failure;
use aptix_model::reason::Reason;
use tokio_util::sync::CancellationToken;

use crate::cli::diff::Paths;
use crate::person::{Answer, Person, say};
use crate::proposal::Proposal;

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
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
    /// It may be written.
    Yes,
    /// It must not, and the author is told why.
    No(Vec<Failure>),
    /// Nothing was decided: the batch was withdrawn, the connection died, or the agent stops.
    Void,
}

/// Decides, and asks where that is needed.
#[derive(Debug)]
pub(super) struct Approval {
    approve: Approve,
    attended: Attended,
    /// Who is asked; looked for when there is a question.
    person: OnceLock<Option<Person>>,
}

impl Approval {
    /// Decides in this way, with the person at the terminal if there is one.
    pub(super) fn new(approve: Approve, attended: Attended) -> Self {
        let approval = Self { approve, attended, person: OnceLock::new() };
        if approve == Approve::Ask {
            // What is typed while no question is open is then read, and means nothing.
            approval.person();
        }
        approval
    }

    /// What can be said without seeing what would change.
    pub(super) fn beforehand(&self) -> Option<Failure> {
        match self.approve {
            Approve::Never => {
                let message = "the agent runs with --approve never and refuses every batch";
                Some(Failure::new(Reason::Rejected, message))
            }
            Approve::Ask | Approve::Auto => None,
        }
    }

    /// Decides about a proposal; asks where a person decides, until the batch is withdrawn or the agent stops. Blocks:
    /// must not be called from asynchronous code.
    pub(super) fn decide(
        &self,
        name: &str,
        proposal: &Proposal<'_>,
        paths: Paths,
        withdrawn: &CancellationToken,
        stop: &CancellationToken,
    ) -> Verdict {
        if let Some(failure) = self.beforehand() {
            return Verdict::No(vec![failure]);
        }
        let unanswered = proposal.unanswered();
        let verdict = if proposal.is_allowed() || (self.approve == Approve::Auto && unanswered.is_empty()) {
            Verdict::Yes
        } else if let Some(person) = self.person() {
            let decided = person.decide(name, proposal, paths);
            tokio::runtime::Handle::current().block_on(async {
                tokio::select! {
                    answer = decided => answer.into(),
                    () = withdrawn.cancelled() => void(),
                    () = stop.cancelled() => void(),
                }
            })
        } else if unanswered.is_empty() {
            let message = "a person has to agree, and the agent runs without a terminal on which to ask one";
            let hint = "start the agent on a terminal, or with --approve auto";
            Verdict::No(vec![Failure::new(Reason::ApprovalRequired, message).hint(hint)])
        } else {
            Verdict::No(unanswered)
        };
        if withdrawn.is_cancelled() { Verdict::Void } else { verdict }
    }

    fn person(&self) -> Option<&Person> {
        let look = || match self.attended {
            Attended::OnTerminal if std::io::stdin().is_terminal() => Person::present(),
            Attended::OnTerminal | Attended::Never => None,
        };
        self.person.get_or_init(look).as_ref()
    }
}

impl From<Answer> for Verdict {
    fn from(answer: Answer) -> Self {
        match answer {
            Answer::Yes => Self::Yes,
            Answer::No(failure) => Self::No(vec![*failure]),
        }
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
