//! Asks the agents that are connected to other servers on the store, through those servers.

use std::collections::HashMap;
use std::fmt;
use std::pin::Pin;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use aptix_model::failure::Failure;
use aptix_model::id::WorkspaceId;
use aptix_model::limits::MESSAGE_BYTES;
use aptix_model::wire::question::{Answer, Ask};
use aptix_model::wire::v1;
use aptix_model::wire::v1::fleet_service_client::FleetServiceClient;
use tokio::time::Instant;
use tonic::codegen::http::header::AUTHORIZATION;
use tonic::transport::{Certificate, Channel, ClientTlsConfig, Endpoint};
use tonic::{Code, Request, Status};

use crate::dispatcher::other_servers::{OtherServers, out_of_reach};
use crate::dispatcher::refusal::Refusal;
use crate::fleet::Connect;
use crate::store::fleet::Member;

/// How long it takes at most to connect to another server.
const CONNECT: Duration = Duration::from_secs(2);

/// How often a server that answers nothing is asked for a sign of life, and how long it has for one.
const SIGN_OF_LIFE: Duration = Duration::from_secs(5);

/// Connections that are kept at most: those to servers that have gone are among them.
const CONNECTIONS: usize = 64;

/// The connections to other servers.
pub struct Connections {
    authorities: Option<Vec<u8>>,
    connect: Connect,
    /// By address.
    channels: Mutex<HashMap<String, Channel>>,
}

impl fmt::Debug for Connections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Connections").finish_non_exhaustive()
    }
}

impl Connections {
    /// Connects to servers whose certificates these authorities signed, in PEM; without them those of the system are trusted.
    #[must_use]
    pub fn new(authorities: Option<Vec<u8>>, connect: Connect) -> Self {
        Self { authorities, connect, channels: Mutex::default() }
    }

    /// The connection to a server, which is made when it is used first.
    fn channel(&self, server: &Member) -> Result<Channel, Failure> {
        let address = server.address.as_deref().ok_or_else(|| {
            out_of_reach(server, "it tells the others no address; set `fleet.address` in its configuration")
        })?;
        let mut channels = self.channels.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(channel) = channels.get(address) {
            return Ok(channel.clone());
        }
        let endpoint = self.endpoint(address).map_err(|error| out_of_reach(server, &error.to_string()))?;
        let channel = self.connect.channel(&endpoint);
        if channels.len() >= CONNECTIONS {
            channels.clear();
        }
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    fn endpoint(&self, address: &str) -> Result<Endpoint, tonic::transport::Error> {
        let endpoint = Endpoint::from_shared(address.to_owned())?
            .connect_timeout(CONNECT)
            .http2_keep_alive_interval(SIGN_OF_LIFE)
            .keep_alive_timeout(SIGN_OF_LIFE);
        if !address.starts_with("https:") {
            return Ok(endpoint);
        }
        endpoint.tls_config(match &self.authorities {
            Some(authorities) => ClientTlsConfig::new().ca_certificate(Certificate::from_pem(authorities)),
            None => ClientTlsConfig::new().with_native_roots(),
        })
    }

    async fn ask(
        &self,
        server: &Member,
        workspace: &WorkspaceId,
        ask: Ask,
        deadline: Instant,
    ) -> Result<Answer, Refusal> {
        let channel = self.channel(server).map_err(Refusal::denied)?;
        let left = deadline.saturating_duration_since(Instant::now());
        let time_left = prost_types::Duration::try_from(left).ok();
        let question = v1::Question { question_id: 0, time_left, ask: Some(ask.0) };
        let mut request =
            Request::new(v1::AskAgentRequest { workspace_id: workspace.to_string(), question: Some(question) });
        let secret = format!("Bearer {}", server.secret).parse();
        let no_token = |_| Refusal::denied(out_of_reach(server, "what it tells the others to prove is no token"));
        let secret = secret.map_err(no_token)?;
        request.metadata_mut().insert(AUTHORIZATION.as_str(), secret);
        request.set_timeout(left);
        let client = FleetServiceClient::new(channel);
        let mut client = client.max_decoding_message_size(MESSAGE_BYTES).max_encoding_message_size(MESSAGE_BYTES);
        let answered = client.ask_agent(request).await;
        let answered = answered.map_err(|status| Refusal::denied(unanswered(server, &status)))?.into_inner();
        let answer = answered
            .answer
            .and_then(|answer| answer.answer)
            .ok_or_else(|| Refusal::denied(out_of_reach(server, "its answer has no member that this version knows")))?;
        Answer(answer).into_result().map_err(Refusal::denied)
    }
}

impl OtherServers for Connections {
    fn ask<'a>(
        &'a self,
        server: &'a Member,
        workspace: &'a WorkspaceId,
        ask: Ask,
        deadline: Instant,
    ) -> Pin<Box<dyn Future<Output = Result<Answer, Refusal>> + Send + 'a>> {
        Box::pin(Self::ask(self, server, workspace, ask, deadline))
    }
}

/// Why another server gave no answer.
fn unanswered(server: &Member, status: &Status) -> Failure {
    match status.code() {
        Code::PermissionDenied | Code::Unauthenticated => {
            out_of_reach(server, "it has another place among the servers now, or is on another store")
        }
        _ => out_of_reach(server, status.message()),
    }
}
