//! `AdminService`: tokens, workspaces and what they keep, and how the server is, for operators, and backups for the owner of the data
//! directory.

use std::sync::Arc;

use aptix_model::id::WorkspaceId;
use aptix_model::record::UnixMillis;
use aptix_model::token::{CertificateName, Role, Scope};
use aptix_model::wire::{self, v1};
use tonic::{Request, Response, Status};

use super::backup::{Backups, Pieces};
use super::deletion;
use super::retention;
use super::server_status;
use super::service_health::Health;
use super::status::status;
use crate::blob_sweep::BlobSweep;
use crate::dispatcher::Dispatcher;
use crate::dispatcher::refusal::{Refusal, no_workspace};
use crate::identity::{NewToken, Principal, Registry};
use crate::retention::Retainer;
use crate::store::retention::Retained;

/// `AdminService` as a gRPC server.
pub type AdminServer = v1::admin_service_server::AdminServiceServer<AdminService>;

/// Serves `AdminService`.
pub struct AdminService {
    /// The tokens.
    pub registry: Arc<Registry>,
    /// What removes what workspaces keep no longer.
    pub retainer: Arc<Retainer>,
    /// What removes blobs that nothing names.
    pub blob_sweep: Arc<BlobSweep>,
    /// Backups.
    pub backups: Backups,
    /// What there is.
    pub dispatcher: Arc<Dispatcher>,
    /// Which services serve.
    pub(crate) health: Arc<Health>,
    /// When the server began to serve.
    pub started: UnixMillis,
}

#[tonic::async_trait]
impl v1::admin_service_server::AdminService for AdminService {
    async fn get_server_status(
        &self,
        _: Request<v1::GetServerStatusRequest>,
    ) -> Result<Response<v1::GetServerStatusResponse>, Status> {
        let read = server_status::read(self.started, &self.dispatcher, &self.registry, &self.health).await;
        Ok(Response::new(read.into()))
    }

    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<Response<v1::CreateTokenResponse>, Status> {
        let by = Principal::of(&request)?.to_string();
        let request = request.into_inner();
        let asked = NewToken {
            name: wire::id("name", &request.name).map_err(status)?,
            role: Role::from_wire("role", request.role).map_err(status)?,
            scope: Scope::from_wire("workspaceId", &request.workspace_id).map_err(status)?,
            expires: request.expire_time.as_ref().map(wire::millis),
            certificate: CertificateName::from_wire("certificate", &request.certificate).map_err(status)?,
        };
        let (token, secret) = self.registry.create(asked).await.map_err(status)?;
        tracing::info!(token = %token.name, role = %token.role, scope = ?token.scope, by, "a token was made");
        Ok(Response::new(v1::CreateTokenResponse {
            token: Some(token.into()),
            secret: secret.map(|secret| secret.to_string()).unwrap_or_default(),
        }))
    }

    async fn list_tokens(&self, _: Request<v1::ListTokensRequest>) -> Result<Response<v1::ListTokensResponse>, Status> {
        let tokens = self.registry.list().await.map_err(status)?;
        Ok(Response::new(v1::ListTokensResponse { tokens: tokens.into_iter().map(Into::into).collect() }))
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Result<Response<v1::RevokeTokenResponse>, Status> {
        let by = Principal::of(&request)?.to_string();
        let name = wire::id("name", &request.into_inner().name).map_err(status)?;
        let token = self.registry.revoke(name).await.map_err(status)?;
        tracing::info!(token = %token.name, by, "a token was revoked");
        Ok(Response::new(v1::RevokeTokenResponse { token: Some(token.into()) }))
    }

    async fn create_workspace(
        &self,
        request: Request<v1::CreateWorkspaceRequest>,
    ) -> Result<Response<v1::CreateWorkspaceResponse>, Status> {
        let by = Principal::of(&request)?.to_string();
        let workspace: WorkspaceId = wire::id("workspaceId", &request.into_inner().workspace_id).map_err(status)?;
        let is_new = self.registry.create_workspace(workspace.clone()).await.map_err(status)?;
        if is_new {
            tracing::info!(WorkspaceId = %workspace, by, "a workspace was created");
        }
        Ok(Response::new(v1::CreateWorkspaceResponse { is_new }))
    }

    async fn delete_workspace(
        &self,
        request: Request<v1::DeleteWorkspaceRequest>,
    ) -> Result<Response<v1::DeleteWorkspaceResponse>, Status> {
        let by = Principal::of(&request)?.to_string();
        let request = request.into_inner();
        let workspace: WorkspaceId = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        if request.dry_run {
            let preview = self.dispatcher.preview_deletion(&workspace).await.map_err(status)?;
            return Ok(Response::new(deletion::preview(preview)));
        }
        let registry = Arc::clone(&self.registry);
        let begin = (!request.resume).then(|| registry.begin_deletion(workspace.clone()));
        let deleted = self.dispatcher.delete_workspace(workspace.clone(), begin).await.map_err(status)?;
        if !request.resume {
            tracing::info!(WorkspaceId = %workspace, by, "the deletion of a workspace was asked for");
        }
        Ok(Response::new(deletion::deleted(deleted)))
    }

    async fn retain_workspace(
        &self,
        request: Request<v1::RetainWorkspaceRequest>,
    ) -> Result<Response<v1::RetainWorkspaceResponse>, Status> {
        let request = request.into_inner();
        let workspace: WorkspaceId = wire::id("workspaceId", &request.workspace_id).map_err(status)?;
        let limits = request.limits.map(retention::limits);
        if limits.is_some() && !request.dry_run {
            return Err(status(retention::not_configured()));
        }
        let outcome = match request.dry_run {
            true => self.retainer.rehearse(workspace.clone(), limits).await,
            false => self.retainer.retain(workspace.clone()).await,
        };
        let outcome = outcome.map_err(status)?.ok_or_else(|| status(Refusal::denied(no_workspace(&workspace))))?;
        let Retained { contents, records, has_more, .. } = outcome.retained;
        if !request.dry_run {
            if contents + records > 0 {
                self.blob_sweep.expect_more();
            }
            if !has_more {
                self.blob_sweep.sweep_again().await;
            }
        }
        Ok(Response::new(retention::response(&outcome)))
    }

    type BackupStream = Pieces;

    async fn backup(&self, _: Request<v1::BackupRequest>) -> Result<Response<Pieces>, Status> {
        Ok(Response::new(self.backups.begin().await.map_err(status)?))
    }
}
