//! What streams cost on which nothing happens: memory of each, and processor time of all, of agents that serve a workspace each
//! and of watchers of one workspace, each over a connection of its own.

use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use aptix_model::wire::v1;
use rustix::process::{Resource, getrlimit, setrlimit};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::goal::{self, Goal};
use crate::idle_stream::IdleStream;
use crate::moment::pass;
use crate::process::{Server, Setup, Tokens, WORKSPACES};

/// How many there are when memory and processor time are looked at.
const COUNTS: [usize; 3] = [1_000, 9_000, 10_000];
/// How many there are before the first look at the memory.
const EARLIER: usize = 100;
/// How many are opened at one time.
const AT_ONCE: usize = 16;
/// Files that a process has open beside one for each stream.
const OTHER_FILES: u64 = 500;
/// The most memory of one, in KiB, and the most processor time of all, in percent of one processor.
const MOST_KIB: f64 = 32.0;
const MOST_PERCENT: f64 = 3.0;
/// For how long processor time is counted: several heartbeats of each.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(6);
/// What a server may hold of one caller.
const CONFIG: &str = "connections_per_caller = 20000\nstreams = 20000\nstreams_per_caller = 20000\n";

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Agents,
    Watchers,
}

/// Measures, and prints what is reported.
///
/// # Errors
/// When a stream cannot be opened.
pub(crate) fn measure(runtime: &Runtime, is_quick: bool) -> Result<()> {
    let files = open_files()?;
    let mut reported = Vec::new();
    for (kind, name) in [(Kind::Agents, "agents"), (Kind::Watchers, "watchers")] {
        let place = tempfile::tempdir()?;
        let server = Server::start(place.path(), "server", Setup::Guarded, CONFIG)?;
        let mut streams = Vec::new();
        runtime.block_on(open(&server, kind, EARLIER, &mut streams))?;
        let first = server.process.memory_kib()?;
        for count in COUNTS.into_iter().take(if is_quick { 1 } else { COUNTS.len() }) {
            if count as u64 + OTHER_FILES > files {
                println!("SKIPPED: {count} idle {name}: a process may have {files} files open here (RLIMIT_NOFILE)");
                continue;
            }
            runtime.block_on(open(&server, kind, count, &mut streams))?;
            let each = (server.process.memory_kib()? - first) / (count - EARLIER) as f64;
            let percent = busy(&server, if is_quick { SHORT } else { LONG })?;
            reported.push(Goal::at_most(format!("{count} idle {name}, KiB of memory each"), each, MOST_KIB));
            reported.push(Goal::at_most(format!("{count} idle {name}, % of a processor"), percent, MOST_PERCENT));
        }
    }
    goal::report(&reported);
    Ok(())
}

/// How many files a process may have open, after as many were asked for as the system allows.
fn open_files() -> Result<u64> {
    let mut limit = getrlimit(Resource::Nofile);
    limit.current = limit.maximum;
    setrlimit(Resource::Nofile, limit)?;
    Ok(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
}

/// Percent of one processor that the server takes for a while.
fn busy(server: &Server, time: Duration) -> Result<f64> {
    // What opening the streams left to do is done first.
    pass(Duration::from_secs(2));
    let (begin, before) = (Instant::now(), server.process.processor_seconds()?);
    pass(time);
    Ok((server.process.processor_seconds()? - before) / begin.elapsed().as_secs_f64() * 100.0)
}

/// Opens streams until there are so many.
async fn open(server: &Server, kind: Kind, count: usize, streams: &mut Vec<IdleStream>) -> Result<()> {
    let tokens = server.tokens.as_ref().context("the server was given tokens")?;
    let mut opening = JoinSet::new();
    for number in streams.len()..count {
        if opening.len() == AT_ONCE
            && let Some(opened) = opening.join_next().await
        {
            streams.push(opened??);
        }
        opening.spawn(begin(kind, server.process.address.clone(), token(kind, tokens), number));
    }
    while let Some(opened) = opening.join_next().await {
        streams.push(opened??);
    }
    Ok(())
}

fn token(kind: Kind, tokens: &Tokens) -> String {
    match kind {
        Kind::Agents => tokens.agent.clone(),
        Kind::Watchers => tokens.reader.clone(),
    }
}

async fn begin(kind: Kind, address: String, token: String, number: usize) -> Result<IdleStream> {
    if kind == Kind::Watchers {
        let request = v1::WatchWorkspaceRequest { workspace_id: WORKSPACES[0].to_owned(), ..Default::default() };
        return IdleStream::open(&address, &token, "WorkspaceService/WatchWorkspace", &request, false).await;
    }
    let (workspace_id, agent_id) = (format!("idle-{number}"), "idle".to_owned());
    let hello = v1::Hello { workspace_id, agent_id, roots: vec!["app".to_owned()], ..Default::default() };
    let message = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
    IdleStream::open(&address, &token, "AgentService/Serve", &message, true).await
}
