//! The batches that a workspace's history keeps, for the page, and how one of them is taken back.

use std::sync::{Arc, Mutex, PoisonError};

use aptix_model::failure::{Failure, Visible};
use aptix_model::reason::Reason;
use aptix_model::report::diff_part;
use aptix_model::state::BatchState;
use axum::http::StatusCode;
use serde::Serialize;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use super::board::{Board, By};
use super::refusal::Refusal;
use crate::apply::acting::Acting;
use crate::apply::proposal::{Decision, Proposal};
use crate::apply::{ApplyOptions, Mode};
use crate::person::answer::Answer;
use crate::person::in_time;
use crate::person::rows::Line;
use crate::person::shown::{Shown, ShownFile, shown};
use crate::person::user::user;
use crate::policy::Policy;
use crate::policy::files::PolicyFiles;
use crate::present::diff::{LineKind, diff_lines};
use crate::present::log::{self, Log, Query, Row};
use crate::present::past::{Past as Kept, past};
use crate::present::text::and_more;
use crate::present::untrusted::{Name, Quoted};
use crate::undo;
use crate::workspace::keep::history::entries::HistoryError;
use crate::workspace::keep::history::find::Wanted;
use crate::workspace::keep::history::newest;
use crate::workspace::roots::workspace::Workspace;

/// Batches that the page lists.
const LISTED: usize = 200;

/// The history of a workspace.
pub(super) struct Past {
    workspace: Arc<Workspace>,
    policies: Arc<PolicyFiles>,
    board: Arc<Board>,
    /// Cancelled when the page is served no more.
    stop: CancellationToken,
    /// One batch is taken back at a time.
    turn: Arc<Semaphore>,
    /// The one that is.
    work: Mutex<JoinSet<()>>,
    /// What was looked at last: its lines are asked for one file after the other.
    looked_at: Mutex<Option<(String, Arc<Shown>)>>,
}

/// A batch in the list.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(super) struct PastView {
    id: String,
    unix_ms: u64,
    /// What it did, in a line.
    title: String,
    label: Option<String>,
    /// What became of it since.
    notes: Vec<String>,
    can_be_undone: bool,
}

impl Past {
    pub(super) fn new(
        workspace: Arc<Workspace>,
        policies: Arc<PolicyFiles>,
        board: Arc<Board>,
        stop: CancellationToken,
    ) -> Self {
        let (turn, work, looked_at) = (Arc::new(Semaphore::new(1)), Mutex::default(), Mutex::default());
        Self { workspace, policies, board, stop, turn, work, looked_at }
    }

    /// The newest batches, newest first.
    pub(super) async fn list(&self) -> Result<Vec<PastView>, Refusal> {
        let workspace = Arc::clone(&self.workspace);
        let query = Query { most: Some(LISTED), ..Query::default() };
        let Log { batches, .. } = blocking(move || log::log(&workspace, query)).await?.map_err(failed)?;
        Ok(batches.iter().map(view).collect())
    }

    /// What a batch of the list changed.
    pub(super) async fn shown(&self, id: &str) -> Result<Arc<Shown>, Refusal> {
        let known = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, shown)) = known.filter(|(known, _)| known == id) {
            return Ok(shown);
        }
        let (workspace, wanted) = (Arc::clone(&self.workspace), id.to_owned());
        let found = blocking(move || {
            let entries = newest::newest(&workspace, LISTED)?;
            Ok(entries.iter().find(|entry| entry.name() == wanted).map(|entry| kept(&past(&workspace, entry))))
        });
        let found = found.await?.map_err(|error: HistoryError| failed(error))?;
        let shown = Arc::new(found.ok_or_else(|| gone(id))?);
        let mut looked_at = self.looked_at.lock().unwrap_or_else(PoisonError::into_inner);
        *looked_at = Some((id.to_owned(), Arc::clone(&shown)));
        Ok(shown)
    }

    /// Begins to take a batch back: what that would do becomes a question of the board, and is done once it is agreed to.
    pub(super) async fn take_back(self: &Arc<Self>, id: String) -> Result<(), Refusal> {
        let Ok(turn) = Arc::clone(&self.turn).try_acquire_owned() else {
            let why = "another batch is being taken back: answer that question first";
            return Err(Refusal(StatusCode::CONFLICT, why.to_owned()));
        };
        let (asked, is_asked) = oneshot::channel();
        let past = Arc::clone(self);
        {
            let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
            while work.try_join_next().is_some() {}
            work.spawn_blocking(move || past.undo(&id, asked, turn));
        }
        is_asked.await.unwrap_or_else(|_| Err(Refusal(StatusCode::INTERNAL_SERVER_ERROR, "it broke off".to_owned())))
    }

    /// Takes a batch back, once a person has seen what that does; `asked` learns that they are asked, or why not.
    fn undo(&self, id: &str, asked: oneshot::Sender<Result<(), Refusal>>, _turn: OwnedSemaphorePermit) {
        let title = format!("Taking back batch {id}");
        let mut asked = Some(asked);
        let undone = self.policies.read(&self.workspace).map_err(|error| error.failure().into()).and_then(|policy| {
            let person = user();
            let acting = Acting::of(&person);
            let options = ApplyOptions { acting, ..ApplyOptions::new(&policy, Mode::Commit) };
            undo::undo(&self.workspace, Wanted::Named(id), options, &mut |proposal: &Proposal<'_>| {
                let told = || asked.take().map(|asked| asked.send(Ok(())));
                self.decide(&title, proposal, &policy, told)
            })
        });
        let outcome = undone.map(|_| undo::acknowledge(&self.workspace)).map_err(|refusal| {
            let failures: Vec<_> = refusal.failures.iter().map(ToString::to_string).collect();
            failures.join("; ")
        });
        match (asked, outcome) {
            (Some(asked), Err(why)) => _ = asked.send(Err(Refusal(StatusCode::CONFLICT, Visible(&why).to_string()))),
            (Some(asked), Ok(_)) => _ = asked.send(Ok(())),
            (None, outcome) => self.board.note_outcome(&title, outcome.as_ref().map(|_| ()).map_err(String::as_str)),
        }
        *self.looked_at.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Past {
    /// Asks on the page whether a batch is taken back; `told` is called once the question is there.
    fn decide<T>(&self, title: &str, proposal: &Proposal<'_>, policy: &Policy, told: impl FnOnce() -> T) -> Decision {
        let (subject, wait) = (proposal.digest(), policy.approval);
        let mut question =
            self.board.ask(title, Arc::new(shown(title, proposal, subject).with_bases(proposal)), subject);
        told();
        let answered = async {
            tokio::select! {
                answer = in_time(wait, question.answer()) => Some(answer),
                () = self.stop.cancelled() => None,
            }
        };
        let Some(answer) = tokio::runtime::Handle::current().block_on(answered) else {
            let message = "the program that serves the review page stops";
            return Decision::Refuse(vec![Failure::new(Reason::InvalidState, message)]);
        };
        let by = answer.is_some().then_some(By::Page);
        let answer = answer.unwrap_or_else(|| Answer::too_late(wait));
        question.end(&answer, by);
        let holds = self.policies.still_holds(&self.workspace, policy).map_err(|failure| vec![failure]);
        match answer.verdict.and(holds) {
            Ok(()) => Decision::Approved(subject),
            Err(failures) => Decision::Refuse(failures),
        }
    }
}

