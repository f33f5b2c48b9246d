//! Calls of tools that plan or write: they become batches under the call's request id, and are answered in the words of the tool.

use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_engine::hunk::HunkError;
use aptix_model::batch::{Batch, FilePatch, Origin};
use aptix_model::documents::terms::{Wording, in_words_of};
use aptix_model::events::event::Event;
use aptix_model::events::trace::Trace;
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, FilePatchId, OwnerId, RequestId, WorkspaceId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchRecord, Sent};
use aptix_model::report::Warning;
use aptix_model::state::BatchState;
use aptix_model::tools::past::LISTED;
use aptix_model::tools::roots::Roots;
use aptix_model::tools::tool::{Call, Form, Tool};
use aptix_model::wire::question::Ask;
use aptix_model::wire::{View, v1, v1::answer, v1::question};

use super::agent_answer::{self, wrong};
use super::submitted::{Submitted, check_size, detached, edit_bytes};
use super::tool_results::{Answered, Shown, refused, refused_batch};
use super::{prepared, revert};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::hunks::Applying;
use crate::dispatcher::path_style::Naming;
use crate::dispatcher::prepared::{DEFAULT_LIFE, Preparing};
use crate::dispatcher::refusal::{Refusal, broken_off};
use crate::dispatcher::revert::{Reversal, Reverts};
use crate::dispatcher::submit::{Submission, log_repeated};
use crate::ticket::Asker;

/// A call that plans or writes.
pub(super) struct Writing<'a> {
    pub(super) dispatcher: &'a Arc<Dispatcher>,
    pub(super) asker: &'a Asker,
    /// How long an agent's plan is waited for.
    pub(super) patience: Duration,
    /// How long the end of a batch is waited for.
    pub(super) wait: Duration,
    /// When it is waited for no longer, if the caller's time is bounded.
    pub(super) until: Option<tokio::time::Instant>,
    pub(super) tool: &'static Tool,
    pub(super) workspace: WorkspaceId,
    pub(super) request_id: RequestId,
    /// Who may apply or replace what the call plans, if the caller says so.
    pub(super) owner: Option<OwnerId>,
    pub(super) origin: Origin,
    /// What is kept of the call with the batch that it stores.
    pub(super) sent: Sent,
    pub(super) trace: &'a Trace,
    pub(super) began: Instant,
}

