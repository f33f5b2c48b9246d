//! `BatchService`: what authors and orchestrators call.

use std::pin::Pin;
use std::sync::Arc;
use std::time::{Duration, Instant};

use aptix_model::cursor::Cursor;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::failure::Failure;
use aptix_model::id::Uuid;
use aptix_model::record::{BatchRecord, Sent};
use aptix_model::wire::{self, View, fit, v1};
use aptix_telemetry::Span;
use prost::Message;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};
use tracing::Instrument as _;

use super::observed::about;
use super::preview::preview;
use super::status::status;
use super::submitted::{Submitted, WARNINGS, check_size, edit_bytes};
use super::{batch_list, part, prepared, revert, sent};
use crate::caller::Peer;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::approve::Consent;
use crate::dispatcher::cancel::{Rejection, Withdrawal};
use crate::dispatcher::decided::Decided;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::submit::log_repeated;
use crate::dispatcher::watch::BatchUpdate;
use crate::identity::Principal;
use crate::store::BatchSelector;
use crate::ticket::Asker;

/// `BatchService` as a gRPC server.
pub type BatchServer = v1::batch_service_server::BatchServiceServer<BatchService>;

/// Serves `BatchService`.
pub struct BatchService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long an agent's preview is waited for.
    pub patience: Duration,
}

#[tonic::async_trait]
impl v1::batch_service_server::BatchService for BatchService {
    async fn submit_batch(
        &self,
        request: Request<v1::SubmitBatchRequest>,
    ) -> Result<Response<v1::SubmitBatchResponse>, Status> {
        let began = Instant::now();
        let (asker, (span, sent)) = (Asker::of(&request)?, sent::begin("SubmitBatch", &request)?);
        let request = request.into_inner();
        let trace = Trace {
            is_dry_run: request.validate_only,
            ..asked(request.origin.clone(), &request.workspace_id, &request.request_id)
        };
        let answer = self.submit(&asker, (request, sent), &trace, began).instrument(trace.span()).await;
        sent::end(span, answer.as_ref().map(|answer| id_of(answer.batch.as_ref())));
        answer
            .map(|answer| about(answer.batch.as_ref().map(|batch| batch.batch_id.clone()), answer))
            .map_err(|refusal| refused(&trace, began, refusal))
    }

    async fn prepare_batch(
        &self,
        request: Request<v1::PrepareBatchRequest>,
    ) -> Result<Response<v1::PrepareBatchResponse>, Status> {
        let began = Instant::now();
        let (asker, (span, sent)) = (Asker::of(&request)?, sent::begin("PrepareBatch", &request)?);
        let request = request.into_inner();
        let trace = asked(request.origin.clone(), &request.workspace_id, &request.request_id);
        let answer = prepared::prepare(&self.dispatcher, (&asker, self.patience), (request, sent), (&trace, began))
            .instrument(trace.span())
            .await;
        sent::end(span, answer.as_ref().map(|answer| id_of(answer.batch.as_ref())));
        answer
            .map(|answer| about(answer.batch.as_ref().map(|batch| batch.batch_id.clone()), answer))
            .map_err(|refusal| refused(&trace, began, refusal))
    }

    async fn apply_prepared(
        &self,
        request: Request<v1::ApplyPreparedRequest>,
    ) -> Result<Response<v1::ApplyPreparedResponse>, Status> {
        let (span, sent) = sent::begin("ApplyPrepared", &request)?;
        let request = request.into_inner();
        let view = View::asked(request.view).map_err(status)?;
        let call = Called::begin("ApplyPrepared", &request.workspace_id, &request.batch_id);
        let batch = call.traced(span).done(prepared::apply(&self.dispatcher, (&request, sent))).await?;
        Ok(Response::new(v1::ApplyPreparedResponse { batch: Some(fit::answer(view.message(batch))) }))
    }

    async fn reject_batch(
        &self,
        request: Request<v1::RejectBatchRequest>,
    ) -> Result<Response<v1::RejectBatchResponse>, Status> {
        let request = signed(request, |request| &mut request.reviewer)?;
        let call = Called::begin("RejectBatch", &request.workspace_id, &request.batch_id);
        let Decided { batch, step } = call.done(self.reject(request)).await?;
        Ok(Response::new(fit::rejected(batch.into(), step.map(Into::into))))
    }

