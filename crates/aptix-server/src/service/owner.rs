//! What the owner of a data directory asks the server that uses it, through the socket in it.

use std::fs::File;
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::token::Token;
use aptix_model::wire::v1::admin_service_client::AdminServiceClient;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use aptix_model::wire::{self, v1};
use tokio::time::timeout;
use tonic::transport::{Channel, Endpoint};
use tonic::{Code, Status};

use super::server_status::ServerStatus;
use super::{deletion, retention};
use crate::dispatcher::deletion::{Deleted, Preview};
use crate::identity::NewToken;
use crate::listen::{OwnerSocket, owner_uri};
use crate::retention::Outcome;
use crate::store::retention::Limits;

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(30);

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum Unanswered {
    /// The server refused.
    #[error("{0}")]
    Refused(String),
    /// A backup did not come to its end.
    #[error("the backup was broken off: {0}")]
    BrokenOff(String),
    /// The server failed, or is gone.
    #[error("the server did not answer: {0}; whether it did what was asked is not known: list what there is")]
    Failed(String),
}

impl From<Status> for Unanswered {
    fn from(status: Status) -> Self {
        let message = status.message().to_owned();
        match status.code() {
            Code::Unavailable | Code::Internal | Code::Unknown | Code::DeadlineExceeded | Code::Cancelled => {
                Self::Failed(message)
            }
            _ => Self::Refused(message),
        }
    }
}

impl From<Failure> for Unanswered {
    fn from(failure: Failure) -> Self {
        Self::Failed(format!("its answer cannot be read: {failure}"))
    }
}

/// A connection through the socket of a data directory.
#[derive(Clone, Debug)]
pub struct Owner {
    admin: AdminServiceClient<Channel>,
    workspaces: WorkspaceServiceClient<Channel>,
}

impl Owner {
    /// Connects to the server that uses a data directory.
    ///
    /// # Errors
    /// When none does, or it does not answer there.
    pub async fn connect(data_dir: &File, socket: OwnerSocket) -> Result<Self, tonic::transport::Error> {
        let channel = Endpoint::from_shared(owner_uri(data_dir, socket))?.timeout(PATIENCE).connect().await?;
        Ok(Self { admin: AdminServiceClient::new(channel.clone()), workspaces: WorkspaceServiceClient::new(channel) })
    }

