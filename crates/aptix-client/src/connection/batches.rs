//! Submits, reads, lists, watches and cancels batches.

use aptix_model::batch::{Batch, FilePatch, Origin};
use aptix_model::batch_event::{EventFacts, StepRecord};
use aptix_model::failure::Failure;
use aptix_model::id::{BatchId, OwnerId, RequestId};
use aptix_model::reason::{Detail, Reason};
use aptix_model::record::{BatchOutline, BatchRecord, FileIds};
use aptix_model::report::FileReport;
use aptix_model::state::BatchState;
use aptix_model::wire::{self, v1};
use tonic::Streaming;

use super::batch_query::BatchQuery;
use super::call_error::CallError;
use super::link::{ANSWER, Connection, timed};
use super::server_url::ServerUrl;

/// Batches on one page of a list.
const PAGE: i32 = 200;

/// A page of a list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Page {
    /// The batches, newest first.
    pub batches: Vec<BatchOutline>,
    /// The token of the next page, if there is one.
    pub next: Option<String>,
}

/// What a person decided about a batch.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Decision {
    /// The state of the batch now.
    pub state: BatchState,
    /// The step that decided first, whoever took it; `None` if the server does not know it.
    pub step: Option<StepRecord>,
}

/// A file patch, or one change of it, and its state.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ChangeView {
    /// The batch it belongs to.
    pub batch: BatchId,
    /// The state of that batch.
    pub state: BatchState,
    /// The file patch; asked for by a change's id, it holds that change alone.
    pub patch: FilePatch,
    /// Its ids.
    pub ids: FileIds,
    /// What became of the file, once the batch was applied; asked for by a change's id, with the report of that change alone.
    pub report: Option<FileReport>,
    /// Why the batch was refused, as far as that is about this file patch, or this change.
    pub failures: Vec<Failure>,
    /// The lines of the batch's diff about it.
    pub diff: String,
    /// Position of the file patch in its batch, from 0.
    pub file_index: usize,
    /// Position of the change in its file patch, from 0, if a change was asked for.
    pub change_index: Option<usize>,
}

impl Connection {
    /// Stores a batch; repeatable under the same request id.
    ///
    /// # Errors
    /// When the server refuses it, everything that is wrong with it.
    pub async fn submit(&self, request: &RequestId, batch: Batch, origin: Origin) -> Result<BatchRecord, CallError> {
        let message = v1::SubmitBatchRequest {
            workspace_id: self.workspace.to_string(),
            request_id: request.to_string(),
            content: Some(v1::submit_batch_request::Content::Edit(batch.into())),
            origin: Some(origin.into()),
            view: v1::BatchView::Full.into(),
            ..v1::SubmitBatchRequest::default()
        };
        let response = self.answer(self.batches().submit_batch(timed(message, ANSWER))).await?;
        record(response.batch)
    }

    /// Has a batch planned and stored with its plan; repeatable under the same request id.
    ///
    /// # Errors
    /// When the server refuses it, everything that is wrong with it; NO_AGENT when nobody plans it.
    pub async fn prepare(
        &self,
        request: &RequestId,
        (batch, origin): (Batch, Origin),
        owner: &OwnerId,
    ) -> Result<BatchRecord, CallError> {
        let message = v1::PrepareBatchRequest {
            workspace_id: self.workspace.to_string(),
            request_id: request.to_string(),
            content: Some(v1::prepare_batch_request::Content::Edit(batch.into())),
            origin: Some(origin.into()),
            owner: owner.to_string(),
            view: v1::BatchView::Full.into(),
            ..v1::PrepareBatchRequest::default()
        };
        let response = self.answer(self.batches().prepare_batch(timed(message, ANSWER))).await?;
        record(response.batch)
    }

    /// Lets a prepared batch be applied; repeatable under the same request id.
    ///
    /// # Errors
    /// NOT_FOUND, WRONG_OWNER, HUNK_EXPIRED, ALREADY_APPLIED, INVALID_STATE.
    pub async fn apply_prepared(
        &self,
        request: &RequestId,
        batch: BatchId,
        owner: &OwnerId,
    ) -> Result<BatchState, CallError> {
        let message = v1::ApplyPreparedRequest {
            workspace_id: self.workspace.to_string(),
            batch_id: batch.to_string(),
            owner: owner.to_string(),
            request_id: request.to_string(),
            ..v1::ApplyPreparedRequest::default()
        };
        let response = self.answer(self.batches().apply_prepared(timed(message, ANSWER))).await?;
        Ok(state(response.batch)?)
    }

