//! How far the server scales: unit costs, a simulation that is compared with real processes, and the large case that follows from both.
//!
//! `cargo xtask scale` measures the unit costs, simulates small cases and runs them with real processes, and prints the large case.
//! `--quick` measures nothing: it checks the simulation's properties and prints the large case from the committed table.

#![expect(clippy::print_stdout, reason = "a harness prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a harness lays out the directories it works in")]

#[path = "../bench/server/author.rs"]
mod author;
mod cases;
mod compare;
mod costs;
#[expect(dead_code, reason = "the crash harness breaks clusters")]
#[path = "../database.rs"]
mod database;
mod fit;
#[expect(dead_code, reason = "nothing here has a goal of a bench")]
#[path = "../goal.rs"]
mod goal;
#[path = "../bench/server/idle_stream.rs"]
mod idle_stream;
mod large;
#[path = "../crash/moment.rs"]
mod moment;
#[expect(dead_code, reason = "benches need tokens too")]
#[path = "../bench/server/process.rs"]
mod process;
#[expect(dead_code, reason = "other harnesses need a directory in memory")]
#[path = "../program.rs"]
mod program;
mod properties;
mod queues;
#[expect(dead_code, reason = "other harnesses need samples")]
#[path = "../random.rs"]
mod random;
mod simulation;
mod units;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Parser;

use crate::compare::Compared;
use crate::costs::Costs;
use crate::database::Cluster;

/// The committed unit costs.
const TABLE: &str = include_str!("unit_costs.toml");
/// Where they are, from the package's directory, and what the file begins with.
const FILE: &str = "harness/scale/unit_costs.toml";
const HEAD: &str = "# Unit costs of one run of `cargo xtask scale --write`, for `cargo xtask scale --quick`. Seconds and bytes; docs/scale.md says\n\
                    # how each is measured. They are inputs of a model and no promise: another machine has others.\n\n";

#[derive(Parser)]
struct Args {
    /// Measure nothing: check the simulation, and print the large case from the committed unit costs
    #[arg(long)]
    quick: bool,
    /// Write the measured unit costs into the committed table
    #[arg(long, conflicts_with = "quick")]
    write: bool,
    /// How many passes the small cases have
    #[arg(long, default_value_t = 40)]
    passes: usize,
    /// Connected agents of the large case
    #[arg(long, default_value_t = 1_000_000)]
    agents: u64,
    /// Batches a second of the large case
    #[arg(long, default_value_t = 100_000)]
    rate: u64,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let stored = Costs::parse(TABLE)?;
    println!("the simulation has its properties in {} layouts", properties::check(&stored)?);
    if args.quick {
        println!("unit costs: those of the committed table");
        large::print(&stored, args.agents, args.rate);
        return Ok(());
    }
    let Some(cluster) = Cluster::start()? else {
        anyhow::bail!("PostgreSQL is not installed; hint: --quick measures nothing and needs none");
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let place = tempfile::tempdir()?;
    let (costs, compared) = runtime.block_on(measure(place.path(), &cluster, args.passes))?;
    let table = costs.table()?;
    println!("unit costs:\n{table}");
    if args.write {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(FILE);
        std::fs::write(&file, format!("{HEAD}{table}"))
            .with_context(|| format!("{} cannot be written", file.display()))?;
    }
    large::print(&costs, args.agents, args.rate);
    compared.check()
}

/// Measures the unit costs, and compares the small cases.
async fn measure(place: &Path, cluster: &Cluster, passes: usize) -> Result<(Costs, Compared)> {
    let compared = compare::compare(place, cluster, passes).await?;
    let embedded_agents = units::agents(place, "embedded-agents", None, &compared.embedded).await?;
    let (read, applied) = (cluster.create("read", None)?, cluster.create("applied", None)?);
    let store = Some((cluster, [read.as_str(), applied.as_str()]));
    let agents = units::agents(place, "agents", store, &compared.postgres).await?;
    let fleet = units::fleet(cluster, &applied, compared.hear).await?;
    let Compared { embedded, postgres, company, .. } = compared;
    Ok((Costs { embedded, postgres, company, embedded_agents, agents, fleet }, compared))
}