    /// How the server is.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn status(&mut self) -> Result<ServerStatus, Unanswered> {
        Ok(self.admin.get_server_status(v1::GetServerStatusRequest {}).await?.into_inner().into())
    }

    /// Makes a token; answers its secret, too, which is empty for one that is for a certificate.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn create_token(&mut self, asked: NewToken) -> Result<(Token, String), Unanswered> {
        let request = v1::CreateTokenRequest {
            name: asked.name.to_string(),
            role: v1::Role::from(asked.role).into(),
            workspace_id: asked.scope.to_wire(),
            expire_time: asked.expires.map(Into::into),
            certificate: asked.certificate.map(|name| name.to_string()).unwrap_or_default(),
        };
        let made = self.admin.create_token(request).await?.into_inner();
        Ok((made.token.unwrap_or_default().try_into()?, made.secret))
    }

    /// Lists all tokens.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn list_tokens(&mut self) -> Result<Vec<Token>, Unanswered> {
        let listed = self.admin.list_tokens(v1::ListTokensRequest {}).await?.into_inner();
        Ok(listed.tokens.into_iter().map(Token::try_from).collect::<Result<_, _>>()?)
    }

    /// Ends a token.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn revoke_token(&mut self, name: &TokenName) -> Result<Token, Unanswered> {
        let request = v1::RevokeTokenRequest { name: name.to_string() };
        let ended = self.admin.revoke_token(request).await?.into_inner();
        Ok(ended.token.unwrap_or_default().try_into()?)
    }

    /// Creates a workspace; answers whether there was none.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn create_workspace(&mut self, workspace: &WorkspaceId) -> Result<bool, Unanswered> {
        let request = v1::CreateWorkspaceRequest { workspace_id: workspace.to_string() };
        Ok(self.admin.create_workspace(request).await?.into_inner().is_new)
    }

    /// What the deletion of a workspace would remove.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn preview_deletion(&mut self, workspace: &WorkspaceId) -> Result<Preview, Unanswered> {
        let workspace_id = workspace.to_string();
        let request = v1::DeleteWorkspaceRequest { workspace_id, dry_run: true, resume: false };
        Ok(deletion::read_preview(&self.admin.delete_workspace(request).await?.into_inner())?)
    }

    /// Deletes a workspace; calls the server until nothing is left of it. With `has_begun` only what a deletion left is removed.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn delete_workspace(&mut self, workspace: &WorkspaceId, has_begun: bool) -> Result<Deleted, Unanswered> {
        let mut tokens = Vec::new();
        let mut last: Option<Deleted> = None;
        loop {
            // From the second call on a workspace of this id is another one, unless it is being deleted.
            let resume = has_begun || last.is_some();
            let request = v1::DeleteWorkspaceRequest { workspace_id: workspace.to_string(), dry_run: false, resume };
            let answer = match (self.admin.delete_workspace(request).await, last) {
                // A server that was started meanwhile has removed the rest.
                (Err(status), Some(before)) if status.code() == Code::NotFound => {
                    return Ok(Deleted { tokens, ..before });
                }
                (answer, _) => deletion::read_deleted(&answer?.into_inner())?,
            };
            tokens.extend(answer.tokens.iter().cloned());
            if answer.deletion.is_done {
                return Ok(Deleted { tokens, ..answer });
            }
            last = Some(answer);
        }
    }

    /// The ids of all workspaces.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn workspaces(&mut self) -> Result<Vec<WorkspaceId>, Unanswered> {
        let ids = self.list_workspaces().await?;
        Ok(ids.iter().map(|id| wire::id("workspaceId", id)).collect::<Result<_, _>>()?)
    }

    /// Hands the bytes of a backup to `take`, piece by piece.
    ///
    /// # Errors
    /// When the server refuses, it does not come to its end, or `take` fails.
    pub async fn back_up<E: std::fmt::Display>(
        &mut self,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> Result<(), Unanswered> {
        let broken_off = |status: Status| match status.code() {
            Code::PermissionDenied | Code::ResourceExhausted | Code::Unimplemented => Unanswered::from(status),
            _ => Unanswered::BrokenOff(status.message().to_owned()),
        };
        let mut pieces = self.admin.backup(v1::BackupRequest {}).await.map_err(broken_off)?.into_inner();
        loop {
            let piece = timeout(PATIENCE, pieces.message()).await;
            let piece = piece.map_err(|_| Unanswered::BrokenOff(format!("nothing came for {PATIENCE:?}")))?;
            let Some(piece) = piece.map_err(broken_off)? else { return Ok(()) };
            take(&piece.data).map_err(|error| Unanswered::BrokenOff(error.to_string()))?;
        }
    }

    /// Lists the ids of all workspaces.
    ///
    /// # Errors
    /// When the server does not answer.
    pub async fn list_workspaces(&mut self) -> Result<Vec<String>, Unanswered> {
        let (mut ids, mut page_token) = (Vec::new(), String::new());
        loop {
            let request = v1::ListWorkspacesRequest { page_token, ..v1::ListWorkspacesRequest::default() };
            let page = self.workspaces.list_workspaces(request).await?.into_inner();
            ids.extend(page.workspaces.into_iter().map(|workspace| workspace.workspace_id));
            page_token = page.next_page_token;
            if page_token.is_empty() {
                return Ok(ids);
            }
        }
    }

    /// Removes a bounded part of what a workspace keeps no longer.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn retain(&mut self, workspace: &WorkspaceId) -> Result<Outcome, Unanswered> {
        let request = v1::RetainWorkspaceRequest { workspace_id: workspace.to_string(), dry_run: false, limits: None };
        let retained = self.admin.retain_workspace(request).await?.into_inner();
        Ok(retention::outcome(&retained)?)
    }

    /// Counts what a workspace would lose by the limits that are configured, or by others.
    ///
    /// # Errors
    /// When the server refuses, or does not answer.
    pub async fn rehearse(&mut self, workspace: &WorkspaceId, limits: Option<Limits>) -> Result<Outcome, Unanswered> {
        let limits = limits.as_ref().map(retention::to_wire);
        let request = v1::RetainWorkspaceRequest { workspace_id: workspace.to_string(), dry_run: true, limits };
        let counted = self.admin.retain_workspace(request).await?.into_inner();
        Ok(retention::outcome(&counted)?)
    }
}
