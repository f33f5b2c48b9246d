//! `AgentService`: what the agent on a workstation calls.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Instant;

use aptix_model::actor::Actor;
use aptix_model::events::event::Event;
use aptix_model::events::trace::{Trace, Via};
use aptix_model::report::Report;
use aptix_model::trace_parent::TraceParent;
use aptix_model::wire::{self, event_message, v1};
use aptix_telemetry::{Kind, Span};
use tokio_stream::{Stream, StreamExt};
use tonic::{Request, Response, Status, Streaming};
use tracing::Instrument as _;

use super::inflow::RefusedMessage;
use super::observed::about;
use super::status::status;
use super::{link, report, sent};
use crate::dispatcher::Dispatcher;
use crate::dispatcher::lease::secret_digest;
use crate::dispatcher::local::LocalReport;
use crate::dispatcher::refusal::Refusal;
use crate::dispatcher::report::BatchReport;
use crate::identity::Principal;
use crate::store::LeaseProof;

/// `AgentService` as a gRPC server.
pub type AgentServer = v1::agent_service_server::AgentServiceServer<AgentService>;

/// Serves `AgentService`.
pub struct AgentService(pub Arc<Dispatcher>);

#[tonic::async_trait]
impl v1::agent_service_server::AgentService for AgentService {
    type ServeStream = Pin<Box<dyn Stream<Item = Result<v1::ServeResponse, Status>> + Send>>;

    async fn serve(
        &self,
        requests: Request<Streaming<v1::ServeRequest>>,
    ) -> Result<Response<Self::ServeStream>, Status> {
        let refused = requests.extensions().get::<RefusedMessage>().cloned().unwrap_or_default();
        let ended = Principal::of(&requests)?.ended();
        let mut requests = requests.into_inner();
        let hello = link::hello(&mut requests, &refused).await?;
        let heartbeat = self.0.settings().heartbeat;
        let encode = move |delivery| link::message(delivery, heartbeat);
        let feed = self.0.serve(hello, link::answers(requests, refused, ended), encode).await.map_err(status)?;
        let answers = feed.map(|message| message.map_err(status));
        Ok(Response::new(Box::pin(answers)))
    }

    async fn report_batch(
        &self,
        request: Request<v1::ReportBatchRequest>,
    ) -> Result<Response<v1::ReportBatchResponse>, Status> {
        let began = Instant::now();
        let token = Principal::of(&request)?.signature();
        let by_header = sent::parent(request.metadata());
        let request = request.into_inner();
        let parent = TraceParent::parse(&request.traceparent).or(by_header);
        let span = Span::below("ReportBatch", Kind::Server, parent);
        let trace = Trace {
            workspace: Some(request.workspace_id.clone()),
            batch: request.batch_id.parse().ok(),
            tool: Some("ReportBatch".to_owned()),
            ..Trace::new(Via::Server)
        };
        let reported = self.report(request, token).instrument(trace.span()).await;
        sent::end(span, reported.as_ref().map(|batch| batch.batch_id.as_str()));
        let batch = reported.map_err(|refusal| {
            trace.log(began.elapsed(), Event::CallRefused(refusal.failures()));
            status(refusal)
        })?;
        Ok(about(Some(batch.batch_id.clone()), v1::ReportBatchResponse { batch: Some(batch) }))
    }

    async fn report_local_batch(
        &self,
        request: Request<v1::ReportLocalBatchRequest>,
    ) -> Result<Response<v1::ReportLocalBatchResponse>, Status> {
        let began = Instant::now();
        let request = request.into_inner();
        let trace = Trace {
            workspace: Some(request.workspace_id.clone()),
            batch: request.batch_id.parse().ok(),
            tool: Some("ReportLocalBatch".to_owned()),
            ..Trace::new(Via::Server)
        };
        let batch = self.report_local(request).instrument(trace.span()).await.map_err(|refusal| {
            trace.log(began.elapsed(), Event::CallRefused(refusal.failures()));
            status(refusal)
        })?;
        Ok(Response::new(v1::ReportLocalBatchResponse { batch: Some(batch) }))
    }
}

impl AgentService {
    async fn report_local(&self, request: v1::ReportLocalBatchRequest) -> Result<v1::Batch, Refusal> {
        let edit = request.edit.ok_or_else(|| wire::missing("edit", "the files that changed"))?;
        let report = request.report.ok_or_else(|| wire::missing("report", "what became of the files"))?;
        let actor = request.actor.ok_or_else(|| wire::missing("actor", "who did it"))?;
        let local = LocalReport {
            workspace: wire::id("workspaceId", &request.workspace_id)?,
            id: wire::id("batchId", &request.batch_id)?,
            batch: edit.try_into()?,
            report: Report::try_from(report::bounded(report)?)?,
            reverts: wire::optional_id("reverts", &request.reverts)?,
            actor: actor.try_into()?,
            reason: Some(request.reason).filter(|reason| !reason.is_empty()),
        };
        let lease = LeaseProof { epoch: request.lease_epoch, secret: secret_digest(&request.lease_secret) };
        Ok(event_message(self.0.report_local(local, lease).await?))
    }

    async fn report(&self, request: v1::ReportBatchRequest, token: Option<String>) -> Result<v1::Batch, Refusal> {
        let workspace = wire::id("workspaceId", &request.workspace_id)?;
        let id = wire::id("batchId", &request.batch_id)?;
        let report = request.report.ok_or_else(|| wire::missing("report", "what became of the batch"))?;
        let report = Report::try_from(report::bounded(report)?)?;
        let lease = LeaseProof { epoch: request.lease_epoch, secret: secret_digest(&request.lease_secret) };
        let decided_by = request.decided_by.map(Actor::try_from).transpose()?;
        let batch = self.0.report(workspace, id, lease, BatchReport { report, decided_by, token }).await?;
        Ok(event_message(batch))
    }
}