    /// Rejects a batch that has not ended; repeatable.
    ///
    /// # Errors
    /// NOT_FOUND; INVALID_STATE when it has ended another way.
    pub async fn reject(&self, batch: BatchId, reason: String, reviewer: String) -> Result<Decision, CallError> {
        let (workspace_id, batch_id) = (self.workspace.to_string(), batch.to_string());
        let message = v1::RejectBatchRequest { workspace_id, batch_id, reason, reviewer };
        let response = self.answer(self.batches().reject_batch(timed(message, ANSWER))).await?;
        Ok(Decision { state: state(response.batch)?, step: step(response.decision) })
    }

    /// Approves a batch that waits for a person; repeatable. The record keeps why and by whom.
    ///
    /// # Errors
    /// NOT_FOUND; INVALID_STATE when it waits for no person.
    pub async fn approve(&self, batch: BatchId, reason: String, reviewer: String) -> Result<Decision, CallError> {
        let (workspace_id, batch_id) = (self.workspace.to_string(), batch.to_string());
        let message = v1::ApproveBatchRequest { workspace_id, batch_id, reason, reviewer, ..Default::default() };
        let response = self.answer(self.batches().approve_batch(timed(message, ANSWER))).await?;
        Ok(Decision { state: state(response.batch)?, step: step(response.decision) })
    }

    /// Stores the batch that takes another one back; repeatable under the same request id. The record keeps why and by whom.
    ///
    /// # Errors
    /// NOT_FOUND; ALREADY_APPLIED when it was taken back before; INVALID_STATE when it is not applied.
    pub async fn revert(
        &self,
        request: &RequestId,
        batch: BatchId,
        (reason, author): (String, String),
        origin: Origin,
    ) -> Result<BatchRecord, CallError> {
        let message = v1::RevertBatchRequest {
            workspace_id: self.workspace.to_string(),
            batch_id: batch.to_string(),
            request_id: request.to_string(),
            reason,
            author,
            origin: Some(origin.into()),
            view: v1::BatchView::Full.into(),
        };
        let response = self.answer(self.batches().revert_batch(timed(message, ANSWER))).await?;
        record(response.batch)
    }

    /// Whether an agent serves the workspace now.
    ///
    /// # Errors
    /// NOT_FOUND; or the server is lost.
    pub async fn is_served(&self) -> Result<bool, CallError> {
        let message = v1::GetWorkspaceRequest { workspace_id: self.workspace.to_string() };
        let response = self.answer(self.workspaces().get_workspace(timed(message, ANSWER))).await?;
        Ok(response.workspace.is_some_and(|workspace| workspace.serving.is_some()))
    }

