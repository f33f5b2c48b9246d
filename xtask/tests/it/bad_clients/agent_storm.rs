//! Agents that all come back at once, after their server ended or was killed.

use std::collections::BTreeSet;

use aptix_model::wire::v1;
use aptix_model::wire::v1::agent_service_client::AgentServiceClient;
use aptix_model::wire::v1::serve_response::Message;
use tokio::sync::mpsc;
use tokio::task::{JoinSet, block_in_place};
use tokio::time::{Instant, timeout};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Endpoint;
use tonic::{Code, Status, Streaming};
use tonic_types::StatusExt as _;

use super::{Quiet, SOON, hello};
use crate::processes::{Machine, Server};

/// Agents, each with a workspace and a connection of its own.
const AGENTS: usize = 300;

/// An agent that holds the lease of its workspace.
struct Agent {
    number: usize,
    epoch: u64,
    stream: Streaming<v1::ServeResponse>,
    _messages: mpsc::Sender<v1::ServeRequest>,
}

impl Agent {
    /// Connects, and takes the lease.
    async fn come(url: String, number: usize) -> Result<Self, Status> {
        let endpoint = Endpoint::from_shared(url).unwrap();
        let channel = endpoint.connect().await.map_err(|error| Status::unavailable(error.to_string()))?;
        let (messages, requests) = mpsc::channel(1);
        messages.send(hello(&format!("w{number}"))).await.unwrap();
        let mut stream = AgentServiceClient::new(channel).serve(ReceiverStream::new(requests)).await?.into_inner();
        match stream.message().await?.and_then(|first| first.message) {
            Some(Message::Lease(lease)) => Ok(Self { number, epoch: lease.epoch, stream, _messages: messages }),
            first => panic!("the first message is the lease, not {first:?}"),
        }
    }

    /// Comes until it is served. Only a server that has no room at the moment may send it away.
    async fn come_back(url: String, number: usize) -> Self {
        let deadline = Instant::now() + SOON;
        loop {
            match Self::come(url.clone(), number).await {
                Ok(agent) => return agent,
                Err(away) if matches!(away.code(), Code::Unavailable | Code::ResourceExhausted) => {
                    assert!(Instant::now() < deadline, "agent {number} is not served: {away:?}");
                    tokio::task::yield_now().await;
                }
                Err(refused) => panic!("agent {number} is refused: {refused:?}"),
            }
        }
    }

    /// Waits until the server has ended the stream.
    async fn ended(mut self) -> Option<Status> {
        loop {
            match timeout(SOON, self.stream.message()).await.expect("the stream ends in time") {
                Ok(Some(_)) => {}
                Ok(None) => return None,
                Err(status) => return Some(status),
            }
        }
    }
}

async fn storm(server: &Server) -> Vec<Agent> {
    let coming = JoinSet::from_iter((0..AGENTS).map(|number| Agent::come_back(server.url(), number)));
    let mut agents = timeout(SOON, coming.join_all()).await.expect("all are served in time");
    agents.sort_by_key(|agent| agent.number);
    agents
}

/// Each lease is granted once, to the one that serves the workspace now.
async fn assert_served(server: &Server, agents: &[Agent], epoch: u64) {
    assert_eq!(agents.len(), AGENTS);
    for agent in agents {
        assert_eq!(agent.epoch, epoch, "the lease of agent {} was granted more than once", agent.number);
    }
    let rivals = JoinSet::from_iter((0..AGENTS).map(|number| Agent::come(server.url(), number)));
    for rival in rivals.join_all().await {
        let refused = rival.map(|rival| rival.number).expect_err("the lease is held");
        assert_eq!(refused.code(), Code::FailedPrecondition, "{refused:?}");
        assert!(refused.message().contains("LEASE_HELD"), "{refused:?}");
    }
    Quiet::connect(server).await.rounds(1).await;
}

/// A server that ends has its agents come back at different times; they come at once here, which is the worst they can do.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn agents_that_come_back_at_once_are_all_served() {
    let machine = Machine::new();
    let mut server = machine.server();
    let address = server.address.clone();
    let agents = storm(&server).await;
    assert_served(&server, &agents, 1).await;

    assert!(block_in_place(|| server.terminate()), "it ends well");
    let mut delays = BTreeSet::new();
    for agent in agents {
        let ended = agent.ended().await.expect("the stream ends with a reason");
        assert_eq!(ended.code(), Code::Unavailable, "{ended:?}");
        let delay = ended.get_details_retry_info().and_then(|info| info.retry_delay);
        delays.insert(delay.unwrap_or_else(|| panic!("it states when to come back: {ended:?}")));
    }
    assert!(delays.len() * 2 > AGENTS, "{} times for {AGENTS} agents", delays.len());
    let (least, last) = (delays.first().unwrap(), delays.last().unwrap());
    assert!(*last - *least >= *least / 2, "they are spread over {least:?} to {last:?}");

    server = machine.server_at(&address);
    let agents = storm(&server).await;
    assert_served(&server, &agents, 2).await;

    // Killed, it tells them nothing.
    drop(server);
    for agent in agents {
        assert!(agent.ended().await.is_some(), "the stream ends with an error");
    }
    server = machine.server_at(&address);
    let agents = storm(&server).await;
    assert_served(&server, &agents, 3).await;
    assert!(server.peak_memory() < 256 << 20, "{} bytes", server.peak_memory());
}
