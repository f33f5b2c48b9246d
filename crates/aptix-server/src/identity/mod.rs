//! Who calls, and what they may do: tokens, their roles, and the workspaces they are for.
//!
//! From the first token on every call needs one. The decision is made once, before a call's message is read; which workspace the
//! message names is held against the token as soon as the message is there.

mod registry;
mod rights;

use std::fmt;
use std::sync::Arc;

use aptix_model::failure::Failure;
use aptix_model::id::{TokenName, WorkspaceId};
use aptix_model::reason::Reason;
use aptix_model::token::{Role, Scope, Token};
use aptix_model::wire::method::Method;
use tokio_util::sync::CancellationToken;
use tonic::{Request, Status};

pub(crate) use self::registry::bearer;
pub use self::registry::{NewToken, Registry};
pub use crate::secret::Secret;

/// Who makes a call.
#[derive(Clone, Debug)]
pub enum Principal {
    /// Whoever reaches the server, as long as no token was ever made: until this is cancelled.
    Anyone(CancellationToken),
    /// The owner of the data directory, through the socket in it.
    Owner,
    /// Another server on the same store.
    Member,
    /// The holder of a token.
    Holder(Arc<Held>),
}

/// As the log names who did something: `token NAME`, `owner`, `another server`, or `anyone` while callers need no token.
impl fmt::Display for Principal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Holder(held) => write!(out, "token {}", held.token.name),
            Self::Owner => out.write_str("owner"),
            Self::Member => out.write_str("another server"),
            Self::Anyone(_) => out.write_str("anyone"),
        }
    }
}

/// A token that is of use.
#[derive(Debug)]
pub struct Held {
    token: Token,
    /// Differs from that of every other token of this process.
    number: u64,
    /// Cancelled when the token ends.
    ended: CancellationToken,
}

impl Principal {
    /// Who sent a request.
    ///
    /// # Errors
    /// When it did not come through admission.
    pub fn of<T>(request: &Request<T>) -> Result<&Self, Status> {
        request.extensions().get().ok_or_else(|| Status::internal("the call did not come through admission"))
    }

    /// Whether this caller may call this method at all; `None` stands for a method of another protocol, such as reflection.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`.
    pub fn check_method(&self, method: Option<Method>) -> Result<(), Failure> {
        let Some(method) = method else { return Ok(()) };
        let role = match self {
            Self::Member if rights::is_for_members(method) => return Ok(()),
            Self::Member => return Err(only_for_questions(method)),
            _ if rights::is_for_members(method) => return Err(not_a_server(method)),
            Self::Owner if rights::is_for_owner(method) => return Ok(()),
            _ if rights::is_for_owner(method) => return Err(not_the_owner(method)),
            Self::Anyone(_) if !rights::is_administration(method) => return Ok(()),
            Self::Anyone(_) => return Err(not_an_operator(method)),
            Self::Owner => Role::Operator,
            Self::Holder(held) => held.token.role,
        };
        if rights::roles(method).contains(&role) { Ok(()) } else { Err(not_allowed(method, role)) }
    }

    /// Whether this caller may have to do with a workspace.
    ///
    /// # Errors
    /// `PERMISSION_DENIED`: the same whether there is such a workspace or not.
    pub fn check_workspace(&self, workspace: &WorkspaceId) -> Result<(), Failure> {
        self.only().filter(|only| *only != workspace).map_or(Ok(()), |only| Err(other_workspace(only)))
    }

    /// The one workspace that this caller may have to do with, unless it may with all.
    #[must_use]
    pub fn only(&self) -> Option<&WorkspaceId> {
        match self {
            Self::Holder(held) => match &held.token.scope {
                Scope::One(workspace) => Some(workspace),
                Scope::All => None,
            },
            Self::Anyone(_) | Self::Owner | Self::Member => None,
        }
    }

    /// The name of the caller's token.
    #[must_use]
    pub fn name(&self) -> Option<&TokenName> {
        match self {
            Self::Holder(held) => Some(&held.token.name),
            Self::Anyone(_) | Self::Owner | Self::Member => None,
        }
    }

    /// The number of the caller's token, by which its calls are counted.
    pub(crate) fn number(&self) -> Option<u64> {
        match self {
            Self::Holder(held) => Some(held.number),
            Self::Anyone(_) | Self::Owner | Self::Member => None,
        }
    }

    /// Puts the name of the caller's token beside the name that the caller gave, for the record of what was done.
    pub fn sign(&self, given: &mut String) {
        if let Some(token) = self.signature() {
            *given = if given.is_empty() { token } else { format!("{given} ({token})") };
        }
    }

    /// The caller's token, by the name that the record of what was done has for it; `None` where callers need none.
    #[must_use]
    pub fn signature(&self) -> Option<String> {
        self.name().map(|token| format!("token {token}"))
    }

    /// Cancelled when this caller may not call any more.
    #[must_use]
    pub fn ended(&self) -> CancellationToken {
        match self {
            Self::Holder(held) => held.ended.clone(),
            Self::Anyone(closed) => closed.clone(),
            Self::Owner | Self::Member => CancellationToken::new(),
        }
    }
}

/// The call has no token that is of use: the same for none, another scheme, and one that is unknown, expired or revoked.
#[must_use]
pub fn unauthenticated() -> Failure {
    Failure::new(Reason::Unauthenticated, "the call has no token that this server accepts")
        .hint("send `authorization: Bearer TOKEN`, once, with a token that has not ended; an operator makes one with `aptix-server token create`")
}

fn not_an_operator(method: Method) -> Failure {
    Failure::new(Reason::PermissionDenied, format!("{} is for operators, and the call has no token", method.path()))
        .hint("run the command on the server's machine as the owner of its data directory, or send an operator's token")
}

fn not_a_server(method: Method) -> Failure {
    let message = format!("{} is for the other servers on this server's store", method.path());
    Failure::new(Reason::PermissionDenied, message)
        .hint("ask about files with FileService: it asks the agent, wherever it is connected")
}

fn only_for_questions(method: Method) -> Failure {
    let message =
        format!("{} is not for the other servers on this server's store, which only ask agents", method.path());
    Failure::new(Reason::PermissionDenied, message).hint("call with a token that an operator made")
}

fn not_the_owner(method: Method) -> Failure {
    let message = format!("{} is for the owner of the server's data directory", method.path());
    Failure::new(Reason::PermissionDenied, message)
        .hint("run the command on the server's machine as that owner: it calls through the socket in the directory")
}

fn not_allowed(method: Method, role: Role) -> Failure {
    let roles: Vec<_> = rights::roles(method).iter().map(|role| role.word()).collect();
    let message = format!("{} is for the role {}, and the token's role is {role}", method.path(), roles.join(" or "));
    Failure::new(Reason::PermissionDenied, message).hint("ask the operator for a token of that role")
}

/// The call names another workspace than its token is for, or one that cannot be read.
#[must_use]
pub fn other_workspace(only: &WorkspaceId) -> Failure {
    Failure::new(Reason::PermissionDenied, format!("the token is for workspace {only}, and the call names another"))
        .field("workspaceId")
        .hint("name that workspace, or ask the operator for a token for the other one")
}
