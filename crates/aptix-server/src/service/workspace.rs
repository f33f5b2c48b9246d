//! `WorkspaceService`: which workspaces there are, and everything that happens in one, for readers.

use std::pin::Pin;
use std::sync::Arc;

use aptix_model::cursor::Cursor;
use aptix_model::id::Revision;
use aptix_model::wire::{self, View, fit, v1};
use prost::Message as _;
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::status::status;
use super::{event, filter, page};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::questions::Serving;
use crate::dispatcher::stream::Start;
use crate::dispatcher::workspace::{WorkspaceOutline, WorkspaceUpdate};
use crate::identity::Principal;

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
        let only = Principal::of(&request)?.only().cloned();
        let request = request.into_inner();
        let wanted = page::size(request.page_size).map_err(status)?;
        let after = page::workspace(&request.page_token).map_err(status)?;
        let listed = match only {
            Some(only) if after.as_ref().is_some_and(|after| *after >= only) => Vec::new(),
            Some(only) => vec![self.0.workspace(only).await.map_err(status)?],
            None => self.0.workspaces(after, wanted + 1).await.map_err(status)?,
        };
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
        let filter = request.filter.map(filter::events).transpose().map_err(status)?.unwrap_or_default();
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
