//! `AgentService`: what the agent on a workstation calls.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use aptix_model::id::Revision;
use aptix_model::report::Report;
use aptix_model::wire::{self, event_message, v1};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status};

use super::batch::missing;
use super::status::status;
use super::{report, size};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::feed::Delivery;
use crate::dispatcher::refusal::{Refusal, shown};

/// `AgentService` as a gRPC server.
pub type AgentServer = v1::agent_service_server::AgentServiceServer<AgentService>;

/// Serves `AgentService`.
pub struct AgentService(pub Arc<Dispatcher>);

#[tonic::async_trait]
impl v1::agent_service_server::AgentService for AgentService {
    type WatchBatchesStream = Pin<Box<dyn Stream<Item = Result<v1::WatchBatchesResponse, Status>> + Send>>;

    async fn watch_batches(
        &self,
        request: Request<v1::WatchBatchesRequest>,
    ) -> Result<Response<Self::WatchBatchesStream>, Status> {
        let request = request.into_inner();
        let workspace = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let agent = wire::id("agentId", &request.agent_id).map_err(status)?;
        let feed = self.0.feed(workspace, &agent, Revision(request.after_revision)).await.map_err(status)?;
        let heartbeat = self.0.settings().heartbeat;
        let answers = feed.map(move |delivery| match delivery {
            Ok(delivery) => Ok(delivery_message(delivery, heartbeat)),
            Err(end) => Err(status(end)),
        });
        Ok(Response::new(Box::pin(answers)))
    }

    async fn report_batch(
        &self,
        request: Request<v1::ReportBatchRequest>,
    ) -> Result<Response<v1::ReportBatchResponse>, Status> {
        let batch = self.report(request.into_inner()).await.map_err(|refusal| {
            let first = refusal.failures().first().map(ToString::to_string);
            let reason = first.map(|text| shown(&text));
            tracing::warn!(reason, "report refused");
            status(refusal)
        })?;
        Ok(Response::new(v1::ReportBatchResponse { batch: Some(batch) }))
    }
}

impl AgentService {
    async fn report(&self, request: v1::ReportBatchRequest) -> Result<v1::Batch, Refusal> {
        let workspace = wire::id("workspaceId", &request.workspace_id)?;
        let id = wire::id("batchId", &request.batch_id)?;
        let report = request.report.ok_or_else(|| missing("report", "what became of the batch"))?;
        let report = Report::try_from(report::bounded(report)?)?;
        let batch = self.0.report(workspace, id, request.lease_epoch, report).await?;
        Ok(event_message(batch))
    }
}

fn delivery_message(delivery: Delivery, heartbeat: Duration) -> v1::WatchBatchesResponse {
    use v1::watch_batches_response::Message;
    let message = match delivery {
        Delivery::Lease(epoch) => {
            let heartbeat_interval = prost_types::Duration::try_from(heartbeat).ok();
            Message::Lease(v1::Lease { epoch, heartbeat_interval })
        }
        Delivery::Event(revision, batch) => {
            let batch = Some(size::fitted(event_message(*batch)));
            Message::Event(v1::BatchEvent { revision: revision.0, batch })
        }
        Delivery::Heartbeat(revision) => Message::Heartbeat(v1::Heartbeat { revision: revision.0 }),
    };
    v1::WatchBatchesResponse { message: Some(message) }
}
