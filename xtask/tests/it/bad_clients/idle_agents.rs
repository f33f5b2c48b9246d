//! What an agent costs that serves a workspace in which nothing happens.

use super::raw::Raw;
use super::{SOON, WINDOW, hello, machine};

/// How many are connected, each over a connection of its own.
const AGENTS: usize = 500;
/// How many were connected before the first look at the memory.
const EARLIER: usize = 100;
/// The most memory that each may take, in a build without optimisation: its tasks are larger.
const MOST: u64 = 64 << 10;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_idle_agent_takes_little_memory() {
    let limits = "connections_per_caller = 20000\nstreams = 20000\nstreams_per_caller = 20000";
    let (_machine, server) = machine(limits, 16_384);
    let (mut agents, mut before) = (Vec::new(), 0);
    for number in 0..EARLIER + AGENTS {
        if number == EARLIER {
            before = server.memory();
        }
        let mut agent = Raw::connect(&server.address, WINDOW).await.unwrap();
        let hello = hello(&format!("w{number}"));
        let begun = agent.begin_and_leave("AgentService/Serve", &hello);
        tokio::time::timeout(SOON, begun).await.expect("it is served in time").unwrap();
        agents.push(agent);
    }
    let each = server.memory().saturating_sub(before) / AGENTS as u64;
    eprintln!("{} KiB for each of {AGENTS} idle agents", each >> 10);
    assert!(each <= MOST, "each agent takes {each} bytes");
}
