//! `AdminService`: tokens and workspaces, for operators.

use std::sync::Arc;

use aptix_model::token::{Role, Scope};
use aptix_model::wire::{self, v1};
use tonic::{Request, Response, Status};

use super::status::status;
use crate::identity::{NewToken, Registry};

/// `AdminService` as a gRPC server.
pub type AdminServer = v1::admin_service_server::AdminServiceServer<AdminService>;

/// Serves `AdminService`.
pub struct AdminService(pub Arc<Registry>);

#[tonic::async_trait]
impl v1::admin_service_server::AdminService for AdminService {
    async fn create_token(
        &self,
        request: Request<v1::CreateTokenRequest>,
    ) -> Result<Response<v1::CreateTokenResponse>, Status> {
        let request = request.into_inner();
        let asked = NewToken {
            name: wire::id("name", &request.name).map_err(status)?,
            role: Role::from_wire("role", request.role).map_err(status)?,
            scope: Scope::from_wire("workspaceId", &request.workspace_id).map_err(status)?,
            expires: request.expire_time.as_ref().map(wire::millis),
        };
        let (token, secret) = self.0.create(asked).await.map_err(status)?;
        tracing::info!(token = %token.name, role = %token.role, scope = ?token.scope, "a token was made");
        Ok(Response::new(v1::CreateTokenResponse { token: Some(token.into()), secret: secret.to_string() }))
    }

    async fn list_tokens(&self, _: Request<v1::ListTokensRequest>) -> Result<Response<v1::ListTokensResponse>, Status> {
        let tokens = self.0.list().await.map_err(status)?;
        Ok(Response::new(v1::ListTokensResponse { tokens: tokens.into_iter().map(Into::into).collect() }))
    }

    async fn revoke_token(
        &self,
        request: Request<v1::RevokeTokenRequest>,
    ) -> Result<Response<v1::RevokeTokenResponse>, Status> {
        let name = wire::id("name", &request.into_inner().name).map_err(status)?;
        let token = self.0.revoke(name).await.map_err(status)?;
        tracing::info!(token = %token.name, "a token was revoked");
        Ok(Response::new(v1::RevokeTokenResponse { token: Some(token.into()) }))
    }

    async fn create_workspace(
        &self,
        request: Request<v1::CreateWorkspaceRequest>,
    ) -> Result<Response<v1::CreateWorkspaceResponse>, Status> {
        let workspace = wire::id("workspaceId", &request.into_inner().workspace_id).map_err(status)?;
        let is_new = self.0.create_workspace(workspace).await.map_err(status)?;
        Ok(Response::new(v1::CreateWorkspaceResponse { is_new }))
    }
}