    async fn approve_batch(
        &self,
        request: Request<v1::ApproveBatchRequest>,
    ) -> Result<Response<v1::ApproveBatchResponse>, Status> {
        let request = signed(request, |request| &mut request.reviewer)?;
        let view = View::asked(request.view).map_err(status)?;
        let call = Called::begin("ApproveBatch", &request.workspace_id, &request.batch_id);
        let Decided { batch, step } = call.done(self.approve(request)).await?;
        Ok(Response::new(fit::approved(view.message(batch), step.map(Into::into))))
    }

    async fn revert_batch(
        &self,
        request: Request<v1::RevertBatchRequest>,
    ) -> Result<Response<v1::RevertBatchResponse>, Status> {
        let began = Instant::now();
        let (peer, (span, sent)) = (Peer::of(&request)?.clone(), sent::begin("RevertBatch", &request)?);
        let request = signed(request, |request| &mut request.author)?;
        let view = View::asked(request.view).map_err(status)?;
        let call = Called::begin("RevertBatch", &request.workspace_id, &request.batch_id);
        let batch =
            call.traced(span).done(revert::revert(&self.dispatcher, (request, sent), &peer.quota, began)).await?;
        Ok(Response::new(v1::RevertBatchResponse { batch: Some(fit::answer(view.message(batch))) }))
    }

    async fn get_batch(&self, request: Request<v1::GetBatchRequest>) -> Result<Response<v1::GetBatchResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let view = View::asked(request.view).map_err(status)?;
        let which = selector(request.batch).map_err(status)?;
        let batch = self.dispatcher.batch(&workspace, which).await.map_err(status)?;
        let steps = self.dispatcher.steps(&batch).await.map_err(status)?;
        let steps = steps.into_iter().map(Into::into).collect();
        Ok(Response::new(fit::with_steps(view.message(batch), steps)))
    }

    async fn get_change(
        &self,
        request: Request<v1::GetChangeRequest>,
    ) -> Result<Response<v1::GetChangeResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let id: Uuid = wire::id("id", &request.id).map(|aptix_model::id::ChangeId(id)| id).map_err(status)?;
        let part = self.dispatcher.part(&workspace, id).await.map_err(status)?;
        Ok(Response::new(fit::part(part::message(part))))
    }

    async fn list_batches(
        &self,
        request: Request<v1::ListBatchesRequest>,
    ) -> Result<Response<v1::ListBatchesResponse>, Status> {
        let listed = batch_list::page(&self.dispatcher, request.into_inner()).await.map_err(status)?;
        Ok(Response::new(listed))
    }

    type WatchBatchStream = Pin<Box<dyn Stream<Item = Result<v1::WatchBatchResponse, Status>> + Send>>;

    async fn watch_batch(
        &self,
        request: Request<v1::WatchBatchRequest>,
    ) -> Result<Response<Self::WatchBatchStream>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let batch = wire::id("batchId", &request.batch_id).map_err(status)?;
        let after = request.after.map(Cursor::try_from).transpose().map_err(status)?;
        let view = View::asked(request.view).map_err(status)?;
        let encode = move |update| state_message(update, view);
        let states = self.dispatcher.watch(workspace, batch, after, encode).await.map_err(status)?;
        let answers = states.map(|message| message.map_err(status));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn cancel_batch(
        &self,
        request: Request<v1::CancelBatchRequest>,
    ) -> Result<Response<v1::CancelBatchResponse>, Status> {
        let request = signed(request, |request| &mut request.author)?;
        let call = Called::begin("CancelBatch", &request.workspace_id, &request.batch_id);
        let batch = call.done(self.cancel(request)).await?;
        Ok(Response::new(v1::CancelBatchResponse { batch: Some(fit::answer(batch.into())) }))
    }
}

