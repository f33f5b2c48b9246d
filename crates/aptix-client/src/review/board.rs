//! The questions that wait for a person, and how the last ones ended.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use aptix_model::digest::Sha256Digest;
use aptix_model::failure::Visible;
use serde::Serialize;
use tokio::sync::{oneshot, watch};

use crate::person::answer::{Answer, refusal};
use crate::person::shown::Shown;

/// Questions that ended and are still shown.
const ENDED: usize = 50;
/// How long a page waits to be told how its answer ended: who asks has it in hand already.
const TOLD: Duration = Duration::from_secs(30);

/// The questions of one process.
#[derive(Debug, Default)]
pub struct Board {
    state: Mutex<State>,
    /// Counts what changed, for those who watch.
    version: watch::Sender<u64>,
}

#[derive(Debug, Default)]
struct State {
    asked: u64,
    waiting: BTreeMap<u64, Waiting>,
    ended: VecDeque<Ended>,
}

/// A question that waits.
#[derive(Clone, Debug)]
pub(super) struct Question {
    /// What it is about, in a line.
    pub(super) title: String,
    /// Everything there is to see of it.
    pub(super) shown: Arc<Shown>,
    /// The digest of that: an answer has to name it.
    pub(super) subject: Sha256Digest,
    /// When it was asked.
    pub(super) asked: Instant,
}

#[derive(Debug)]
struct Waiting {
    question: Question,
    /// Takes the first answer.
    answer: Option<oneshot::Sender<Given>>,
}

/// An answer from a page, and where to say how the question ended.
#[derive(Debug)]
struct Given {
    answer: Answer,
    told: oneshot::Sender<Ended>,
}

/// How a question ended.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct Ended {
    number: u64,
    title: String,
    totals: String,
    /// How, in words: `approved in the browser`.
    how: String,
    /// What became of it then, once that is known.
    outcome: Option<String>,
    /// Whether `outcome` says that it failed.
    has_failed: bool,
    /// Whether it is noted what became of the batch.
    #[serde(skip)]
    has_outcome: bool,
}

/// Where a question was answered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum By {
    /// On the page.
    Page,
    /// On the terminal.
    Terminal,
}

impl By {
    const fn place(self) -> &'static str {
        match self {
            Self::Page => "in the browser",
            Self::Terminal => "at the terminal",
        }
    }
}

/// What a person decided on the page.
#[derive(Debug)]
pub(super) enum Verdict {
    /// It is right, but for these files of a batch that is applied file by file: their positions, and why.
    Approve(Vec<(usize, String)>),
    /// It is not, for this reason.
    Reject(String),
}

/// Why an answer does not count.
#[derive(Debug, thiserror::Error)]
pub(super) enum NotTaken {
    #[error("{0}")]
    Ended(String),
    #[error("the question is not open any more: the batch was withdrawn, the connection is lost, or the time is over")]
    Gone,
    #[error("another answer to this question was given a moment ago")]
    Answered,
    #[error("the answer is to another change than the one that waits: look at it again")]
    Changed,
    #[error("files of this batch cannot be refused by themselves: it is applied whole, or not at all")]
    Whole,
    #[error("the batch has no file {0}")]
    NoFile(usize),
}

impl Board {
    /// Puts a question up, until what is returned ends.
    pub(crate) fn ask(self: &Arc<Self>, title: &str, shown: Arc<Shown>, subject: Sha256Digest) -> Asked {
        let (answer, given) = oneshot::channel();
        let is_comparison = shown.is_comparison;
        let question = Question { title: title.to_owned(), shown, subject, asked: Instant::now() };
        let mut state = self.state();
        state.asked += 1;
        let number = state.asked;
        state.waiting.insert(number, Waiting { question, answer: Some(answer) });
        self.changed(state);
        Asked { board: Arc::clone(self), number, given, told: None, is_comparison, is_allowed: false, how: None }
    }

    /// Notes what became of something that was decided: `title` is that of the question.
    pub(crate) fn note_outcome(&self, title: &str, outcome: Result<(), &str>) {
        let mut state = self.state();
        let is_newest = |ended: &&mut Ended| ended.title == title;
        // A comparison that nobody allowed says all there is to say.
        let Some(ended) = state.ended.iter_mut().find(is_newest).filter(|ended| ended.has_outcome) else { return };
        ended.has_failed = outcome.is_err();
        ended.outcome = Some(match outcome {
            Ok(()) => "written".to_owned(),
            Err(why) => format!("nothing was written: {}", Visible(why)),
        });
        self.changed(state);
    }

    /// Gives an answer to a question, which the person saw with this digest; how it ended.
    pub(super) async fn answer(&self, number: u64, subject: Sha256Digest, verdict: Verdict) -> Result<Ended, NotTaken> {
        let told = {
            let mut state = self.state();
            let Some(waiting) = state.waiting.get_mut(&number) else { return Err(state.over(number)) };
            if waiting.question.subject != subject {
                return Err(NotTaken::Changed);
            }
            let answer = to_answer(&waiting.question.shown, verdict)?;
            let sender = waiting.answer.take().ok_or(NotTaken::Answered)?;
            let (told, ended) = oneshot::channel();
            sender.send(Given { answer, told }).map_err(|_| NotTaken::Gone)?;
            ended
        };
        match tokio::time::timeout(TOLD, told).await {
            Ok(Ok(ended)) => Ok(ended),
            _ => Err(self.state().over(number)),
        }
    }

