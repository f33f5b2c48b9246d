//! The way to agents that are connected to other servers on the store.

use std::pin::Pin;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::reason::{Detail, Reason};
use aptix_model::wire::question::{Answer, Ask};
use tokio::time::Instant;

use super::refusal::Refusal;
use crate::store::fleet::Member;

/// The way to the agents that are connected to other servers on the store.
pub trait OtherServers: Send + Sync + 'static {
    /// Asks the agent that serves a workspace through this server, once: the server asks no other.
    fn ask<'a>(
        &'a self,
        server: &'a Member,
        workspace: &'a WorkspaceId,
        ask: Ask,
        deadline: Instant,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send + 'a>>;
}

/// No other server is asked.
pub(super) struct NoOthers;

impl OtherServers for NoOthers {
    fn ask<'a>(
        &'a self,
        server: &'a Member,
        _: &'a WorkspaceId,
        _: Ask,
        _: Instant,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send + 'a>> {
        Box::pin(async { Err(Refusal::denied(out_of_reach(server, "this server asks no other"))) })
    }
}

/// The server that an agent is connected to cannot be asked.
#[must_use]
pub fn out_of_reach(server: &Member, why: &str) -> Failure {
    let place = server.address.as_deref().unwrap_or("no address");
    let message = format!("the server that the workspace's agent is connected to ({place}) cannot be asked: {why}");
    Failure::new(Reason::Unavailable, message)
        .detail(Detail::AgentLost)
        .hint("call again: the agent connects again by itself")
}
