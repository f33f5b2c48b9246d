//! The calls of authors, reviewers and operators, each with its caller's token and a deadline.

use std::time::Duration;

use anyhow::{Context, Result};
use aptix_model::wire::v1;
use aptix_model::wire::v1::admin_service_client::AdminServiceClient;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Status};

use crate::ledger::digest;

/// How long an answer may take, unless something is broken.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);

/// A connection, and the token that its calls carry.
#[derive(Clone)]
pub(crate) struct Calls {
    channel: Channel,
    token: String,
}

impl Calls {
    pub(crate) async fn open(address: &str, token: &str) -> Result<Self> {
        let endpoint = Endpoint::from_shared(format!("http://{address}"))?;
        let channel = timeout(PATIENCE, endpoint.connect()).await.context("the server takes no connection")??;
        Ok(Self { channel, token: token.to_owned() })
    }

    /// The same connection for another caller.
    pub(crate) fn with_token(&self, token: &str) -> Self {
        Self { channel: self.channel.clone(), token: token.to_owned() }
    }

    /// The same connection for the caller of other calls.
    pub(crate) fn as_of(&self, other: &Self) -> Self {
        self.with_token(&other.token)
    }

    /// A call with this message.
    fn request<T>(&self, message: T) -> Request<T> {
        let mut request = Request::new(message);
        if let Ok(token) = format!("Bearer {}", self.token).parse() {
            request.metadata_mut().insert("authorization", token);
        }
        request
    }

