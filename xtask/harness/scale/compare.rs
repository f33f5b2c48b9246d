//! The small cases, simulated and with real processes.

use std::path::Path;
use std::time::Instant;

use anyhow::{Result, ensure};

use crate::cases::{Measured, Servers};
use crate::costs::StoreCosts;
use crate::database::Cluster;
use crate::fit::{Fitted, fit, small};
use crate::goal::median;
use crate::simulation::simulate;

/// How many writers there are in the cases that are compared, and in those that costs are fitted to.
const COMPARED: [usize; 3] = [2, 16, 32];
const FITTED: [usize; 3] = [1, 8, 64];
/// By how much simulated and measured throughput may differ.
const APART: f64 = 0.20;

/// Servers on one database, where there are several.
pub(crate) const SERVERS: usize = 3;

/// One arrangement of servers, and what its cases took.
struct Arrangement<'a> {
    name: &'static str,
    servers: Servers<'a>,
    /// How long a flush took in each pass.
    flushes: Vec<f64>,
    fitted: [(usize, Measured); 3],
    compared: [(usize, Measured); 3],
}

impl<'a> Arrangement<'a> {
    async fn new(name: &'static str, servers: Servers<'a>) -> Result<Self> {
        let of = |writers: [usize; 3]| writers.map(|writers| (writers, Measured::default()));
        // The first groups prepare statements and make tables.
        servers.submit(64, &mut Measured::default()).await?;
        Ok(Self { name, servers, flushes: Vec::new(), fitted: of(FITTED), compared: of(COMPARED) })
    }

    async fn pass(&mut self, place: &Path) -> Result<()> {
        let before = self.servers.flushes()?;
        for (writers, measured) in self.fitted.iter_mut().chain(&mut self.compared) {
            self.servers.submit(*writers, measured).await?;
        }
        self.flushes.push(match before.zip(self.servers.flushes()?) {
            Some((before, after)) => (after.seconds - before.seconds) / (after.count - before.count),
            None => flush_seconds(place)?,
        });
        Ok(())
    }

    /// Prints both throughputs; answers the greatest difference.
    fn compare(&self, fitted: Fitted) -> f64 {
        println!("{}:", self.name);
        let mut most = 0.0_f64;
        for (writers, measured) in &self.compared {
            let outcome = simulate(&small(fitted, self.servers.all.len(), *writers));
            let (real, each) = (median(measured.rates.clone()), measured.each());
            let apart = outcome.rate / real - 1.0;
            most = most.max(apart.abs());
            println!(
                "  {writers:>2} writers: simulated / measured {:.2} ({:+.0} %), batches a group {:.1} / {:.1}; {:.0} / {real:.0} a second",
                outcome.rate / real,
                apart * 100.0,
                outcome.group,
                each.groups,
                outcome.rate,
            );
        }
        most
    }
}

/// The costs of the arrangements, and the greatest difference.
pub(crate) struct Compared {
    pub(crate) embedded: StoreCosts,
    pub(crate) postgres: StoreCosts,
    pub(crate) company: StoreCosts,
    /// Processor time of a server for each batch that another one stored.
    pub(crate) hear: f64,
    apart: f64,
}

impl Compared {
    /// # Errors
    /// When a case differs by too much.
    pub(crate) fn check(&self) -> Result<()> {
        let most = APART * 100.0;
        ensure!(
            self.apart <= APART,
            "simulated and measured throughput differ by {:.0} %, more than {most:.0} %; hint: other work on this machine disturbs both",
            self.apart * 100.0
        );
        println!(
            "simulated and measured throughput differ by {:.0} % at most; the goal is {most:.0} %",
            self.apart * 100.0
        );
        Ok(())
    }
}

/// Runs all cases in passes, fits costs to some of them, and compares the others.
///
/// # Errors
/// When a case cannot be run.
pub(crate) async fn compare(place: &Path, cluster: &Cluster, passes: usize) -> Result<Compared> {
    cluster.sql("postgres", "ALTER SYSTEM SET track_wal_io_timing = on")?;
    cluster.sql("postgres", "SELECT pg_reload_conf()")?;
    let (one, several) = (cluster.create("one", None)?, cluster.create("several", None)?);
    let servers = Servers::start(place, "embedded", 1, None).await?;
    let mut embedded = Arrangement::new("one server, embedded store", servers).await?;
    let servers = Servers::start(place, "one", 1, Some((cluster, &one))).await?;
    let mut postgres = Arrangement::new("one server on PostgreSQL", servers).await?;
    let servers = Servers::start(place, "several", SERVERS, Some((cluster, &several))).await?;
    let mut company = Arrangement::new("three servers on one PostgreSQL database", servers).await?;
    for _ in 0..passes {
        for arrangement in [&mut embedded, &mut postgres, &mut company] {
            arrangement.pass(place).await?;
        }
    }
    let hear = hear(&company.servers, passes).await?;
    println!(
        "throughput with real processes beside simulated; costs are fitted to {FITTED:?} writers, {passes} passes"
    );
    let (mut costs, mut apart): (Vec<StoreCosts>, _) = (Vec::new(), 0.0_f64);
    for arrangement in [&embedded, &postgres, &company] {
        let servers = arrangement.servers.all.len();
        let fitted = fit(arrangement.fitted.each_ref(), servers, median(arrangement.flushes.clone()));
        apart = apart.max(arrangement.compare(fitted));
        costs.push(StoreCosts { submit_bytes: arrangement.servers.submit_bytes().await?, ..fitted.costs });
    }
    let [embedded, postgres, company] = costs.as_slice() else { anyhow::bail!("there are three arrangements") };
    Ok(Compared { embedded: *embedded, postgres: *postgres, company: *company, hear, apart })
}

/// Processor time of a server for each batch that another one stored.
async fn hear(servers: &Servers<'_>, passes: usize) -> Result<f64> {
    let others =
        || -> Result<f64> { servers.all.iter().skip(1).map(|server| server.process.processor_seconds()).sum() };
    let (before, mut measured) = (others()?, Measured::default());
    for _ in 0..passes {
        servers.submit_at_first(16, &mut measured).await?;
    }
    Ok((others()? - before) / (measured.batches * (SERVERS - 1) as f64))
}

/// How long a page takes to be flushed at the end of a file.
fn flush_seconds(place: &Path) -> Result<f64> {
    use std::io::Write as _;
    const PAGE: [u8; 4096] = [1; 4096];
    const TIMES: usize = 20;
    let mut file = tempfile::tempfile_in(place)?;
    let mut each = Vec::new();
    for _ in 0..TIMES {
        file.write_all(&PAGE)?;
        let begin = Instant::now();
        file.sync_data()?;
        each.push(begin.elapsed().as_secs_f64());
    }
    Ok(median(each))
}