fn view(row: &Row) -> PastView {
    let (word, first) = row.files.first().map_or(("", ""), |file| (file.status, file.path.as_str()));
    let more = and_more(row.files.len().saturating_sub(1));
    let title = format!("{} {}{more}", word.replace('_', " "), Name(first));
    let note = |what: &str, id: &Option<String>| id.as_ref().map(|id| format!("{what} {}", Visible(id)));
    let notes = [note("undid", &row.undoes), note("undone by", &row.undone_by)];
    let partly = (row.state == BatchState::Partial.word()).then(|| "applied in part".to_owned());
    let too_much = (!row.can_be_undone).then(|| "too much to be kept: cannot be undone".to_owned());
    PastView {
        id: row.batch_id.clone(),
        unix_ms: row.applied_unix_ms,
        title,
        label: row.batch_label.as_deref().filter(|_| row.undoes.is_none()).map(|label| Quoted(label).to_string()),
        notes: notes.into_iter().chain([partly, too_much]).flatten().collect(),
        can_be_undone: row.can_be_undone && row.undone_by.is_none(),
    }
}

/// What a batch of the history changed, in the form of a change that waits.
fn kept(past: &Kept) -> Shown {
    let mut totals = (0, 0);
    let files: Vec<_> = (past.report.files.iter().enumerate())
        .map(|(index, file)| {
            let diff = diff_lines(diff_part::of_file(&past.report, index).as_bytes());
            let count = |wanted| diff.iter().filter(|line| line.kind == wanted).count();
            let (added, removed) = (count(LineKind::Added), count(LineKind::Removed));
            totals = (totals.0 + added, totals.1 + removed);
            let to = file.renamed_to.as_deref().map(|to| format!(" to {}", Name(to))).unwrap_or_default();
            let title = format!("{} {}{to}, +{added} -{removed}", file.status.word(), Name(&file.path));
            ShownFile {
                index,
                target: file.path.clone(),
                name: Name(&file.path).to_string(),
                lines: std::iter::once(Line::head(title)).chain(diff.into_iter().map(Line::diff)).collect(),
                attention: None,
                allows: Vec::new(),
                base: None,
            }
        })
        .collect();
    let label = past.summary.label.as_deref().map(|label| Line::ours(format!("label {}", Quoted(label))));
    let omitted = past.report.diff_omitted.then(|| Line::ours("what it changed is too much to be kept"));
    let (added, removed) = totals;
    let totals = format!("{} {}, +{added} -{removed}", files.len(), if files.len() == 1 { "file" } else { "files" });
    Shown { head: label.into_iter().chain(omitted).collect(), files, totals, ..Shown::default() }
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    tokio::task::spawn_blocking(work).await.map_err(failed)
}

fn failed(error: impl std::fmt::Display) -> Refusal {
    Refusal(StatusCode::INTERNAL_SERVER_ERROR, Visible(&error.to_string()).to_string())
}

fn gone(id: &str) -> Refusal {
    Refusal(StatusCode::NOT_FOUND, format!("batch {} is not among the newest {LISTED} of this workspace", Visible(id)))
}
