//! Tokens, between the wire and the model.

use alloc::borrow::ToOwned;
use alloc::format;
use alloc::string::{String, ToString};

use super::field::{id, millis, missing, unknown_enum};
use super::v1;
use crate::failure::Failure;
use crate::reason::{Detail, Reason};
use crate::token::{CertificateName, CertificateNameError, Ended, Ending, Role, Scope, Token};

impl Role {
    /// Reads a role from the field of this name.
    ///
    /// # Errors
    /// INVALID_REQUEST (MISSING, UNKNOWN_ENUM), naming the field.
    pub fn from_wire(field: &str, value: i32) -> Result<Self, Failure> {
        match v1::Role::try_from(value) {
            Ok(v1::Role::Unspecified) => Err(missing(field, "a role")),
            Ok(v1::Role::Orchestrator) => Ok(Self::Orchestrator),
            Ok(v1::Role::Agent) => Ok(Self::Agent),
            Ok(v1::Role::Reviewer) => Ok(Self::Reviewer),
            Ok(v1::Role::Reader) => Ok(Self::Reader),
            Ok(v1::Role::Operator) => Ok(Self::Operator),
            Err(_) => Err(unknown_enum(field, value)),
        }
    }
}

impl Scope {
    /// Reads the one workspace from the field of this name, or `*` for all of them.
    ///
    /// # Errors
    /// INVALID_REQUEST (MISSING, ID_FORMAT), naming the field.
    pub fn from_wire(field: &str, workspace: &str) -> Result<Self, Failure> {
        match workspace {
            "" => Err(missing(field, "a workspace's id, or * for all workspaces")),
            "*" => Ok(Self::All),
            one => id(field, one).map(Self::One),
        }
    }

    /// The one workspace, as [`from_wire`](Self::from_wire) reads it.
    #[must_use]
    pub fn to_wire(&self) -> String {
        match self {
            Self::All => "*".to_owned(),
            Self::One(workspace) => workspace.to_string(),
        }
    }
}

impl CertificateName {
    /// Reads the name of a certificate from the field of this name, if it has one.
    ///
    /// # Errors
    /// INVALID_REQUEST (ID_FORMAT), naming the field.
    pub fn from_wire(field: &str, name: &str) -> Result<Option<Self>, Failure> {
        let name = Some(name).filter(|name| !name.is_empty()).map(str::parse).transpose();
        name.map_err(|error: CertificateNameError| {
            Failure::new(Reason::InvalidRequest, format!("{field}: {error}")).detail(Detail::IdFormat).field(field)
        })
    }
}

impl From<Role> for v1::Role {
    fn from(role: Role) -> Self {
        match role {
            Role::Orchestrator => Self::Orchestrator,
            Role::Agent => Self::Agent,
            Role::Reviewer => Self::Reviewer,
            Role::Reader => Self::Reader,
            Role::Operator => Self::Operator,
        }
    }
}

impl TryFrom<v1::Token> for Token {
    type Error = Failure;

    fn try_from(token: v1::Token) -> Result<Self, Failure> {
        let how = if token.has_expired { Ending::Expired } else { Ending::Revoked };
        Ok(Self {
            name: id("name", &token.name)?,
            role: Role::from_wire("role", token.role)?,
            scope: Scope::from_wire("workspaceId", &token.workspace_id)?,
            created: millis(&token.create_time.unwrap_or_default()),
            expires: token.expire_time.as_ref().map(millis),
            certificate: CertificateName::from_wire("certificate", &token.certificate)?,
            ended: token.end_time.as_ref().map(|at| Ended { at: millis(at), how }),
        })
    }
}

impl From<Token> for v1::Token {
    fn from(token: Token) -> Self {
        Self {
            name: token.name.to_string(),
            role: v1::Role::from(token.role).into(),
            workspace_id: token.scope.to_wire(),
            create_time: Some(token.created.into()),
            expire_time: token.expires.map(Into::into),
            end_time: token.ended.map(|ended| ended.at.into()),
            certificate: token.certificate.map(|name| name.to_string()).unwrap_or_default(),
            has_expired: token.ended.is_some_and(|ended| ended.how == Ending::Expired),
        }
    }
}
