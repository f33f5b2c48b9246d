//! What streams cost on which nothing happens: memory of each, and processor time of all, of agents that serve a workspace each
//! and of watchers of one workspace, each over a connection of its own.

use std::time::{Duration, Instant};

use anyhow::Result;
use aptix_model::wire::v1;
use rustix::process::{Resource, getrlimit, setrlimit};
use tempfile::TempDir;
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

use crate::counting::GUARDS_AT_MOST;
use crate::goal::{self, Goal};
use crate::idle_stream::IdleStream;
use crate::moment::pass;
use crate::process::{Server, Setup, Tokens, WORKSPACES};

/// How many there are when memory and processor time are looked at.
const COUNTS: [usize; 3] = [FEWEST, 9_000, 10_000];
const FEWEST: usize = 1_000;
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

/// Measures and prints what is reported; answers what is gated: the memory of one with guards beside that of one without. The
/// processor time of an idle server is too little to be compared.
///
/// # Errors
/// When a stream cannot be opened.
pub(crate) fn measure(runtime: &Runtime, is_quick: bool) -> Result<Vec<Goal>> {
    let files = open_files()?;
    let (mut reported, mut gated) = (Vec::new(), Vec::new());
    for (kind, name) in [(Kind::Agents, "agents"), (Kind::Watchers, "watchers")] {
        let can_be_opened = |count: &usize| {
            let fits = *count as u64 + OTHER_FILES <= files;
            if !fits {
                println!("SKIPPED: {count} idle {name}: a process may have {files} files open here (RLIMIT_NOFILE)");
            }
            fits
        };
        if !can_be_opened(&FEWEST) {
            continue;
        }
        let place = tempfile::tempdir()?;
        let bare = Idle::begin(runtime, &place, Setup::Bare, kind)?.each_of(runtime, FEWEST)?;
        let mut idle = Idle::begin(runtime, &place, Setup::Guarded, kind)?;
        for count in COUNTS.into_iter().filter(can_be_opened).take(if is_quick { 1 } else { COUNTS.len() }) {
            let each = idle.each_of(runtime, count)?;
            if count == FEWEST {
                let name = format!("{count} idle {name}, memory, guarded / unguarded");
                gated.push(Goal::at_most(name, each / bare, GUARDS_AT_MOST));
            }
            let percent = busy(&idle.server, if is_quick { SHORT } else { LONG })?;
            reported.push(Goal::at_most(format!("{count} idle {name}, KiB of memory each"), each, MOST_KIB));
            reported.push(Goal::at_most(format!("{count} idle {name}, % of a processor"), percent, MOST_PERCENT));
        }
    }
    goal::report(&reported);
    Ok(gated)
}

/// A server with streams on which nothing happens.
struct Idle {
    server: Server,
    kind: Kind,
    streams: Vec<IdleStream>,
    /// KiB of memory that the server had with the first few of them.
    first: f64,
}

impl Idle {
    fn begin(runtime: &Runtime, place: &TempDir, setup: Setup, kind: Kind) -> Result<Self> {
        let name = if setup == Setup::Bare { "bare" } else { "guarded" };
        let server = Server::start(place.path(), name, setup, CONFIG)?;
        let mut streams = Vec::new();
        runtime.block_on(open(&server, kind, EARLIER, &mut streams))?;
        let first = server.process.memory_kib()?;
        Ok(Self { server, kind, streams, first })
    }

    /// KiB of memory of each, once there are so many.
    fn each_of(&mut self, runtime: &Runtime, count: usize) -> Result<f64> {
        runtime.block_on(open(&self.server, self.kind, count, &mut self.streams))?;
        Ok((self.server.process.memory_kib()? - self.first) / (count - EARLIER) as f64)
    }
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
    let token = server.tokens.as_ref().map(|tokens| token(kind, tokens));
    let mut opening = JoinSet::new();
    for number in streams.len()..count {
        if opening.len() == AT_ONCE
            && let Some(opened) = opening.join_next().await
        {
            streams.push(opened??);
        }
        opening.spawn(begin(kind, server.process.address.clone(), token.clone(), number));
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

async fn begin(kind: Kind, address: String, token: Option<String>, number: usize) -> Result<IdleStream> {
    if kind == Kind::Watchers {
        let request = v1::WatchWorkspaceRequest { workspace_id: WORKSPACES[0].to_owned(), ..Default::default() };
        return IdleStream::open(&address, token.as_deref(), "WorkspaceService/WatchWorkspace", &request, false).await;
    }
    let (workspace_id, agent_id) = (format!("idle-{number}"), "idle".to_owned());
    let hello = v1::Hello { workspace_id, agent_id, roots: vec!["app".to_owned()], ..Default::default() };
    let message = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
    IdleStream::open(&address, token.as_deref(), "AgentService/Serve", &message, true).await
}
