//! Decides whether a batch may be written: asks the person at the terminal, or as the agent was started.

use std::collections::{HashSet, VecDeque};
use std::io::IsTerminal;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

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
use crate::person::answer::{Answer, refusal};
use crate::person::prompt::say;
use crate::person::shown::{Shown, compared, shown};
use crate::person::{Person, allow_always, in_time};
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::review::{Board, By};

/// Agreements that are remembered, in case the same is tried again.
const AGREED: usize = 16;

/// Who decides.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
#[cfg_attr(feature = "cli", derive(clap::ValueEnum))]
pub enum Approve {
    /// The person at the terminal, or in a browser with `--review`, is shown the diff and asked; without either, only what policy allows is applied.
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
    /// Where a person can answer in a browser.
    board: Option<Arc<Board>>,
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
    /// Decides as the agent was started, with the person at the terminal if there is one, and the one in a browser if there is a
    /// board.
    pub(super) fn new(approve: Approve, attended: Attended, board: Option<Arc<Board>>) -> Self {
        let (person, asking, agreed) = (OnceLock::new(), Mutex::default(), Mutex::default());
        let approval = Self { approve, attended, person, board, asking, agreed };
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
        if self.can_ask() {
            return self.ask(question, proposal);
        }
        if !unanswered.is_empty() {
            return Some(Decision::Refuse(unanswered));
        }
        let message = "a person has to agree, and the agent runs without a terminal on which to ask one";
        let hint = "start the agent on a terminal, or with --review 127.0.0.1:0, or with --approve auto";
        Some(Decision::Refuse(vec![Failure::new(Reason::ApprovalRequired, message).hint(hint)]))
    }

    fn ask(&self, question: Question<'_>, proposal: &Proposal<'_>) -> Option<Decision> {
        let Question { batch, policies, .. } = question;
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
        let name = title(batch);
        tracing::info!(BatchId = %batch, "waiting for a person to decide");
        let shown = shown(&name, proposal, subject);
        let shown = Arc::new(if self.board.is_some() { shown.with_bases(proposal) } else { shown });
        let at_terminal = async |person: &Person| person.decide(&shown).await;
        let Answer { verdict, always, agreed } = self.answer(&name, question, (&shown, subject), at_terminal)?;
        allow_always(proposal, policies, &always);
        if let Err(failures) = verdict {
            if !agreed.is_empty() {
                self.remember(batch, proposal.parts_of(&agreed));
            }
            return Some(Decision::Refuse(failures));
        }
        question.traced.log(Event::Agreed(subject));
        self.remember(batch, parts);
        Some(Decision::Approved(subject))
    }

    /// The answer to a question, from the terminal or from a browser, wherever one comes first; nothing once it is void.
    fn answer(
        &self,
        name: &str,
        question: Question<'_>,
        (shown, subject): (&Arc<Shown>, Sha256Digest),
        at_terminal: impl AsyncFnOnce(&Person) -> Answer,
    ) -> Option<Answer> {
        let wait = question.policy.approval;
        let mut on_page = self.board.as_ref().map(|board| board.ask(name, Arc::clone(shown), subject));
        let answers = async {
            tokio::select! {
                biased;
                answer = async {
                    match self.person() {
                        Some(person) => at_terminal(person).await,
                        None => std::future::pending().await,
                    }
                } => (answer, By::Terminal),
                answer = async {
                    match &mut on_page {
                        Some(asked) => asked.answer().await,
                        None => std::future::pending().await,
                    }
                } => (answer, By::Page),
            }
        };
        let Some(answered) = question.wait(in_time(wait, answers)) else {
            say("\nThe question is void: the batch was withdrawn, the connection is lost, or the agent stops.\n");
            return None;
        };
        let (answer, by) = answered.map_or_else(|| (Answer::too_late(wait), None), |(answer, by)| (answer, Some(by)));
        if by == Some(By::Page) && self.person().is_some() {
            say("\nThe question was answered in the browser.\n");
        }
        if let Some(asked) = on_page {
            asked.end(&answer, by);
        }
        Some(answer)
    }

    /// Notes for the page what became of a batch that a person may have decided about.
    pub(super) fn ended(&self, batch: BatchId, outcome: Result<(), &[Failure]>) {
        let Some(board) = &self.board else { return };
        match outcome {
            Ok(()) => board.note_outcome(&title(batch), Ok(())),
            Err(failures) => {
                let failures: Vec<_> = failures.iter().map(ToString::to_string).collect();
                board.note_outcome(&title(batch), Err(&failures.join("; ")));
            }
        }
    }

    /// Asks whether edits may be compared with withheld files, also where no person decides about writes. Nothing once the batch is withdrawn
    /// or the agent stops. Blocks, as [`Self::decide`].
    pub(super) fn may_compare(&self, question: Question<'_>, content: &Batch, hidden: &[Hidden<'_>]) -> Option<bool> {
        let Question { batch, .. } = question;
        // What exactly is agreed to: these edits, and these files.
        let files: Vec<_> = hidden.iter().map(|hidden| (hidden.file, hidden.why.word())).collect();
        let subject = subject::digest_of(&(content, files));
        if self.has_agreed(batch, &[subject]) {
            return Some(true);
        }
        if !self.can_ask() {
            return Some(false);
        }
        let _asking = self.asking.lock().unwrap_or_else(PoisonError::into_inner);
        if question.is_void() {
            return None;
        }
        let name = title(batch);
        tracing::info!(BatchId = %batch, "waiting for a person to let a batch be compared");
        let shown = Arc::new(compared(&name, hidden));
        let at_terminal = async |person: &Person| match person.may_compare(&shown).await {
            true => Answer::yes(Vec::new()),
            false => Answer::no(refusal("batch", "")),
        };
        let may = self.answer(&name, question, (&shown, subject), at_terminal)?.verdict.is_ok();
        if question.is_void() {
            return None;
        }
        if may {
            self.remember(batch, vec![subject]);
        }
        Some(may)
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

    /// Whether there is a person to be asked.
    fn can_ask(&self) -> bool {
        self.board.is_some() || self.person().is_some()
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

/// What questions about a batch are called.
fn title(batch: BatchId) -> String {
    format!("Batch {batch}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_agent_that_never_approves_says_so_before_it_looks() {
        let fixed = |approve| Approval::new(approve, Attended::Never, None);
        assert_eq!(fixed(Approve::Never).beforehand().unwrap().reason, Reason::Rejected);
        assert_eq!(fixed(Approve::Auto).beforehand(), None);
        assert_eq!(fixed(Approve::Ask).beforehand(), None);
    }
}
