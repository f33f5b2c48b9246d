//! Three servers on one PostgreSQL database: servers and agents are killed, PostgreSQL is stopped at once or killed, and
//! a standby takes its place. What one server acknowledged is there at each of the others.

use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::check::{Depth, about};
use crate::database::Cluster;
use crate::feed::Agent;
use crate::job::{Ending, Job};
use crate::ledger::About;
use crate::load::SERVED;
use crate::moment::{pass, until};
use crate::random::Random;
use crate::scene::Scene;

/// Servers on the database.
const SERVERS: usize = 3;

/// The variable that names a bucket for the blobs of half of the breaks; `cargo xtask crash` starts a server with one.
const BUCKET: &str = "APTIX_TEST_BUCKET";

/// How long a server may take to learn of a token that another one made or ended.
const TOKENS: Duration = Duration::from_secs(15);

/// Kinds of breaks. A run of at least so many cycles has each of them.
pub(crate) const KINDS: usize = 5;

/// What is broken under load.
#[derive(Clone, Copy, Debug)]
enum Break {
    /// One server is killed.
    Server(usize),
    /// All but one are.
    AllServersBut(usize),
    /// PostgreSQL is stopped at once.
    Stop,
    /// Its first process is killed.
    Kill,
    /// The agent of this workspace is killed.
    Agent(&'static str),
}

impl Break {
    fn random(random: &mut Random) -> Self {
        match random.below(9) {
            0 => Self::AllServersBut(random.below(SERVERS)),
            1 | 2 => Self::Stop,
            3 => Self::Kill,
            4 => Self::Agent(served(random)),
            _ => Self::Server(random.below(SERVERS)),
        }
    }

    /// One of each kind, in a random order.
    fn each(random: &mut Random) -> [Self; KINDS] {
        let (one, other) = (Self::Server(random.below(SERVERS)), Self::AllServersBut(random.below(SERVERS)));
        let mut each = [one, other, Self::Stop, Self::Kill, Self::Agent(served(random))];
        for last in (1..each.len()).rev() {
            each.swap(last, random.below(last + 1));
        }
        each
    }
}

/// A workspace with an agent.
fn served(random: &mut Random) -> &'static str {
    let [first, second] = SERVED;
    if random.below(2) == 0 { first } else { second }
}

/// Breaks something under load, mends it, and compares.
fn cycle(scene: &mut Scene, cluster: &Cluster, what: Break, random: &mut Random) -> Result<()> {
    scene.start_agents(random)?;
    let load = scene.load(random)?;
    if random.below(8) == 0 {
        scene.stage.kill_agent(served(random));
    }
    load.acknowledges(random.below(40))?;
    pass(Duration::from_micros(random.below(20_000) as u64));
    match what {
        Break::Server(one) => scene.server(one).kill(),
        Break::AllServersBut(one) => (0..SERVERS).filter(|at| *at != one).for_each(|at| scene.server(at).kill()),
        Break::Stop => cluster.stop_at_once()?,
        Break::Kill => cluster.kill()?,
        Break::Agent(workspace) => scene.stage.kill_agent(workspace),
    }
    // Callers of a server that lives go on; the others stop.
    if matches!(what, Break::Stop | Break::Kill) {
        pass(Duration::from_millis(random.below(300) as u64));
        cluster.run()?;
    }
    load.acknowledges(usize::MAX)?;
    scene.end(load)?;
    mend(scene, random)
}

/// Starts the servers that do not run, waits until each stores again, and compares at one of them.
fn mend(scene: &mut Scene, random: &mut Random) -> Result<()> {
    for at in 0..SERVERS {
        let server = scene.server(at);
        if !server.runs()? {
            server.start(&[])?;
        }
    }
    for at in 0..SERVERS {
        ensure!(scene.heals_at(at, random)?, "a server ended by itself{}", scene.stage.tail());
    }
    settled(scene, Depth::New, random)
}