    /// The questions that wait, by their numbers, oldest first; those that ended, newest first; and which version of it that is.
    pub(super) fn look(&self) -> (u64, Vec<(u64, Question)>, Vec<Ended>) {
        let state = self.state();
        let waiting = state.waiting.iter().map(|(number, waiting)| (*number, waiting.question.clone()));
        (*self.version.borrow(), waiting.collect(), state.ended.iter().cloned().collect())
    }

    /// A question that waits.
    pub(super) fn question(&self, number: u64) -> Option<Question> {
        self.state().waiting.get(&number).map(|waiting| waiting.question.clone())
    }

    /// Waits until there is another version than this one.
    pub(super) async fn changed_since(&self, version: u64) {
        // The sender is this board's own: it does not go before its watchers.
        let _ = self.version.subscribe().wait_for(|now| *now != version).await;
    }

    /// Has those who watch look again.
    pub(super) fn touch(&self) {
        self.changed(self.state());
    }

    /// Tells those who watch.
    fn changed(&self, state: MutexGuard<'_, State>) {
        self.version.send_modify(|version| *version += 1);
        drop(state);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Why an answer to a question comes too late.
    fn over(&self, number: u64) -> NotTaken {
        let ended = self.ended.iter().find(|ended| ended.number == number);
        ended.map_or(NotTaken::Gone, |Ended { how, .. }| {
            NotTaken::Ended(format!("it was {how} before; nothing changed by this answer"))
        })
    }
}

/// What a verdict means for a change.
fn to_answer(shown: &Shown, verdict: Verdict) -> Result<Answer, NotTaken> {
    let refused = match verdict {
        Verdict::Reject(why) => return Ok(Answer::no(refusal("batch", &why))),
        Verdict::Approve(refused) if refused.is_empty() => return Ok(Answer::yes(Vec::new())),
        Verdict::Approve(_) if !shown.is_per_file => return Err(NotTaken::Whole),
        Verdict::Approve(refused) => refused,
    };
    let failures = refused.iter().map(|(index, why)| {
        let file = shown.files.iter().find(|file| file.index == *index).ok_or(NotTaken::NoFile(*index))?;
        Ok(refusal("change of this file", why).file(file.index, &file.target))
    });
    let failures = failures.collect::<Result<_, NotTaken>>()?;
    let is_refused = |index: &usize| refused.iter().any(|(refused, _)| refused == index);
    let agreed = shown.files.iter().map(|file| file.index).filter(|index| !is_refused(index)).collect();
    Ok(Answer { verdict: Err(failures), always: Vec::new(), agreed })
}

/// A question on the board. Dropped without an end, it was void.
#[derive(Debug)]
pub(crate) struct Asked {
    board: Arc<Board>,
    number: u64,
    given: oneshot::Receiver<Given>,
    told: Option<oneshot::Sender<Ended>>,
    is_comparison: bool,
    is_allowed: bool,
    how: Option<String>,
}

impl Asked {
    /// Waits for the answer of a page, however long that takes.
    pub(crate) async fn answer(&mut self) -> Answer {
        match (&mut self.given).await {
            Ok(Given { answer, told }) => {
                self.told = Some(told);
                answer
            }
            Err(_) => std::future::pending().await,
        }
    }

    /// Ends it with an answer; `None` where none came in time.
    pub(crate) fn end(mut self, answer: &Answer, by: Option<By>) {
        let done = match &answer.verdict {
            Ok(()) if self.is_comparison => "allowed to be compared",
            Ok(()) => "approved",
            Err(_) if self.is_comparison => "not allowed to be compared",
            Err(_) if !answer.agreed.is_empty() => "approved in part",
            Err(_) => "refused",
        };
        self.is_allowed = answer.verdict.is_ok();
        self.how = Some(match by {
            Some(by) => format!("{done} {}", by.place()),
            None if self.is_comparison => "not allowed to be compared, because nobody answered in time".to_owned(),
            None => "refused, because nobody answered in time".to_owned(),
        });
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        let mut state = self.board.state();
        let Some(Waiting { question, .. }) = state.waiting.remove(&self.number) else { return };
        let how = self.how.take().unwrap_or_else(|| "withdrawn".to_owned());
        let (number, totals) = (self.number, question.shown.totals.clone());
        let has_outcome = self.is_allowed || !self.is_comparison;
        let ended = Ended { number, title: question.title, totals, how, outcome: None, has_failed: false, has_outcome };
        state.ended.push_front(ended.clone());
        state.ended.truncate(ENDED);
        // An answer that came while the question ended otherwise is told how.
        let late = self.given.try_recv().ok().map(|given| given.told);
        for told in self.told.take().into_iter().chain(late) {
            let _ = told.send(ended.clone());
        }
        self.board.changed(state);
    }
}
