//! `WorkspaceService`: which workspaces there are, and everything that happens in one, for readers.

use std::pin::Pin;
use std::sync::Arc;

use aptix_model::cursor::Cursor;
use aptix_model::failure::Failure;
use aptix_model::id::Revision;
use aptix_model::reason::{Detail, Reason};
use aptix_model::state::BatchState;
use aptix_model::wire::{self, View, fit, v1};
use prost::Message as _;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::status::status;
use super::{event, page};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::event_filter::{EventFilter, FilePattern};
use crate::dispatcher::questions::Serving;
use crate::dispatcher::stream::Start;
use crate::dispatcher::workspace::{WorkspaceOutline, WorkspaceUpdate};

/// Entries of one list of a filter.
const FILTER_ENTRIES: usize = 100;

/// Bytes of all texts of a filter: each stream keeps its own.
const FILTER_BYTES: usize = 64 << 10;

/// `WorkspaceService` as a gRPC server.
pub type WorkspaceServer = v1::workspace_service_server::WorkspaceServiceServer<WorkspaceService>;

/// Serves `WorkspaceService`.
pub struct WorkspaceService(pub Arc<Dispatcher>);

#[tonic::async_trait]
impl v1::workspace_service_server::WorkspaceService for WorkspaceService {
    async fn get_workspace(
        &self,
        request: Request<v1::GetWorkspaceRequest>,
    ) -> Result<Response<v1::GetWorkspaceResponse>, Status> {
        let id = wire::id("workspaceId", &request.into_inner().workspace_id).map_err(status)?;
        let workspace = self.0.workspace(id).await.map_err(status)?;
        Ok(Response::new(v1::GetWorkspaceResponse { workspace: Some(message(workspace)) }))
    }

    async fn list_workspaces(
        &self,
        request: Request<v1::ListWorkspacesRequest>,
    ) -> Result<Response<v1::ListWorkspacesResponse>, Status> {
        let request = request.into_inner();
        let wanted = page::size(request.page_size).map_err(status)?;
        let after = page::workspace(&request.page_token).map_err(status)?;
        let listed = self.0.workspaces(after, wanted + 1).await.map_err(status)?;
        let mut answer = v1::ListWorkspacesResponse::default();
        let (mut room, mut last) = (fit::ROOM, None);
        for outline in listed {
            let id = outline.id.clone();
            let workspace = message(outline);
            let bytes = workspace.encoded_len() + 8;
            if let Some(last) = last.filter(|_| answer.workspaces.len() == wanted || bytes > room) {
                answer.next_page_token = page::after_workspace(&last);
                break;
            }
            (room, last) = (room.saturating_sub(bytes), Some(id));
            answer.workspaces.push(workspace);
        }
        Ok(Response::new(answer))
    }

    type WatchWorkspaceStream = Pin<Box<dyn Stream<Item = Result<v1::WatchWorkspaceResponse, Status>> + Send>>;

    async fn watch_workspace(
        &self,
        request: Request<v1::WatchWorkspaceRequest>,
    ) -> Result<Response<Self::WatchWorkspaceStream>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let view = View::asked(request.view).map_err(status)?;
        let filter = request.filter.map(filter).transpose().map_err(status)?.unwrap_or_default();
        let from = match request.after {
            Some(cursor) => Start::Cursor(Cursor::try_from(cursor).map_err(status)?),
            None => Start::Revision(Revision(request.after_revision)),
        };
        let encode = move |update| update_message(update, view);
        let updates = self.0.watch_workspace(workspace, from, filter, encode).await.map_err(status)?;
        Ok(Response::new(Box::pin(updates.map(|message| message.map_err(status)))))
    }
}

fn message(workspace: WorkspaceOutline) -> v1::Workspace {
    let WorkspaceOutline { id, cursor, open_batches, serving, last_served, roots } = workspace;
    let serving = serving.map(|Serving { since, presence, .. }| v1::Serving {
        since_time: Some(since.into()),
        version: presence.version.clone(),
        approval_mode: v1::ApprovalMode::from(presence.mode).into(),
        features: presence.features.clone(),
    });
    v1::Workspace {
        workspace_id: id.to_string(),
        cursor: cursor.map(Into::into),
        open_batches,
        serving,
        last_served_time: last_served.map(Into::into),
        roots,
    }
}

fn update_message(update: WorkspaceUpdate, view: View) -> v1::WatchWorkspaceResponse {
    use v1::watch_workspace_response::Message;
    let message = match update {
        WorkspaceUpdate::Event(event) => Message::Event(event::message(event, |batch| fit::event(view.message(batch)))),
        WorkspaceUpdate::Heartbeat(revision) => Message::Heartbeat(v1::Heartbeat { revision: revision.0 }),
    };
    v1::WatchWorkspaceResponse { message: Some(message) }
}

/// Reads a filter; everything that is wrong with it is reported.
fn filter(filter: v1::EventFilter) -> Result<EventFilter, Vec<Failure>> {
    let mut failures = Vec::new();
    let texts = filter.session_ids.iter().chain(&filter.doc_paths);
    let bytes: usize = texts.map(String::len).sum();
    if bytes > FILTER_BYTES {
        let message = format!("the texts of the filter have {bytes} bytes, at most {FILTER_BYTES} are taken");
        failures.push(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field("filter"));
    }
    let states = read_each("filter.states", filter.states, &mut failures, |field, value| match value {
        value if value == v1::BatchState::Partial as i32 => Ok(None),
        value => wire::batch_state(field, value).map(Some),
    });
    let kinds = read_each("filter.kinds", filter.kinds, &mut failures, wire::event_kind);
    let sessions = read_each("filter.sessionIds", filter.session_ids, &mut failures, |_, session| Ok(session));
    let files = read_each("filter.docPaths", filter.doc_paths, &mut failures, |field, pattern| {
        FilePattern::new(&pattern).map_err(|error| {
            let failure = Failure::new(Reason::InvalidPath, error.to_string()).detail(error.detail()).field(field);
            failure.hint("name a file by its lower-case key, or a directory by that of its files up to a slash")
        })
    });
    if failures.is_empty() {
        let states = states.map(|states: Vec<Option<BatchState>>| states.into_iter().flatten().collect());
        Ok(EventFilter { states, kinds, sessions, files })
    } else {
        Err(failures)
    }
}

/// Reads a list of the filter; `None` if it is empty.
fn read_each<W, T>(
    field: &str,
    list: Vec<W>,
    failures: &mut Vec<Failure>,
    read: impl Fn(&str, W) -> Result<T, Failure>,
) -> Option<Vec<T>> {
    if list.len() > FILTER_ENTRIES {
        let message = format!("{field} has {} entries, at most {FILTER_ENTRIES} are taken", list.len());
        failures.push(Failure::new(Reason::TooLarge, message).detail(Detail::Text).field(field));
        return None;
    }
    let mut entries = Vec::new();
    for (index, entry) in list.into_iter().enumerate() {
        match read(&format!("{field}[{index}]"), entry) {
            Ok(entry) => entries.push(entry),
            Err(failure) => failures.push(failure),
        }
    }
    (!entries.is_empty()).then_some(entries)
}
