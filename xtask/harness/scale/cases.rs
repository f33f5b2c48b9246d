//! Cases with real processes: so many writers at one or more servers, each with a workspace and a connection of its own.

use std::path::Path;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use cpu_time::ProcessTime;
use tokio::task::JoinSet;

use crate::author::Author;
use crate::database::Cluster;
use crate::process::{Server, Setup, WRITERS};

/// How long a case runs in each pass: short, so that what else the machine does while all of them run is much the same for each.
const TIME: Duration = Duration::from_millis(300);
/// So that the sizes of groups are known.
pub(crate) const CONFIG: &str = "metrics = \"127.0.0.1:0\"\n";

/// What a case took; sums over all passes until it is [averaged](Measured::each).
#[derive(Clone, Debug, Default)]
pub(crate) struct Measured {
    pub(crate) batches: f64,
    /// Batches a second, of each pass.
    pub(crate) rates: Vec<f64>,
    pub(crate) groups: f64,
    /// Processor time of authors, of servers and of the database.
    pub(crate) author: f64,
    pub(crate) server: f64,
    pub(crate) database: f64,
    /// Bytes of the log, where they are counted.
    pub(crate) bytes: f64,
}

/// How often a log was flushed, and how long that took together.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Flushes {
    pub(crate) count: f64,
    pub(crate) seconds: f64,
}

/// Servers on one store.
pub(crate) struct Servers<'a> {
    pub(crate) all: Vec<Server>,
    authors: Vec<Author>,
    cluster: Option<&'a Cluster>,
}

impl<'a> Servers<'a> {
    /// Starts so many servers on a database, or one on a data directory.
    pub(crate) async fn start(
        place: &Path,
        name: &str,
        count: usize,
        store: Option<(&'a Cluster, &str)>,
    ) -> Result<Self> {
        let mut all = Vec::new();
        for number in 0..count {
            let address = store.map(|(_, address)| address);
            all.push(Server::start_on(place, &format!("{name}-{number}"), Setup::Bare, CONFIG, address)?);
        }
        let mut authors = Vec::new();
        for (writer, server) in (0..WRITERS).zip(all.iter().cycle()) {
            authors.push(Author::connect(&server.process.address, 1, &[], &format!("writer-{writer}")).await?);
        }
        Ok(Self { all, authors, cluster: store.map(|(cluster, _)| cluster) })
    }

    /// Has so many writers submit for a while, and adds what it took.
    pub(crate) async fn submit(&self, writers: usize, measured: &mut Measured) -> Result<()> {
        let chosen: Vec<_> = self.authors.iter().take(writers).cloned().collect();
        self.submit_by(chosen, measured).await
    }

    /// The same with writers at the first server alone.
    pub(crate) async fn submit_at_first(&self, writers: usize, measured: &mut Measured) -> Result<()> {
        let chosen: Vec<_> = self.authors.iter().step_by(self.all.len()).take(writers).cloned().collect();
        self.submit_by(chosen, measured).await
    }

    async fn submit_by(&self, authors: Vec<Author>, measured: &mut Measured) -> Result<()> {
        let before = self.used()?;
        let (own, begin) = (ProcessTime::now(), Instant::now());
        let mut tasks = JoinSet::new();
        for author in authors {
            tasks.spawn(async move {
                let mut batches = 0.0;
                while begin.elapsed() < TIME {
                    author.submit(0).await?;
                    batches += 1.0;
                }
                anyhow::Ok(batches)
            });
        }
        let mut batches = 0.0;
        while let Some(done) = tasks.join_next().await {
            batches += done??;
        }
        let seconds = begin.elapsed().as_secs_f64();
        let after = self.used()?;
        measured.rates.push(batches / seconds);
        measured.batches += batches;
        measured.author += own.elapsed().as_secs_f64();
        measured.groups += after.groups - before.groups;
        measured.server += after.server - before.server;
        measured.database += after.database - before.database;
        Ok(())
    }

    /// Bytes of the log that a submit takes.
    pub(crate) async fn submit_bytes(&self) -> Result<f64> {
        let bytes = || match self.cluster {
            Some(cluster) => cluster.written(),
            None => self.first()?.process.written_bytes(),
        };
        let (before, mut measured) = (bytes()?, Measured::default());
        for _ in 0..10 {
            self.submit(16, &mut measured).await?;
        }
        Ok((bytes()? - before) / measured.batches.max(1.0))
    }

    /// How often the write-ahead log of its database was flushed so far.
    pub(crate) fn flushes(&self) -> Result<Option<Flushes>> {
        let Some(cluster) = self.cluster else { return Ok(None) };
        let answer = cluster.sql("postgres", "SELECT wal_sync, wal_sync_time / 1000 FROM pg_stat_wal")?;
        let (count, seconds) = answer
            .trim()
            .split_once('|')
            .with_context(|| format!("expected how often the log was flushed, found {answer:?}"))?;
        Ok(Some(Flushes { count: count.parse()?, seconds: seconds.parse()? }))
    }

    /// What its servers and its database took so far.
    fn used(&self) -> Result<Measured> {
        let mut used = Measured::default();
        for server in &self.all {
            used.groups += server.metrics()?.get("aptix_store_group_writes_count").copied().unwrap_or_default();
            used.server += server.process.processor_seconds()?;
        }
        if let Some(cluster) = self.cluster {
            used.database = cluster.processor_seconds()?;
        }
        Ok(used)
    }

    fn first(&self) -> Result<&Server> {
        self.all.first().context("a server runs")
    }
}

impl Measured {
    /// The same for each batch; `groups` is then how many batches share a group.
    pub(crate) fn each(&self) -> Self {
        let of = |sum: f64| sum / self.batches.max(1.0);
        let groups = self.batches / self.groups.max(1.0);
        Self {
            batches: self.batches,
            rates: self.rates.clone(),
            groups,
            author: of(self.author),
            server: of(self.server),
            database: of(self.database),
            bytes: self.bytes,
        }
    }
}
