//! The PostgreSQL store in ratios: batches that one server and three servers on one database store beside a bare loop of the same
//! transactions; from submitting a batch until it is applied beside the embedded store; and how long an event takes to a reader at another
//! server beside one at the same server.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use aptix_model::wire::v1;
use aptix_model::wire::v1::workspace_service_client::WorkspaceServiceClient;
use tokio::time::timeout;
use tonic::Streaming;

use crate::author::{Author, connect};
use crate::bare_loop::BareLoop;
use crate::database::Cluster;
use crate::end_to_end::{Line, PATIENCE};
use crate::goal::median;
use crate::process::{Server, Setup, WORKSPACES, WRITERS, administer};
use crate::target::{Target, quantile, slice};

/// How many writers there are, and how many batches each submits in a pass.
const ROWS: [(usize, usize); 3] = [(1, 48), (16, 16), (WRITERS, 10)];
/// Servers on one database.
const SERVERS: usize = 3;
/// Batches of one pass whose way is timed.
const CALLS: usize = 20;
/// What the servers are set to, so that the size of their groups is known.
const CONFIG: &str = "metrics = \"127.0.0.1:0\"\n";

/// Servers on a database of their own, and a writer's author for each of as many workspaces.
struct Servers {
    all: Vec<Server>,
    target: Target,
}

impl Servers {
    /// Writers take the servers in turn. Each workspace has one writer, as most workspaces have.
    async fn start(place: &Path, name: &str, address: &str, count: usize) -> Result<Self> {
        let mut all = Vec::new();
        for number in 0..count {
            all.push(Server::start_on(place, &format!("{name}-{number}"), Setup::Bare, CONFIG, Some(address))?);
        }
        let mut authors = Vec::new();
        for (writer, server) in (0..WRITERS).zip(all.iter().cycle()) {
            authors.push(Author::connect(&server.process.address, 1, &[], &format!("writer-{writer}")).await?);
        }
        Ok(Self { all, target: Target::Servers(authors) })
    }

    /// Batches and groups that the servers stored so far.
    fn stored(&self) -> Result<[f64; 2]> {
        let mut stored = [0.0; 2];
        for server in &self.all {
            let metrics = server.metrics()?;
            let of = |name: &str| metrics.get(name).copied().unwrap_or_default();
            let counted = [of("aptix_store_group_writes_sum"), of("aptix_store_group_writes_count")];
            stored.iter_mut().zip(counted).for_each(|(all, more)| *all += more);
        }
        Ok(stored)
    }

    /// Seconds for each batch, and how many shared a group.
    async fn submit(&self, writers: usize, calls: usize) -> Result<(f64, f64)> {
        let [before, groups_before] = self.stored()?;
        let per_call = slice(&self.target, writers, calls).await?.per_call;
        let [after, groups_after] = self.stored()?;
        Ok((per_call, (after - before) / (groups_after - groups_before).max(1.0)))
    }
}

/// Measures, and prints ratios; where PostgreSQL is not installed there are none.
///
/// # Errors
/// When a call fails.
pub(crate) async fn measure(passes: usize) -> Result<()> {
    let Some(cluster) = Cluster::start()? else {
        println!("SKIPPED: PostgreSQL is not installed, so there are no rows of its store");
        return Ok(());
    };
    let place = tempfile::tempdir()?;
    println!("medians of {passes} passes; no goal is set");
    appends(place.path(), &cluster, passes).await?;
    applied(place.path(), &cluster, passes).await?;
    events(place.path(), &cluster, passes).await
}

async fn appends(place: &Path, cluster: &Cluster, passes: usize) -> Result<()> {
    let address = cluster.create("one", None)?;
    // Makes the tables, of which the other databases get copies.
    let data = place.join("first");
    administer((&data, Some(&address)), &["workspace", "create", WORKSPACES[0]])?;
    let of_three = cluster.create("three", Some("one"))?;
    let bare = cluster.create("bare", Some("one"))?;
    let one = Servers::start(place, "one", &address, 1).await?;
    let three = Servers::start(place, "three", &of_three, SERVERS).await?;
    for servers in [&one, &three] {
        slice(&servers.target, WRITERS, 4).await?;
    }
    let mut loops = Vec::new();
    for number in 0..SERVERS {
        loops.push(BareLoop::start(&bare, &address, number, WRITERS).await?);
    }
    for (writers, calls) in ROWS {
        let mut ratios = [const { Vec::new() }; 3];
        let mut groups = [const { Vec::new() }; 2];
        for _ in 0..passes {
            let batches = writers * calls;
            let (of_one, group) = one.submit(writers, calls).await?;
            let bare_one = run(loops.get_mut(..1).context("there is a loop")?, batches, group).await?;
            let (of_three, group_of_three) = three.submit(writers, calls).await?;
            // As many loops as servers have a writer.
            let busy = loops.get_mut(..SERVERS.min(writers)).context("there is a loop for each server")?;
            let bare_three = run(busy, batches, group_of_three).await?;
            let pass = [bare_one / of_one, bare_three / of_three, of_one / of_three];
            ratios.iter_mut().zip(pass).for_each(|(all, ratio)| all.push(ratio));
            groups.iter_mut().zip([group, group_of_three]).for_each(|(all, group)| all.push(group));
        }
        let [by_one, by_three] = groups.map(median);
        println!("{writers:>2} writers: {by_one:.1} batches in a group of one server, {by_three:.1} in those of three");
        let names = ["one server / bare loop", "three servers / bare loops", "three servers / one server"];
        for (name, ratios) in names.into_iter().zip(ratios) {
            show(&format!("{writers} writers, rate of submit, {name}"), median(ratios));
        }
    }
    Ok(())
}

