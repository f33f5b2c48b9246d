//! What agents and servers cost beside submits: measured with real processes.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use aptix_model::wire::v1;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::task::JoinSet;
use tokio::time::timeout;
use tokio_postgres::NoTls;

use crate::author::{Author, BYTES, connect};
use crate::cases::{CONFIG, Measured};
use crate::costs::{AgentCosts, FleetCosts, StoreCosts};
use crate::database::Cluster;
use crate::idle_stream::IdleStream;
use crate::moment::{pass, until};
use crate::process::{Server, Setup, WORKSPACES};

/// How long each figure is measured.
const TIME: Duration = Duration::from_secs(4);
/// Authors of one workspace whose batches an agent applies at one time.
const AUTHORS: usize = 8;
/// Readers of the same events.
const READERS: usize = 8;
/// Agents that are connected and idle; memory is counted from the earlier ones on.
const AGENTS: usize = 1_000;
const EARLIER: usize = 100;
/// How long one batch may take, unless something is broken.
const PATIENCE: Duration = Duration::from_secs(60);
/// Bytes of a notification, and of one hint: the name of a workspace and the id of a batch, of 36 bytes each.
const NOTIFICATION: f64 = 7_900.0;
const HINT: f64 = 74.0;
/// Transactions of one kind that are timed.
const TIMES: usize = 200;
const LOOK: &str = "SELECT f.tokens, w.name, w.born, w.newest, w.epoch FROM store_facts f \
    LEFT JOIN workspaces w ON w.name = ANY($1::text[]) AND w.known AND NOT w.deleting";

/// A server, and what counts its store.
struct Scene<'a> {
    server: Server,
    cluster: Option<&'a Cluster>,
}

impl Scene<'_> {
    fn used(&self) -> Result<Measured> {
        let groups = self.server.metrics()?.get("aptix_store_group_writes_count").copied().unwrap_or_default();
        let (database, bytes) = match self.cluster {
            Some(cluster) => (cluster.processor_seconds()?, cluster.written()?),
            None => (0.0, self.server.process.written_bytes()?),
        };
        let server = self.server.process.processor_seconds()?;
        Ok(Measured { groups, server, database, bytes, ..Measured::default() })
    }

    /// What each batch takes that authors of one workspace submit for a while, and wait for if an agent applies them.
    async fn batches(&self, author: &Author, is_applied: bool) -> Result<Measured> {
        let before = self.used()?;
        let begin = Instant::now();
        let mut tasks = JoinSet::new();
        for writer in 0..AUTHORS {
            let author = author.clone();
            tasks.spawn(async move {
                let mut batches = 0.0;
                while begin.elapsed() < TIME {
                    let id = author.submit(writer).await?;
                    if is_applied {
                        timeout(PATIENCE, author.wait(id)).await.context("no batch is applied in time")??;
                    }
                    batches += 1.0;
                }
                anyhow::Ok(batches)
            });
        }
        let mut batches = 0.0;
        while let Some(done) = tasks.join_next().await {
            batches += done??;
        }
        let after = self.used()?;
        let each = |of: fn(&Measured) -> f64| (of(&after) - of(&before)) / f64::max(batches, 1.0);
        Ok(Measured {
            batches,
            groups: each(|used| used.groups),
            server: each(|used| used.server),
            database: each(|used| used.database),
            bytes: each(|used| used.bytes),
            ..Measured::default()
        })
    }
}

/// Measures what agents cost on a store, beside what submits cost on it. Of two databases readers use the first one, and agents the other.
///
/// # Errors
/// When a process does not do its part.
pub(crate) async fn agents(
    place: &Path,
    name: &str,
    store: Option<(&Cluster, [&str; 2])>,
    costs: &StoreCosts,
) -> Result<AgentCosts> {
    let place = place.join(name);
    std::fs::create_dir(&place)?;
    let config = format!("{CONFIG}connections_per_caller = 20000\nstreams = 20000\nstreams_per_caller = 20000\n");
    let start = |name, address| -> Result<_> {
        let server = Server::start_on(&place, name, Setup::Bare, &config, address)?;
        Ok(Scene { server, cluster: store.map(|(cluster, _)| cluster) })
    };
    let scene = start("read", store.map(|(_, [read, _])| read))?;
    let author = Author::connect(&scene.server.process.address, AUTHORS, &[], WORKSPACES[0]).await?;
    let (without, with) = pushes(&scene, &author).await?;
    let push = ((with.server - without.server) / READERS as f64).max(0.0);
    drop(scene);
    let scene = start("applied", store.map(|(_, [_, applied])| applied))?;
    let author = Author::connect(&scene.server.process.address, AUTHORS, &[], WORKSPACES[0]).await?;
    let (agent, _) = scene.server.start_agent(&place)?;
    // What was submitted before is applied first.
    timeout(PATIENCE, async { author.wait(author.submit(0).await?).await })
        .await
        .context("the agent does not serve")??;
    let life = scene.batches(&author, true).await?;
    drop((agent, scene));
    let report = life.server - costs.server_submit - life.groups * (costs.server_group + costs.server_beside) - push;
    let database_report =
        life.database - costs.database_row - life.groups * (costs.database_group + costs.database_beside);
    // A server that did nothing before: memory that it has from other work would hide what streams take.
    let idle = start("idle", store.map(|(_, [_, applied])| applied))?;
    let (stream_bytes, idle) = streams(&idle.server).await?;
    Ok(AgentCosts {
        push,
        report: report.max(0.0),
        database_report: database_report.max(0.0),
        life_bytes: life.bytes,
        blob_bytes: BYTES as f64,
        stream_bytes,
        idle,
    })
}