/// Compares; what a server does not know yet of the tokens of the others it may learn for a while.
fn settled(scene: &Scene, depth: Depth, random: &mut Random) -> Result<()> {
    let mut last = Vec::new();
    let at = random.below(SERVERS);
    until(TOKENS, Duration::from_millis(100), || {
        last = scene.findings_at(at, depth, random)?;
        Ok(last.iter().all(|finding| finding.about != About::Token))
    })?;
    crate::check::none(&last).with_context(|| scene.stage.tail())
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let Some(cluster) = Cluster::start()? else { return Ok(Ending::Skipped("PostgreSQL is not installed".to_owned())) };
    // Half of the breaks with blobs in a bucket, if there is one.
    let bucket = std::env::var(BUCKET).ok();
    let in_bucket = if bucket.is_some() { job.cycles / 2 } else { 0 };
    let mut dealt = Break::each(&mut job.random).to_vec();
    let mut scene = broken(job, &mut dealt, &cluster, (None, job.cycles - in_bucket))?;
    let mut acknowledged = scene.acknowledged;
    let caught = control(&mut scene, &cluster, &mut job.random)?;
    drop(scene);
    drop(cluster);
    if let (Some(bucket), Some(cluster)) = (bucket, Cluster::start()?) {
        let prefix = format!("{bucket}/crash-{}-{}", std::process::id(), job.random.below(1 << 30));
        acknowledged += broken(job, &mut dealt, &cluster, (Some(prefix), in_bucket))?.acknowledged;
    }
    let failed_over = failover(&mut job.random)?;
    Ok(Ending::Held(format!(
        "{} breaks of three servers, their agents and PostgreSQL, {in_bucket} of them with blobs in a bucket, \
         {acknowledged} acknowledged calls; {failed_over} more over the promotion of a standby; control: {caught}",
        job.cycles
    )))
}

/// Breaks three servers on a database, with or without a bucket for its blobs, this often: first by the breaks that are
/// dealt, from the last one on, then by random ones.
fn broken(
    job: &mut Job,
    dealt: &mut Vec<Break>,
    cluster: &Cluster,
    (blobs, cycles): (Option<String>, usize),
) -> Result<Scene> {
    let kept = if blobs.is_some() { "with a bucket" } else { "without a bucket" };
    let mut scene = Scene::several(&Cluster::address(&[cluster]), blobs, SERVERS)?;
    for at in 0..SERVERS {
        scene.server(at).start(&[])?;
    }
    for done in 0..cycles {
        let what = dealt.pop().unwrap_or_else(|| Break::random(&mut job.random));
        cycle(&mut scene, cluster, what, &mut job.random).with_context(|| format!("{kept}, cycle {done}, {what:?}"))?;
    }
    scene.settle(&mut job.random)?;
    Ok(scene)
}

/// PostgreSQL acknowledges what is not on its disk yet, and is stopped at once: some of it is lost, and found to be. An
/// agent reports a lease with the epoch of the one before, if several servers may be on its store.
fn control(scene: &mut Scene, cluster: &Cluster, random: &mut Random) -> Result<String> {
    const TRIES: usize = 10;
    ensure!(Agent::reports_repeated_epoch(true), "the control was not caught: two leases have one epoch");
    ensure!(!Agent::reports_repeated_epoch(false), "an epoch is reported that a server without others may grant again");
    cluster.sql("postgres", "ALTER SYSTEM SET synchronous_commit = off")?;
    cluster.sql("postgres", "ALTER SYSTEM SET wal_writer_delay = '10s'")?;
    cluster.sql("postgres", "ALTER SYSTEM SET wal_writer_flush_after = '1GB'")?;
    cluster.stop_at_once()?;
    cluster.run()?;
    for at in 0..SERVERS {
        ensure!(scene.heals_at(at, random)?, "a server ended by itself{}", scene.stage.tail());
    }
    for tried in 0..TRIES {
        let load = scene.load(random)?;
        load.acknowledges(20)?;
        cluster.stop_at_once()?;
        let mut findings = scene.found(load)?;
        cluster.run()?;
        for at in 0..SERVERS {
            ensure!(scene.heals_at(at, random)?, "a server ended by itself{}", scene.stage.tail());
        }
        findings.extend(scene.findings_at(0, Depth::Everything, random)?);
        // A lease that was lost is a finding of the feed: it does not show that a lost call is one.
        if about(&findings).iter().any(|about| !matches!(about, About::Token | About::Feed)) {
            return Ok(format!("caught at stop {tried} without flushes"));
        }
    }
    anyhow::bail!("the control was not caught: {TRIES} stops of PostgreSQL without flushes lost nothing")
}

/// A synchronous standby takes the place of a primary that is stopped at once, under load; answers how many calls were acknowledged.
fn failover(random: &mut Random) -> Result<usize> {
    let Some(primary) = Cluster::start()? else { return Ok(0) };
    let standby = primary.standby()?;
    let mut scene = Scene::several(&Cluster::address(&[&primary, &standby]), None, SERVERS)?;
    for at in 0..SERVERS {
        scene.server(at).start(&[])?;
    }
    scene.start_agents(random)?;
    let load = scene.load(random)?;
    load.acknowledges(30)?;
    primary.stop_at_once()?;
    pass(Duration::from_millis(random.below(300) as u64));
    standby.promote()?;
    load.acknowledges(usize::MAX)?;
    scene.end(load)?;
    mend(&mut scene, random).context("after the promotion of a standby")?;
    let load = scene.load(random)?;
    load.acknowledges(usize::MAX)?;
    scene.end(load)?;
    scene.settle(random).context("after the promotion of a standby")?;
    Ok(scene.acknowledged)
}
