//! One connection to a server: opened, with a deadline for each call and a limit for each message.

use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::batch_service_client::BatchServiceClient;
use aptix_model::wire::v1::file_service_client::FileServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tonic::service::interceptor::InterceptedService;
use tonic::transport::{Channel, Endpoint};
use tonic::{Request, Response, Status};

use super::call_error::CallError;
use super::route::Route;
use super::server_url::ServerUrl;
use super::token::{Bearer, Server, Token};

/// How long the server may take to be reached.
const CONNECT: Duration = Duration::from_secs(5);
/// How long it may take to answer a call that moves no file content.
pub(super) const ANSWER: Duration = Duration::from_secs(30);
/// The silence after which a keep-alive ping is sent.
const PING_AFTER: Duration = Duration::from_secs(10);
/// How long the server may take to answer a ping.
const PING_ANSWER: Duration = Duration::from_secs(10);
/// Most bytes of a call's headers: error details are the largest of them.
const HEADER_BYTES: u32 = 64 << 10;

/// A connection that serves one workspace. Clones share it.
#[derive(Clone, Debug)]
pub struct Connection {
    pub(super) server: ServerUrl,
    pub(super) workspace: WorkspaceId,
    channel: Link,
}

/// What calls go through.
pub(super) type Link = InterceptedService<Channel, Bearer>;

impl Connection {
    /// Connects.
    ///
    /// # Errors
    /// [`CallError::Unreachable`] when no server listens there or answers within five seconds; [`CallError::Untrusted`] when it
    /// does not prove who it is; [`CallError::Refused`] when the token that is to be sent, or a file of TLS, cannot be had.
    pub async fn open(server: &Server, workspace: &WorkspaceId) -> Result<Self, CallError> {
        let channel = reach(server).await?;
        Ok(Self { server: server.url.clone(), workspace: workspace.clone(), channel })
    }

    pub(super) fn batches(&self) -> BatchServiceClient<Link> {
        BatchServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES)
    }

    pub(super) fn workspaces(&self) -> WorkspaceServiceClient<Link> {
        WorkspaceServiceClient::new(self.channel.clone())
    }

    pub(super) fn agents(&self) -> AgentServiceClient<Link> {
        AgentServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES)
    }

    pub(super) fn files(&self) -> FileServiceClient<Link> {
        FileServiceClient::new(self.channel.clone())
            .max_decoding_message_size(MESSAGE_BYTES)
            .max_encoding_message_size(MESSAGE_BYTES)
    }

    /// Waits for a call, or a message of a stream, no longer than this.
    pub(super) async fn within<T>(
        &self,
        deadline: Duration,
        call: impl Future<Output = Result<T, Status>>,
    ) -> Result<T, CallError> {
        let result = tokio::time::timeout(deadline, call).await;
        let result = result.map_err(|_| CallError::silent(&self.server, deadline))?;
        result.map_err(|status| CallError::from_status(&self.server, &status))
    }

    /// The answer to a call that moves no file content.
    pub(super) async fn answer<T>(
        &self,
        call: impl Future<Output = Result<Response<T>, Status>>,
    ) -> Result<T, CallError> {
        self.within(ANSWER, call).await.map(Response::into_inner)
    }

    /// Runs work whose cost grows with what the server sends on the blocking pool: async workers serve heartbeats and signals.
    pub(super) async fn blocking<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, CallError> {
        let done = tokio::task::spawn_blocking(work).await;
        done.map_err(|error| CallError::unreachable(&self.server, format!("processing its message failed: {error}")))
    }
}

/// A request with a deadline that the server keeps, too.
pub(super) fn timed<T>(message: T, deadline: Duration) -> Request<T> {
    let mut request = Request::new(message);
    request.set_timeout(deadline);
    request
}

/// Connects to a server.
async fn reach(server: &Server) -> Result<Link, CallError> {
    let asked = server.clone();
    let prepared = tokio::task::spawn_blocking(move || prepare(&asked)).await;
    let (server, route) = (&server.url, &server.route);
    let prepared =
        prepared.map_err(|error| CallError::unreachable(server, format!("no connection was prepared: {error}")))?;
    let (endpoint, token) = prepared.map_err(CallError::refused)?;
    let connecting = tokio::time::timeout(CONNECT, route.connect(&endpoint)).await;
    let channel = match connecting {
        Ok(Ok(channel)) => channel,
        Ok(Err(error)) => return Err(CallError::from_transport(server, &error)),
        Err(_) => return Err(CallError::silent(server, CONNECT)),
    };
    Ok(InterceptedService::new(channel, Bearer(token)))
}

/// Reads what a connection to a server needs: its token, and the files of TLS.
fn prepare(server: &Server) -> Result<(Endpoint, Option<Token>), Failure> {
    let token = server.credentials.token()?;
    if token.is_some() && matches!(server.route, Route::Tcp) {
        server.trust.check_token(&server.url)?;
    }
    let endpoint = Endpoint::from(server.url.0.clone())
        .connect_timeout(CONNECT)
        .tcp_nodelay(true)
        .http2_keep_alive_interval(PING_AFTER)
        .keep_alive_timeout(PING_ANSWER)
        .keep_alive_while_idle(true)
        .http2_max_header_list_size(HEADER_BYTES);
    Ok((server.trust.prepare(&server.url, endpoint)?, token))
}

/// The first workspaces that the token for a server is for, in order, at most so many; what is no id of one is left out.
///
/// # Errors
/// As [`Connection::open`], and [`CallError::Refused`] when the server does not accept the token.
pub async fn workspaces(server: &Server, most: i32) -> Result<Vec<WorkspaceId>, CallError> {
    let mut workspaces = WorkspaceServiceClient::new(reach(server).await?);
    let request = v1::ListWorkspacesRequest { page_size: most, ..v1::ListWorkspacesRequest::default() };
    let listed = tokio::time::timeout(ANSWER, workspaces.list_workspaces(timed(request, ANSWER))).await;
    let listed = listed.map_err(|_| CallError::silent(&server.url, ANSWER))?;
    let listed = listed.map_err(|status| CallError::from_status(&server.url, &status))?.into_inner();
    Ok(listed.workspaces.iter().filter_map(|workspace| workspace.workspace_id.parse().ok()).collect())
}

/// Has the server look at the token for it.
///
/// # Errors
/// As [`workspaces`].
pub async fn check_token(server: &Server) -> Result<(), CallError> {
    workspaces(server, 1).await.map(drop)
}
