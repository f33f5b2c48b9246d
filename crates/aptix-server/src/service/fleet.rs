//! `FleetService`: what the other servers on the store ask of this one.

use std::sync::Arc;
use std::time::Duration;

use aptix_model::wire::question::{Answer, Ask};
use aptix_model::wire::{self, v1};
use tokio::time::Instant;
use tonic::{Request, Response, Status};

use super::status::status;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::Refusal;
use crate::ticket::Asker;

/// `FleetService` as a gRPC server.
pub type FleetServer = v1::fleet_service_server::FleetServiceServer<FleetService>;

/// Serves `FleetService`.
pub struct FleetService {
    /// Who answers.
    pub dispatcher: Arc<Dispatcher>,
    /// How long a question waits at most.
    pub patience: Duration,
}

#[tonic::async_trait]
impl v1::fleet_service_server::FleetService for FleetService {
    async fn ask_agent(&self, request: Request<v1::AskAgentRequest>) -> Result<Response<v1::AskAgentResponse>, Status> {
        let asker = Asker::of(&request)?;
        let v1::AskAgentRequest { workspace_id, question } = request.into_inner();
        let workspace = wire::id("workspaceId", &workspace_id).map_err(status)?;
        let v1::Question { time_left, ask, .. } = question.unwrap_or_default();
        let unknown = || status(wire::missing("question.ask", "a member that this version knows"));
        let ask = ask.ok_or_else(unknown)?;
        let left = time_left.and_then(|left| Duration::try_from(left).ok()).unwrap_or(self.patience);
        let deadline = Instant::now() + left.min(self.patience);
        let answer = match self.dispatcher.ask_here(&workspace, &asker, Ask(ask), deadline).await {
            Ok(answer) => answer,
            Err(Refusal::Denied(failure)) => Answer::failed(*failure),
            Err(refusal) => return Err(status(refusal)),
        };
        let answer = v1::Answer { question_id: 0, answer: Some(answer.0) };
        Ok(Response::new(v1::AskAgentResponse { answer: Some(answer) }))
    }
}
