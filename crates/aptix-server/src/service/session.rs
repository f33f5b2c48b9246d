//! `SessionService`: what sessions are, and whether they may write.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::{self, v1};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::head::Deadline;
use super::status::status;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::session::ModeAsked;
use crate::identity::Principal;
use crate::store::session::SessionState;
use crate::ticket::Asker;

/// Batches in flight that an answer names.
const NAMED: usize = 100;

/// `SessionService` as a gRPC server.
pub type SessionServer = v1::session_service_server::SessionServiceServer<SessionService>;

/// Serves `SessionService`.
pub struct SessionService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long a call waits at most for batches in flight.
    pub patience: Duration,
}

#[tonic::async_trait]
impl v1::session_service_server::SessionService for SessionService {
    async fn get_session(
        &self,
        request: Request<v1::GetSessionRequest>,
    ) -> Result<Response<v1::GetSessionResponse>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let session = wire::id("sessionId", &request.session_id).map_err(status)?;
        let found = self.dispatcher.session(&workspace, session).await.map_err(status)?;
        Ok(Response::new(v1::GetSessionResponse { session: Some(message(&workspace, found)) }))
    }

    async fn set_session_mode(
        &self,
        request: Request<v1::SetSessionModeRequest>,
    ) -> Result<Response<v1::SetSessionModeResponse>, Status> {
        let asker = Asker::of(&request)?;
        let by = Principal::of(&request)?.signature();
        let until = request.extensions().get().copied().and_then(Deadline::with_margin);
        let (asked, wait) = read(&request.into_inner(), by).map_err(status)?;
        let (workspace, deadline) = (asked.workspace.clone(), Instant::now() + wait.min(self.patience));
        let deadline = until.map_or(deadline, |until| deadline.min(until));
        let (progress, found) = self.dispatcher.set_mode(asked, &asker, deadline).await.map_err(status)?;
        Ok(Response::new(v1::SetSessionModeResponse {
            session: Some(message(&workspace, found)),
            state: v1::ModeChangeState::from(progress).into(),
        }))
    }
}

/// Decodes a request to change a mode, and how long it waits.
///
/// # Errors
/// Everything that is wrong with its shape.
fn read(request: &v1::SetSessionModeRequest, by: Option<String>) -> Result<(ModeAsked, Duration), Refusal> {
    let mut failures = Vec::new();
    let workspace = wire::id("workspaceId", &request.workspace_id).map_err(|failure| failures.push(failure));
    let session = wire::id("sessionId", &request.session_id).map_err(|failure| failures.push(failure));
    let owner = wire::id("owner", &request.owner).map_err(|failure| failures.push(failure));
    let id = wire::id("requestId", &request.request_id).map_err(|failure| failures.push(failure));
    let to = wire::session::mode("mode", request.mode)
        .and_then(|mode| mode.ok_or_else(|| wire::missing("mode", "RESTRICTED or UNRESTRICTED")))
        .map_err(|failure| failures.push(failure));
    let wait = request.wait.map_or(Ok(Duration::ZERO), |wait| Duration::try_from(wait).map_err(|_| bad_wait()));
    let wait = wait.map_err(|failure| failures.push(failure));
    match (workspace, session, owner, id, to, wait) {
        (Ok(workspace), Ok(session), Ok(owner), Ok(request), Ok(to), Ok(wait)) => {
            Ok((ModeAsked { workspace, session, owner, request, to, by }, wait))
        }
        _ => Err(failures.into()),
    }
}

fn bad_wait() -> Failure {
    Failure::new(Reason::InvalidRequest, "wait is not a time that has not passed yet, expected 0 or more")
        .detail(Detail::UnexpectedField)
        .field("wait")
        .hint("leave it out to be answered at once")
}

fn message(workspace: &WorkspaceId, found: SessionState) -> v1::Session {
    let SessionState { session, in_flight } = found;
    v1::Session {
        workspace_id: workspace.to_string(),
        in_flight_batches: in_flight.len() as u64,
        in_flight_batch_ids: in_flight.iter().take(NAMED).map(ToString::to_string).collect(),
        ..session.into()
    }
}