impl Writing<'_> {
    /// Carries the call out. What the model did wrong is an answer.
    ///
    /// # Errors
    /// What the calling service did wrong, and what hinders the call now.
    pub(super) async fn carry_out(&self, arguments: &str) -> Result<Answered, Refusal> {
        let form = self.tool.form;
        // Where the roots are is known to the workstation alone.
        let mut call = match self.tool.parse(arguments, &Roots::default()) {
            Ok(call) => call,
            Err(document) => {
                let refusal = self.dispatcher.refuse(Vec::new(), &self.origin, Some(document));
                return Ok(self.refused(form, refusal.failures()));
            }
        };
        self.resolve(&mut call).await?;
        match call {
            Call::Document(document) => {
                self.write(document.batch, Wording::Document(document.dialect), &document.warnings).await
            }
            Call::Edit { patch, wording } => self.write(of_file(patch), wording, &[]).await,
            Call::Prepare { patch, existing } => self.prepare(of_file(patch), existing).await,
            Call::Apply { hunk } => self.apply(hunk).await,
            Call::Undo { batch, reason } => self.undo(batch, reason).await,
            // What only reads is asked of the agent instead.
            Call::Look(_) => Err(Refusal::denied(broken_off())),
        }
    }

    /// How long the agent may take from now on: the call has one deadline, however often it waits.
    fn left(&self) -> Duration {
        self.patience.saturating_sub(self.began.elapsed())
    }

    /// Has the agent say which files the absolute paths of a call lead to. One that leads to none of its files stays, and is
    /// refused like a bad path; without an agent that answers the call is refused.
    async fn resolve(&self, call: &mut Call) -> Result<(), Refusal> {
        let paths = call.absolute_paths();
        if paths.is_empty() {
            return Ok(());
        }
        let ask = Ask(question::Ask::ResolvePaths(v1::PathsQuestion { paths: paths.clone() }));
        let deadline = tokio::time::Instant::now() + self.left();
        let answer = self.dispatcher.ask(&self.workspace, self.asker, ask, deadline).await?.0;
        let answer::Answer::ResolvePaths(answer) = answer else {
            return Err(wrong(&self.workspace, "it is of another kind"));
        };
        let serving = self.dispatcher.serving(&self.workspace).await?;
        let roots = serving.map(|serving| serving.presence.roots.clone()).unwrap_or_default();
        let located = agent_answer::paths(paths, &roots, answer).map_err(|misfit| wrong(&self.workspace, &misfit))?;
        call.relocate(&mut |text| located.get(text).cloned());
        Ok(())
    }

    fn submission(&self, batch: Batch) -> Submission {
        let (workspace, request_id) = (self.workspace.clone(), self.request_id.clone());
        Submission { workspace, request_id, batch, origin: self.origin.clone(), sent: self.sent.clone() }
    }

    /// Answers a call of which nothing is stored.
    fn refused(&self, form: Form, failures: &[Failure]) -> Answered {
        self.trace.log(self.began.elapsed(), Event::Refused(None, failures));
        refused(form, failures)
    }

    /// Stores a batch, and waits for its end.
    async fn write(&self, batch: Batch, wording: Wording, warnings: &[Warning]) -> Result<Answered, Refusal> {
        let mut submission = self.submission(batch);
        self.trace.log(self.began.elapsed(), Event::Received(&submission.batch));
        let checked = self.dispatcher.check(&submission).await;
        let contents = detached(&mut submission.batch);
        let sized = check_size(edit_bytes(&submission.batch), &submission.batch).map_err(Refusal::from);
        let allowed = self.dispatcher.check_mode(&self.workspace, &self.origin).await;
        let stored = match allowed.and(sized).and(checked) {
            Ok(()) => match self.dispatcher.keep_contents(&self.asker.peer, &submission, contents).await? {
                Some(stored) => {
                    log_repeated(&stored, self.began);
                    stored
                }
                None => {
                    let record = submission.into_record(self.dispatcher.now());
                    match self.dispatcher.keep(record, &self.asker.peer.quota, self.began).await {
                        Ok(stored) => stored,
                        // The mode of the session has changed in between.
                        Err(refusal) => return Ok(self.refused(self.tool.form, &for_model(refusal)?)),
                    }
                }
            },
            // It may be the retry of a batch that was stored under other limits: that is answered, not refused.
            Err(refusal) => match self.dispatcher.stored_before(&submission).await? {
                Some(stored) => {
                    log_repeated(&stored, self.began);
                    stored
                }
                None => {
                    let failures = in_words_of(wording, &submission.batch, for_model(refusal)?);
                    self.trace.log(self.began.elapsed(), Event::Refused(Some(&submission.batch), &failures));
                    let naming = self.dispatcher.naming(&self.workspace).await?;
                    return Ok(refused_batch(self.tool.form, &submission.batch, &failures, &naming));
                }
            },
        };
        let (record, naming) = self.ended(stored).await?;
        let shown = self.shown(&record, &naming, wording).await?;
        Ok(shown.document(self.tool.form, warnings))
    }

    /// Plans an edit, and keeps the plan.
    async fn prepare(&self, batch: Batch, existing: Option<FilePatchId>) -> Result<Answered, Refusal> {
        let replaces = match existing {
            Some(hunk) => match self.dispatcher.newest(&self.workspace, hunk).await {
                Ok(newest) => Some(newest.id),
                Err(refusal) => return Ok(self.refused(Form::Plain, &for_model(refusal)?)),
            },
            None => None,
        };
        let preparing = Preparing { owner: self.owner()?, life: DEFAULT_LIFE, replaces, hunk: existing };
        self.trace.log(self.began.elapsed(), Event::Received(&batch));
        let submitted = Submitted { submission: self.submission(batch.clone()), document: None, view: View::Full };
        let asking = (self.asker, self.left());
        let kept = prepared::keep(self.dispatcher, asking, (submitted, &preparing), self.began).await;
        let record = match kept {
            Ok(record) => record,
            Err(refusal) => {
                let failures = in_words_of(Wording::File, &batch, for_model(refusal)?);
                return Ok(self.refused(Form::Plain, &failures));
            }
        };
        if record.state != BatchState::Prepared
            && let Some(hunk) = record.hunk()
            && self.dispatcher.newest(&self.workspace, hunk).await?.id != record.id
        {
            let refused = self.refused(Form::Plain, &[HunkError::Replaced(hunk).failure()]);
            return Ok(Answered { batch: Some((record.id, record.state)), ..refused });
        }
        let naming = self.dispatcher.naming(&self.workspace).await?;
        let shown = self.shown(&record, &naming, Wording::File).await?;
        Ok(shown.planned())
    }

    /// Has a planned edit applied, and waits for its end.
    async fn apply(&self, hunk: FilePatchId) -> Result<Answered, Refusal> {
        let applying = Applying {
            workspace: self.workspace.clone(),
            hunk,
            owner: self.owner()?,
            request_id: self.request_id.clone(),
            origin: self.origin.clone(),
            sent: self.sent.clone(),
        };
        let freed = match self.dispatcher.apply_plan(applying, &self.asker.peer.quota, self.began).await {
            Ok(freed) => freed,
            Err(refusal) => return Ok(self.refused(self.tool.form, &for_model(refusal)?)),
        };
        let (record, naming) = self.ended(freed).await?;
        Ok(self.shown(&record, &naming, Wording::File).await?.applied(hunk))
    }

    /// Has an applied batch taken back, and waits for the end of the batch that does.
    async fn undo(&self, of: BatchId, reason: Option<String>) -> Result<Answered, Refusal> {
        let reversal = Reversal {
            workspace: self.workspace.clone(),
            of,
            request_id: self.request_id.clone(),
            origin: self.origin.clone(),
            reason,
            author: self.author(),
            sent: self.sent.clone(),
        };
        let stored = match self.dispatcher.reversal(reversal).await {
            Ok(Reverts::Before(stored)) => {
                log_repeated(&stored, self.began);
                *stored
            }
            Ok(Reverts::Anew(record)) => {
                if let Err(failure) = revert::check_room(&record.batch) {
                    return Ok(self.refused(self.tool.form, &[failure]));
                }
                match self.dispatcher.keep(*record, &self.asker.peer.quota, self.began).await {
                    Ok(stored) => stored,
                    Err(refusal) => return Ok(self.refused(self.tool.form, &for_model(refusal)?)),
                }
            }
            Err(refusal) => {
                let mut failures = for_model(refusal)?;
                let unknown = failures.iter_mut().filter(|failure| failure.reason == Reason::NotFound);
                unknown.for_each(|failure| failure.hint = Some(LISTED.to_owned()));
                return Ok(self.refused(self.tool.form, &failures));
            }
        };
        let (record, naming) = self.ended(stored).await?;
        Ok(self.shown(&record, &naming, Wording::File).await?.undone(of))
    }

    async fn ended(&self, stored: BatchRecord) -> Result<(BatchRecord, Naming), Refusal> {
        let deadline = tokio::time::Instant::now() + self.wait.min(self.left());
        let deadline = self.until.map_or(deadline, |until| until.min(deadline));
        let record = self.dispatcher.ended(self.asker, stored, deadline).await?;
        Ok((record, self.dispatcher.naming(&self.workspace).await?))
    }

    async fn shown<'s>(
        &self,
        record: &'s BatchRecord,
        naming: &'s Naming,
        wording: Wording,
    ) -> Result<Shown<'s>, Refusal> {
        let has_ended_unreported = record.report.is_none() && !record.state.is_open();
        let steps = if has_ended_unreported { self.dispatcher.steps(record).await? } else { Vec::new() };
        let why = steps.into_iter().next_back().and_then(|step| step.facts.reason);
        let is_served = self.dispatcher.serving(&self.workspace).await?.is_some();
        Ok(Shown { record, naming, wording, is_served, why })
    }

    /// Who takes a batch back, for the record: the owner that the caller names, and its token.
    fn author(&self) -> Option<String> {
        match (&self.owner, &self.sent.by) {
            (Some(owner), Some(token)) => Some(format!("{owner} ({token})")),
            (Some(owner), None) => Some(owner.to_string()),
            (None, token) => token.clone(),
        }
    }

    /// Who plans or applies.
    fn owner(&self) -> Result<OwnerId, Failure> {
        let session = || self.origin.session_id.as_ref()?.parse().ok();
        self.owner.clone().or_else(session).ok_or_else(|| {
            let message =
                format!("owner is not set, the origin names no session that can be one, and {} plans", self.tool.name);
            Failure::new(Reason::InvalidRequest, message)
                .detail(Detail::Missing)
                .field("owner")
                .hint("name who may apply the plan, alike in each call of one conversation")
        })
    }
}

fn of_file(patch: FilePatch) -> Batch {
    Batch { files: vec![patch], ..Batch::default() }
}

/// The failures that the model can act on.
///
/// # Errors
/// What is of its service, or hinders the call now.
fn for_model(refusal: Refusal) -> Result<Vec<Failure>, Refusal> {
    match refusal {
        Refusal::Invalid(failures) => Ok(failures),
        Refusal::Denied(failure) if is_for_model(failure.reason) => Ok(vec![*failure]),
        refusal => Err(refusal),
    }
}

const fn is_for_model(reason: Reason) -> bool {
    matches!(
        reason,
        Reason::NotFound
            | Reason::PolicyDenied
            | Reason::WrongOwner
            | Reason::HunkExpired
            | Reason::AlreadyApplied
            | Reason::InvalidState
    )
}