    /// Reads a batch.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn get(&self, batch: BatchId) -> Result<BatchRecord, CallError> {
        self.get_with_steps(batch).await.map(|(record, _)| record)
    }

    /// Reads a batch with its steps, oldest first.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn get_with_steps(&self, batch: BatchId) -> Result<(BatchRecord, Vec<EventFacts>), CallError> {
        let batch = Some(v1::get_batch_request::Batch::BatchId(batch.to_string()));
        let (workspace_id, view) = (self.workspace.to_string(), v1::BatchView::Full.into());
        let message = v1::GetBatchRequest { workspace_id, batch, view };
        let response = self.answer(self.batches().get_batch(timed(message, ANSWER))).await?;
        let steps = response.steps.into_iter().filter_map(|one| Some(step(Some(one))?.facts)).collect();
        Ok((record(response.batch)?, steps))
    }

    /// Reads one file patch or one change by its id.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn get_change(&self, id: &str) -> Result<ChangeView, CallError> {
        let message = v1::GetChangeRequest { workspace_id: self.workspace.to_string(), id: id.to_owned() };
        let response = self.answer(self.batches().get_change(timed(message, ANSWER))).await?;
        let state = response.state();
        let file = response.file.ok_or_else(|| absent("file"))?;
        let ids = wire::file_ids("", &file)?;
        let edit = v1::Edit { files: vec![file], ..v1::Edit::default() };
        let patch = Batch::try_from(edit)?.files.pop().ok_or_else(|| absent("file"))?;
        Ok(ChangeView {
            batch: wire::id("batchId", &response.batch_id)?,
            state: state.try_into()?,
            patch,
            ids,
            report: response.file_report.map(FileReport::try_from).transpose()?,
            failures: response.failures.into_iter().map(Failure::from).collect(),
            diff: response.diff,
            file_index: response.file_index as usize,
            change_index: response.change_index.map(|index| index as usize),
        })
    }

    /// Lists a page of the batches that fit, newest first; the first page with an empty token. A page may be empty and still have
    /// a next one.
    ///
    /// # Errors
    /// NOT_FOUND when the workspace does not exist; INVALID_REQUEST (PAGE) for another server's token.
    pub async fn list(&self, query: &BatchQuery, page_token: String) -> Result<Page, CallError> {
        let message = v1::ListBatchesRequest {
            workspace_id: self.workspace.to_string(),
            page_size: PAGE,
            page_token,
            filter: Some(query.into()),
            ..v1::ListBatchesRequest::default()
        };
        let response = self.answer(self.batches().list_batches(timed(message, ANSWER))).await?;
        let batches = response.batches.into_iter().map(BatchOutline::try_from).collect::<Result<_, _>>()?;
        let next = Some(response.next_page_token).filter(|token| !token.is_empty());
        Ok(Page { batches, next })
    }

    /// Follows one batch until it has ended.
    ///
    /// # Errors
    /// NOT_FOUND.
    pub async fn watch_batch(&self, batch: BatchId) -> Result<StateFeed, CallError> {
        let (workspace_id, batch_id) = (self.workspace.to_string(), batch.to_string());
        let message = v1::WatchBatchRequest { workspace_id, batch_id, ..v1::WatchBatchRequest::default() };
        let stream = self.answer(self.batches().watch_batch(message)).await?;
        Ok(StateFeed { server: self.server.clone(), stream })
    }

    /// Cancels a batch that has not ended; the record keeps why and by whom.
    ///
    /// # Errors
    /// NOT_FOUND; INVALID_STATE when it has ended another way.
    pub async fn cancel(&self, batch: BatchId, reason: String, author: String) -> Result<BatchState, CallError> {
        let (workspace_id, batch_id) = (self.workspace.to_string(), batch.to_string());
        let message = v1::CancelBatchRequest { workspace_id, batch_id, reason, author };
        let response = self.answer(self.batches().cancel_batch(timed(message, ANSWER))).await?;
        Ok(state(response.batch)?)
    }
}

/// The states of one batch, as they come.
#[derive(Debug)]
pub struct StateFeed {
    server: ServerUrl,
    stream: Streaming<v1::WatchBatchResponse>,
}

impl StateFeed {
    /// The next state; nothing after an ended one.
    ///
    /// # Errors
    /// When the server is lost.
    pub async fn next(&mut self) -> Result<Option<BatchState>, CallError> {
        loop {
            let message = self.stream.message().await;
            match message.map_err(|status| CallError::from_status(&self.server, &status))? {
                None => return Ok(None),
                Some(message) if message.heartbeat => {}
                Some(message) => return Ok(Some(state(message.batch)?)),
            }
        }
    }
}

pub(super) fn absent(field: &str) -> Failure {
    Failure::new(Reason::InvalidRequest, format!("{field} is not set")).detail(Detail::Missing).field(field)
}

fn record(batch: Option<v1::Batch>) -> Result<BatchRecord, CallError> {
    Ok(BatchRecord::try_from(batch.ok_or_else(|| absent("batch"))?)?)
}

/// A step of a batch; one of a kind that this version does not know is passed over.
fn step(step: Option<v1::BatchStep>) -> Option<StepRecord> {
    StepRecord::try_from(step?).ok()
}

fn state(batch: Option<v1::Batch>) -> Result<BatchState, Failure> {
    Ok(BatchOutline::try_from(batch.ok_or_else(|| absent("batch"))?)?.state)
}