    fn batches(&self) -> BatchServiceClient<Channel> {
        BatchServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn submit(&self, request: v1::SubmitBatchRequest) -> Result<v1::Batch, Status> {
        let answer = within(self.batches().submit_batch(self.request(request))).await?;
        has(answer.batch, "the batch")
    }

    pub(crate) async fn get(&self, workspace: &str, request_id: &str) -> Result<v1::Batch, Status> {
        let request = v1::GetBatchRequest {
            workspace_id: workspace.to_owned(),
            batch: Some(v1::get_batch_request::Batch::RequestId(request_id.to_owned())),
            view: v1::BatchView::Full.into(),
        };
        has(within(self.batches().get_batch(self.request(request))).await?.batch, "the batch")
    }

    /// The request ids of all batches, one for each batch.
    pub(crate) async fn request_ids(&self, workspace: &str) -> Result<Vec<String>, Status> {
        let mut request =
            v1::ListBatchesRequest { workspace_id: workspace.to_owned(), page_size: 1000, ..Default::default() };
        let mut ids = Vec::new();
        loop {
            let page = within(self.batches().list_batches(self.request(request.clone()))).await?;
            if let Some(damage) = page.damaged.first() {
                return Err(Status::data_loss(damage.message.clone()));
            }
            ids.extend(page.batches.into_iter().map(|batch| batch.request_id));
            if page.next_page_token.is_empty() {
                return Ok(ids);
            }
            request.page_token = page.next_page_token;
        }
    }

    pub(crate) async fn cancel(&self, request: v1::CancelBatchRequest) -> Result<v1::Batch, Status> {
        has(within(self.batches().cancel_batch(self.request(request))).await?.batch, "the batch")
    }

    pub(crate) async fn reject(&self, request: v1::RejectBatchRequest) -> Result<v1::Batch, Status> {
        has(within(self.batches().reject_batch(self.request(request))).await?.batch, "the batch")
    }

    pub(crate) async fn report(&self, request: v1::ReportBatchRequest) -> Result<v1::Batch, Status> {
        let mut agents = AgentServiceClient::new(self.channel.clone());
        has(within(agents.report_batch(self.request(request))).await?.batch, "the batch")
    }

    /// Serves a workspace; sends nothing after the first message.
    pub(crate) async fn serve(&self, hello: v1::Hello) -> Result<tonic::Streaming<v1::ServeResponse>, Status> {
        let hello = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
        let messages = tokio_stream::StreamExt::chain(tokio_stream::once(hello), tokio_stream::pending());
        let mut agents = AgentServiceClient::new(self.channel.clone());
        within(agents.serve(self.request(messages))).await
    }

    fn files(&self) -> FileServiceClient<Channel> {
        FileServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn upload(&self, workspace: &str, bytes: &[u8]) -> Result<v1::BlobRef, Status> {
        let blob = v1::BlobRef { sha256: digest(bytes), size_bytes: bytes.len() as u64 };
        let start = v1::UploadBlobStart { workspace_id: workspace.to_owned(), blob: Some(blob), ..Default::default() };
        let part = |part| v1::UploadBlobRequest { part: Some(part) };
        let mut parts = vec![part(v1::upload_blob_request::Part::Start(start))];
        parts.extend(
            bytes.chunks(1 << 16).map(|chunk| part(v1::upload_blob_request::Part::Chunk(chunk.to_vec().into()))),
        );
        has(within(self.files().upload_blob(self.request(tokio_stream::iter(parts)))).await?.blob, "the blob")
    }

    pub(crate) async fn download(&self, workspace: &str, sha256: &str) -> Result<Vec<u8>, Status> {
        let request = v1::DownloadBlobRequest { workspace_id: workspace.to_owned(), sha256: sha256.to_owned() };
        let mut chunks = within(self.files().download_blob(self.request(request))).await?;
        let mut bytes = Vec::new();
        while let Some(next) = in_time(chunks.message()).await? {
            bytes.extend(next.chunk);
        }
        Ok(bytes)
    }

    fn workspaces(&self) -> WorkspaceServiceClient<Channel> {
        WorkspaceServiceClient::new(self.channel.clone())
    }

    pub(crate) async fn workspace(&self, workspace: &str) -> Result<v1::Workspace, Status> {
        let request = v1::GetWorkspaceRequest { workspace_id: workspace.to_owned() };
        has(within(self.workspaces().get_workspace(self.request(request))).await?.workspace, "the workspace")
    }

    pub(crate) async fn watch(
        &self,
        request: v1::WatchWorkspaceRequest,
    ) -> Result<tonic::Streaming<v1::WatchWorkspaceResponse>, Status> {
        within(self.workspaces().watch_workspace(self.request(request))).await
    }

    fn admin(&self) -> AdminServiceClient<Channel> {
        AdminServiceClient::new(self.channel.clone())
    }

    /// A token and its secret.
    pub(crate) async fn make_token(&self, name: &str) -> Result<(v1::Token, String), Status> {
        let request = v1::CreateTokenRequest {
            name: name.to_owned(),
            role: v1::Role::Reader.into(),
            workspace_id: "*".to_owned(),
            ..Default::default()
        };
        let answer = within(self.admin().create_token(self.request(request))).await?;
        Ok((has(answer.token, "the token")?, answer.secret))
    }

    /// Has the oldest records of a workspace removed.
    pub(crate) async fn retain(&self, workspace: &str) -> Result<v1::RetainWorkspaceResponse, Status> {
        let request = v1::RetainWorkspaceRequest { workspace_id: workspace.to_owned(), ..Default::default() };
        within(self.admin().retain_workspace(self.request(request))).await
    }

    pub(crate) async fn revoke_token(&self, name: &str) -> Result<v1::Token, Status> {
        let request = v1::RevokeTokenRequest { name: name.to_owned() };
        has(within(self.admin().revoke_token(self.request(request))).await?.token, "the token")
    }

    pub(crate) async fn tokens(&self) -> Result<Vec<v1::Token>, Status> {
        Ok(within(self.admin().list_tokens(self.request(v1::ListTokensRequest {}))).await?.tokens)
    }
}

/// What comes of something in time.
pub(crate) async fn in_time<T>(work: impl Future<Output = Result<T, Status>>) -> Result<T, Status> {
    let late = || Status::deadline_exceeded(format!("no answer within {PATIENCE:?}"));
    timeout(PATIENCE, work).await.unwrap_or_else(|_| Err(late()))
}

async fn within<T>(call: impl Future<Output = Result<tonic::Response<T>, Status>>) -> Result<T, Status> {
    in_time(call).await.map(tonic::Response::into_inner)
}

fn has<T>(part: Option<T>, what: &str) -> Result<T, Status> {
    part.ok_or_else(|| Status::data_loss(format!("the answer lacks {what}")))
}