/// Prints a ratio, which has no goal.
fn show(name: &str, ratio: f64) {
    println!("       {name:<62} {ratio:>7.2}");
}

/// Seconds for each batch of loops that share so many, in groups of this size on average.
async fn run(loops: &mut [BareLoop], batches: usize, group: f64) -> Result<f64> {
    let (begin, each) = (Instant::now(), batches / loops.len().max(1));
    let group = (group.round() as usize).max(1);
    let mut running: Vec<_> = loops.iter_mut().map(|bare| Box::pin(bare.append(each, group))).collect();
    let count = running.len();
    // All are polled by this one task: they wait for PostgreSQL almost all of the time.
    let mut done = vec![false; count];
    std::future::poll_fn(|context| {
        for (bare, done) in running.iter_mut().zip(&mut done).filter(|(_, done)| !**done) {
            match bare.as_mut().poll(context) {
                std::task::Poll::Ready(Ok(())) => *done = true,
                std::task::Poll::Ready(Err(error)) => return std::task::Poll::Ready(Err(error)),
                std::task::Poll::Pending => {}
            }
        }
        if done.iter().all(|done| *done) { std::task::Poll::Ready(Ok(())) } else { std::task::Poll::Pending }
    })
    .await?;
    Ok(begin.elapsed().as_secs_f64() / (each * count).max(1) as f64)
}

/// From submitting a batch until a real agent applied it.
async fn applied(place: &Path, cluster: &Cluster, passes: usize) -> Result<()> {
    let address = cluster.create("applied", None)?;
    let embedded = Line::start(place, "line-embedded", Setup::Bare).await?;
    let directory = place.join("line-postgres");
    let server = Server::start_on(&directory, "server", Setup::Bare, "", Some(&address))?;
    let postgres = Line::with(&directory, server).await?;
    for line in [&embedded, &postgres] {
        line.batches(64).await?;
    }
    let mut ratios = Vec::new();
    for _ in 0..passes {
        let beside = quantile(&embedded.batches(CALLS).await?, 0.5);
        ratios.push(quantile(&postgres.batches(CALLS).await?, 0.5) / beside);
    }
    show("submit to APPLIED, p50, PostgreSQL / embedded", median(ratios));
    Ok(())
}

/// From the call that submits a batch until a reader has its event.
async fn events(place: &Path, cluster: &Cluster, passes: usize) -> Result<()> {
    let address = cluster.create("events", None)?;
    let start = |name| Server::start_on(place, name, Setup::Bare, "", Some(&address));
    let servers = [start("events-0")?, start("events-1")?];
    let [here, other] = &servers;
    let author = Author::connect(&here.process.address, 1, &[], WORKSPACES[0]).await?;
    author.submit(0).await?;
    let mut readers = [watch(here).await?, watch(other).await?];
    let mut ratios = Vec::new();
    for _ in 0..passes {
        let mut ways = [const { Vec::new() }; 2];
        for _ in 0..CALLS {
            let begin = Instant::now();
            let seen = async |reader: &mut Streaming<v1::WatchWorkspaceResponse>| {
                timeout(PATIENCE, event(reader)).await.context("no event comes in time")??;
                anyhow::Ok(begin.elapsed().as_secs_f64())
            };
            let [at_same, at_other] = &mut readers;
            let (submitted, at_same, at_other) = tokio::join!(author.submit(0), seen(at_same), seen(at_other));
            submitted?;
            ways.iter_mut().zip([at_same?, at_other?]).for_each(|(all, way)| all.push(way));
        }
        let [same, other] = ways.map(|ways| quantile(&ways, 0.5));
        ratios.push(other / same);
    }
    show("submit to event, p50, reader at another server / at the same", median(ratios));
    Ok(())
}

/// Begins to read the events of the workspace, after those that there are.
async fn watch(server: &Server) -> Result<Streaming<v1::WatchWorkspaceResponse>> {
    let channel = connect(&server.process.address, 1).await?.pop().context("the reader is connected")?;
    let request = v1::WatchWorkspaceRequest { workspace_id: WORKSPACES[0].to_owned(), ..Default::default() };
    let mut reader = WorkspaceServiceClient::new(channel).watch_workspace(request).await?.into_inner();
    event(&mut reader).await?;
    Ok(reader)
}

/// Waits for the next event.
async fn event(reader: &mut Streaming<v1::WatchWorkspaceResponse>) -> Result<()> {
    while let Some(next) = reader.message().await? {
        if matches!(next.message, Some(v1::watch_workspace_response::Message::Event(_))) {
            return Ok(());
        }
    }
    anyhow::bail!("the stream of events ended")
}
