//! Kills the server, fails its system calls and cuts its power while agents and authors work, and compares what it has
//! afterwards with a plain reference of what it acknowledged, which is kept outside of its data directory.
//!
//! Each suite has a control: a damage that the same comparison has to find. Started by `cargo xtask crash server`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a harness prints what it does")]
#![expect(clippy::disallowed_methods, reason = "a harness lays out the directories it works in")]

mod behind;
mod calls;
mod check;
mod copies;
#[expect(dead_code, reason = "benches need more than one database")]
#[path = "../database.rs"]
mod database;
mod feed;
#[path = "../crash/job.rs"]
#[expect(dead_code, reason = "other harnesses use all of it")]
mod job;
mod kept;
mod kill;
mod ledger;
mod load;
#[path = "../crash/moment.rs"]
mod moment;
mod power;
#[path = "../program.rs"]
mod program;
#[path = "../random.rs"]
mod random;
mod scene;
mod several;
mod stage;
#[path = "../strace.rs"]
mod strace;
mod syscalls;
#[path = "../crash/volume.rs"]
mod volume;
#[path = "../workers.rs"]
#[expect(dead_code, reason = "other harnesses use all of it")]
mod workers;

use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, ensure};
use clap::{Parser, ValueEnum};

use crate::job::{Ending, Job};
use crate::random::Random;

#[derive(Parser)]
struct Args {
    /// The suites to run; all when none is named
    #[arg(value_enum)]
    suites: Vec<Suite>,
    /// 1,000 kills instead of 20, 400 faults instead of 13, 300 breaks of several servers instead of 6, 200 power cuts instead of 3
    #[arg(long)]
    long: bool,
    /// How many cycles each suite has
    #[arg(long)]
    cycles: Option<usize>,
    /// Fail when a suite has to be skipped
    #[arg(long, env = "APTIX_SKIP_NOTHING")]
    skip_nothing: bool,
    /// Decides about everything random except the order in which the processes run
    #[arg(long)]
    seed: Option<u64>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way of breaking the server.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Suite {
    /// Kills it with SIGKILL at random moments: under load, while it starts, while it ends.
    Kill,
    /// Fails its system calls and cuts its writes short; needs strace.
    Syscalls,
    /// Kills three servers on one PostgreSQL database, their agents, and PostgreSQL itself; needs PostgreSQL.
    Several,
    /// Cuts the power of an ext4 of its own; needs root, loop devices and, for its control, strace.
    Power,
}

impl Suite {
    /// How many cycles it has in the short run and in the long one.
    const fn cycles(self) -> (usize, usize) {
        match self {
            Self::Kill => (20, 1000),
            Self::Syscalls => (13, 400),
            // The short run has each kind of break, and one more at random.
            Self::Several => (several::KINDS + 1, 300),
            Self::Power => (3, 200),
        }
    }
}

fn main() -> ExitCode {
    match run(&Args::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let suites = if args.suites.is_empty() { Suite::value_variants() } else { &args.suites };
    let seed = args.seed.unwrap_or_else(random::seed);
    let mut skipped = Vec::new();
    for suite in suites {
        let (short, long) = suite.cycles();
        let cycles = args.cycles.unwrap_or(if args.long { long } else { short });
        let mut job = Job { long: args.long, cycles, random: Random::new(seed) };
        let begin = Instant::now();
        let run = match suite {
            Suite::Kill => kill::run,
            Suite::Syscalls => syscalls::run,
            Suite::Several => several::run,
            Suite::Power => power::run,
        };
        let name = format!("{suite:?}").to_lowercase();
        let again = || format!("to repeat it: cargo xtask crash server {name} --cycles {cycles} --seed {seed}");
        let ending = run(&mut job).with_context(again)?;
        let seconds = begin.elapsed().as_secs_f64();
        match ending {
            Ending::Held(what) => println!("    {name:<9} held in {seconds:.1} s (--seed {seed}): {what}"),
            Ending::Skipped(why) => {
                println!("    {name:<9} SKIPPED: {why}");
                skipped.push(name);
            }
        }
    }
    ensure!(!args.skip_nothing || skipped.is_empty(), "nothing may be skipped here, but {} was", skipped.join(", "));
    Ok(())
}