/// The message of a call, with the name of the caller's token beside the name in it.
fn signed<T>(request: Request<T>, name: impl FnOnce(&mut T) -> &mut String) -> Result<T, Status> {
    let caller = Principal::of(&request)?.clone();
    let mut request = request.into_inner();
    caller.sign(name(&mut request));
    Ok(request)
}

/// The id of the batch of an answer; empty if there is none.
fn id_of(batch: Option<&v1::Batch>) -> &str {
    batch.map_or("", |batch| batch.batch_id.as_str())
}

/// The trace of a call that describes a batch.
fn asked(origin: Option<v1::Origin>, workspace: &str, request: &str) -> Trace {
    Trace {
        origin: origin.map(Into::into).unwrap_or_default(),
        workspace: Some(workspace.to_owned()),
        request: Some(request.to_owned()),
        ..Trace::new(Via::Server)
    }
}

/// Logs that a batch was refused; the status of the call.
fn refused(trace: &Trace, began: Instant, refusal: Refusal) -> Status {
    trace.log(began.elapsed(), Event::Refused(None, refusal.failures()));
    status(refusal)
}

/// A call that is about one stored batch, for its log events.
struct Called {
    began: Instant,
    trace: Trace,
    span: Option<Span>,
}

impl Called {
    fn begin(method: &str, workspace: &str, batch: &str) -> Self {
        let trace = Trace {
            workspace: Some(workspace.to_owned()),
            batch: batch.parse().ok(),
            tool: Some(method.to_owned()),
            ..Trace::new(Via::Server)
        };
        Self { began: Instant::now(), trace, span: None }
    }

    /// The call with its span, which ends with it.
    fn traced(self, span: Span) -> Self {
        Self { span: Some(span), ..self }
    }

    /// Carries the call out; logs a refusal.
    async fn done<T>(self, call: impl Future<Output = Result<T, Refusal>>) -> Result<T, Status> {
        let outcome = call.instrument(self.trace.span()).await;
        if let Some(span) = self.span {
            let batch = self.trace.batch.map(|batch| batch.to_string()).unwrap_or_default();
            sent::end(span, outcome.as_ref().map(|_| batch.as_str()));
        }
        outcome.map_err(|refusal| {
            self.trace.log(self.began.elapsed(), Event::CallRefused(refusal.failures()));
            status(refusal)
        })
    }
}

fn state_message(update: BatchUpdate, view: View) -> v1::WatchBatchResponse {
    match update {
        BatchUpdate::State { batch, cursor, first } => {
            let fit = if first { fit::event } else { fit::later_event };
            let batch = Some(fit(view.message(*batch)));
            v1::WatchBatchResponse { batch, cursor: cursor.map(Into::into), heartbeat: false }
        }
        BatchUpdate::Heartbeat { workspace, batch, revision, state } => {
            let batch = v1::Batch {
                batch_id: batch.to_string(),
                workspace_id: workspace.to_string(),
                revision: revision.0,
                state: v1::BatchState::from(state).into(),
                content_omitted: true,
                ..v1::Batch::default()
            };
            v1::WatchBatchResponse { batch: Some(batch), cursor: None, heartbeat: true }
        }
    }
}

impl BatchService {
    async fn cancel(&self, request: v1::CancelBatchRequest) -> Result<BatchRecord, Refusal> {
        let workspace = wire::id("workspaceId", &request.workspace_id)?;
        let batch = wire::id("batchId", &request.batch_id)?;
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let withdrawal = Withdrawal { reason: given(request.reason), author: given(request.author) };
        self.dispatcher.cancel(workspace, batch, withdrawal).await
    }

    async fn approve(&self, request: v1::ApproveBatchRequest) -> Result<Decided, Refusal> {
        let workspace = wire::id("workspaceId", &request.workspace_id)?;
        let batch = wire::id("batchId", &request.batch_id)?;
        let given = |text: String| Some(text).filter(|text| !text.is_empty());
        let consent = Consent { reason: given(request.reason), reviewer: given(request.reviewer) };
        self.dispatcher.approve(workspace, batch, consent).await
    }