/// What a submit takes without readers of its workspace, and with some.
async fn pushes(scene: &Scene<'_>, author: &Author) -> Result<(Measured, Measured)> {
    let without = scene.batches(author, false).await?;
    let (over, read) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicUsize::new(0)));
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let channel = connect(&scene.server.process.address, 1).await?.pop().context("a reader is connected")?;
        let request = v1::WatchWorkspaceRequest { workspace_id: WORKSPACES[0].to_owned(), ..Default::default() };
        let mut events = WorkspaceServiceClient::new(channel).watch_workspace(request).await?.into_inner();
        let (over, read) = (Arc::clone(&over), Arc::clone(&read));
        readers.spawn(async move {
            while !over.load(Ordering::Relaxed) && events.message().await?.is_some() {
                read.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    // First they read what there is.
    let mut before = usize::MAX;
    until(PATIENCE, Duration::from_millis(500), || {
        let now = read.load(Ordering::Relaxed);
        Ok(std::mem::replace(&mut before, now) == now)
    })?;
    let with = scene.batches(author, false).await?;
    over.store(true, Ordering::Relaxed);
    readers.shutdown().await;
    Ok((without, with))
}

/// Bytes of memory of an idle agent, and the processor time that it takes in a second.
async fn streams(server: &Server) -> Result<(f64, f64)> {
    let (mut streams, mut first) = (Vec::new(), 0.0);
    for number in 0..AGENTS {
        if number == EARLIER {
            first = server.process.memory_kib()?;
        }
        let (workspace_id, agent_id) = (format!("idle-{number}"), "idle".to_owned());
        let hello = v1::Hello { workspace_id, agent_id, roots: vec!["app".to_owned()], ..Default::default() };
        let message = v1::ServeRequest { message: Some(v1::serve_request::Message::Hello(hello)) };
        streams.push(IdleStream::open(&server.process.address, None, "AgentService/Serve", &message, true).await?);
    }
    let bytes = (server.process.memory_kib()? - first) * 1024.0 / (AGENTS - EARLIER) as f64;
    // What opening them left to do is done first.
    pass(Duration::from_secs(2));
    let (before, begin) = (server.process.processor_seconds()?, Instant::now());
    pass(TIME * 2);
    let idle = (server.process.processor_seconds()? - before) / begin.elapsed().as_secs_f64() / AGENTS as f64;
    Ok((bytes, idle))
}

/// Measures what servers cost each other through a database that idle agents were connected to.
///
/// # Errors
/// When the database cannot be used.
pub(crate) async fn fleet(cluster: &Cluster, address: &str, hear: f64) -> Result<FleetCosts> {
    let (client, connection) = tokio_postgres::connect(address, NoTls).await?;
    let mut tasks = JoinSet::new();
    tasks.spawn(async move {
        // Whoever uses it learns why it ended.
        let _ = connection.await;
    });
    let names: Vec<_> = (0..AGENTS).map(|number| format!("idle-{number}")).collect();
    let statement = client.prepare(LOOK).await?;
    let before = cluster.processor_seconds()?;
    for _ in 0..TIMES {
        client.query(&statement, &[&names]).await?;
    }
    let look = (cluster.processor_seconds()? - before) / TIMES as f64;
    let text = "x".repeat(NOTIFICATION as usize);
    let notify = format!("BEGIN; SET LOCAL synchronous_commit = off; SELECT pg_notify('scale', '{text}'); COMMIT");
    client.batch_execute("LISTEN scale").await?;
    let begin = Instant::now();
    for _ in 0..TIMES {
        client.batch_execute(&notify).await?;
    }
    let notify = begin.elapsed().as_secs_f64() / TIMES as f64;
    Ok(FleetCosts { notify, hints: (NOTIFICATION / HINT).floor(), hear, look })
}