    async fn reject(&self, request: v1::RejectBatchRequest) -> Result<Decided, Refusal> {
        let workspace = wire::id("workspaceId", &request.workspace_id)?;
        let batch = wire::id("batchId", &request.batch_id)?;
        let reviewer = Some(request.reviewer).filter(|name| !name.is_empty());
        self.dispatcher.reject(workspace, batch, Rejection { reason: request.reason, reviewer }).await
    }

    async fn submit(
        &self,
        asker: &Asker,
        (request, sent): (v1::SubmitBatchRequest, Sent),
        trace: &Trace,
        began: Instant,
    ) -> Result<v1::SubmitBatchResponse, Refusal> {
        let (bytes, validate_only) = (request.encoded_len(), request.validate_only);
        let mut submitted = Submitted::read(&self.dispatcher, request, sent)?;
        trace.log(began.elapsed(), Event::Received(&submitted.submission.batch));
        let checked = self.dispatcher.check(&submitted.submission).await.map_err(|refusal| submitted.in_terms(refusal));
        let contents = submitted.detach_contents();
        let Submitted { submission, document, view } = submitted;
        let bytes = if document.is_some() { edit_bytes(&submission.batch) } else { bytes };
        let sized = check_size(bytes, &submission.batch).map_err(|failure| match document {
            // Its large contents travel as blobs already.
            Some(_) => failure.field("document"),
            None => failure.field("edit").hint("upload large content as blobs, or split the batch"),
        });
        let checked = sized.map_err(Refusal::from).and(checked);
        // Any other batch is held to the mode of its session in the step that stores it.
        let checked = match checked {
            Ok(()) if !validate_only && contents.is_empty() => Ok(()),
            checked => self.dispatcher.check_mode(&submission.workspace, &submission.origin).await.and(checked),
        };
        let dialect = document.as_ref().map(|(dialect, _)| *dialect);
        let mut previewed = None;
        let batch = if validate_only {
            checked?;
            let record = self.dispatcher.rehearse(submission).await?;
            let (workspace, batch) = (&record.workspace, &record.batch);
            previewed =
                preview(&self.dispatcher, asker, workspace, (batch, dialect, contents.is_empty()), self.patience)
                    .await?;
            trace.log(began.elapsed(), Event::Checked(&record.batch));
            without_ids(record, view)
        } else {
            let stored = match checked {
                Ok(()) => match self.dispatcher.keep_contents(&asker.peer, &submission, contents).await? {
                    Some(stored) => {
                        log_repeated(&stored, began);
                        stored
                    }
                    None => {
                        let record = submission.into_record(self.dispatcher.now());
                        self.dispatcher.keep(record, &asker.peer.quota, began).await?
                    }
                },
                // It may be the retry of a batch that was stored under other limits: that is answered, not refused.
                Err(refusal) => {
                    let stored = self.dispatcher.stored_before(&submission).await?.ok_or(refusal)?;
                    log_repeated(&stored, began);
                    stored
                }
            };
            fit::answer(view.message(stored))
        };
        let (dialect, warnings) = document.map(|(dialect, warnings)| (dialect.name(), warnings)).unwrap_or_default();
        Ok(fit::submitted(v1::SubmitBatchResponse {
            batch: Some(batch),
            warnings: warnings.into_iter().take(WARNINGS).map(Into::into).collect(),
            dialect: dialect.to_owned(),
            preview: previewed,
        }))
    }
}

/// What a batch would be, had it been stored.
fn without_ids(record: BatchRecord, view: View) -> v1::Batch {
    let batch = view.message(BatchRecord { ids: Vec::new(), ..record });
    v1::Batch { batch_id: String::new(), create_time: None, update_time: None, ..batch }
}

fn selector(batch: Option<v1::get_batch_request::Batch>) -> Result<BatchSelector, Failure> {
    match batch {
        Some(v1::get_batch_request::Batch::BatchId(id)) => wire::id("batchId", &id).map(BatchSelector::Id),
        Some(v1::get_batch_request::Batch::RequestId(id)) => wire::id("requestId", &id).map(BatchSelector::Request),
        None => Err(wire::missing("batch", "batchId or requestId")),
    }
}
