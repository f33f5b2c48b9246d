//! Histories of one server, or of three on one store, of agents, authors, reviewers and watchers in one process, over a simulated network and in simulated time,
//! held against a plain reference of the life of a batch. A history that goes otherwise is made shorter and printed.

#![expect(clippy::print_stdout, reason = "what was found is printed")]
#![expect(clippy::indexing_slicing, reason = "numbers are below the lengths that they are drawn for")]

mod calls;
mod clock;
mod compare;
mod database;
mod defect;
mod hints;
mod history;
mod leases;
mod network;
mod play;
#[path = "../program.rs"]
#[expect(dead_code, reason = "other harnesses start programs")]
mod program;
mod questions;
#[path = "../random.rs"]
#[expect(dead_code, reason = "the crash harness uses all of it")]
mod random;
mod reference;
mod rivals;
#[path = "../shrink.rs"]
mod shrink;
mod stage;
mod store;
mod watcher;
#[path = "../workers.rs"]
mod workers;

use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use clap::Parser;

use self::defect::Defect;
use self::history::{SERVERS, Step};
use self::random::Random;
use self::shrink::shrunk;

/// Histories from one line about the progress to the next.
const PROGRESS: usize = 500;
/// Histories that are played to make one that fails shorter.
const TRIES: usize = 60;
/// Histories within which each planted defect has to be found: many times what the rarest usually takes.
const PLANTED: u64 = 500;
/// Threads for the blocking work of one history.
const BLOCKING: usize = 16;
/// How long the work that a history leaves behind may delay the next, in real time.
const LEFT_BEHIND: Duration = Duration::from_secs(10);

#[derive(Parser)]
struct Args {
    /// 10,000 long histories instead of 100 short ones
    #[arg(long)]
    long: bool,
    /// So many histories
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// The number of the first history: a run that was stopped goes on from here
    #[arg(long, value_name = "N", default_value_t = 0, requires = "seed")]
    first: u64,
    /// The seed of a run that is to be made again
    #[arg(long, value_name = "N", default_value_t = random::seed())]
    seed: u64,
    /// Only histories with so many servers, 1 or 3; both without it
    #[arg(long, value_name = "N", value_parser = servers)]
    servers: Option<usize>,
    /// Play one history alone
    #[arg(long, value_name = "N", requires = "seed")]
    only: Option<u64>,
    /// Of that history, play only the steps with these numbers
    #[arg(long, value_name = "N,N", requires = "only", value_delimiter = ',')]
    keep: Option<Vec<usize>>,
    /// Print what the server and the agents of that history log, filtered as by APTIX_LOG
    #[arg(long, value_name = "FILTER", requires = "only")]
    log: Option<String>,
    /// Play the histories alone, without the planted defects
    #[arg(long)]
    no_defects: bool,
    /// Fail where a check cannot be made on this machine
    #[arg(long, env = "APTIX_SKIP_NOTHING")]
    skip_nothing: bool,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    clock::own_time_of_day(args.skip_nothing)?;
    if let Some(filter) = &args.log {
        tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).init();
    }
    let (count, begun) = (args.count.unwrap_or(if args.long { 10_000 } else { 100 }), Instant::now());
    if !args.no_defects && args.only.is_none() {
        plant(args.seed)?;
    }
    let end = args.first.saturating_add(count);
    let numbers: Vec<u64> = args.only.map_or_else(|| (args.first..end).collect(), |only| vec![only]);
    let played = workers::each(&numbers, |at, number| {
        if at > 0 && at % PROGRESS == 0 {
            println!("{at} histories ({:.0?}, --seed {} --first {})", begun.elapsed(), args.seed, args.first);
        }
        one(&args, *number)
    })?;
    let steps: usize = played.iter().sum();
    println!(
        "{} simulated histories, {steps} steps, each as in the reference ({:.0?}, --seed {})",
        played.len(),
        begun.elapsed(),
        args.seed
    );
    Ok(())
}

/// Reads how many servers histories have.
fn servers(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(servers @ (1 | SERVERS)) => Ok(servers),
        _ => Err(format!("expected 1 or {SERVERS}")),
    }
}

/// A history as it is played.
struct Drawn {
    seed: u64,
    servers: usize,
    steps: Vec<Step>,
}

/// The history with a number. Those of the tests are shorter.
fn drawn(run: u64, number: u64, (is_long, servers): (bool, Option<usize>)) -> Drawn {
    let seed = run.wrapping_mul(1_000_003).wrapping_add(number);
    let mut random = Random::new(seed);
    let either = [1, SERVERS][random.below(2)];
    let servers = servers.unwrap_or(either);
    let lengths = if is_long { [20, 40, 60, 100] } else { [5, 10, 20, 30] };
    let steps = lengths.get(random.below(lengths.len())).copied().unwrap_or_default();
    Drawn { seed, servers, steps: history::random(&mut random, steps, servers) }
}

/// The steps with these numbers.
fn kept(steps: &[Step], numbers: &[usize]) -> Vec<Step> {
    numbers.iter().filter_map(|number| steps.get(*number).copied()).collect()
}

/// Plays steps in a runtime of their own, whose time is simulated.
fn played((seed, servers): (u64, usize), steps: &[Step], defect: Option<Defect>) -> play::Found {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .max_blocking_threads(BLOCKING)
        .build()?;
    let found = runtime.block_on(play::play((seed, servers), steps, defect));
    runtime.shutdown_timeout(LEFT_BEHIND);
    found
}

/// Plays a history; the number of its steps.
fn one(args: &Args, number: u64) -> Result<usize> {
    let Drawn { seed, servers, steps } = drawn(args.seed, number, (args.long, args.servers));
    let all = args.keep.clone().unwrap_or_else(|| (0..steps.len()).collect());
    let failing = |numbers: &[usize]| played((seed, servers), &kept(&steps, numbers), None);
    let Some(why) = failing(&all)? else { return Ok(all.len()) };
    let tries = if args.keep.is_some() { 0 } else { TRIES };
    let short = shrunk(all, tries, |numbers| Ok(failing(numbers)?.is_some()))?;
    let why = failing(&short)?.unwrap_or(why);
    let numbers: Vec<String> = short.iter().map(usize::to_string).collect();
    let listed: Vec<String> = kept(&steps, &short).iter().map(|step| format!("  {step:?}")).collect();
    let long = if args.long { "--long " } else { "" };
    bail!(
        "history {number} of {servers} servers ({long}--servers {servers} --seed {} --only {number} --keep {}): {why}\n{}",
        args.seed,
        numbers.join(","),
        listed.join("\n")
    )
}

/// Plants each defect, which some history has to find.
fn plant(run: u64) -> Result<()> {
    let found = workers::each(&Defect::ALL, |_, defect| {
        for number in 0..PLANTED {
            let servers = if defect.is_of_several() { SERVERS } else { 1 };
            let Drawn { seed, steps, .. } = drawn(run, number, (false, Some(servers)));
            if let Some(why) = played((seed, servers), &steps, Some(*defect))? {
                return Ok(format!("{defect:?} was found in history {number}: {why}"));
            }
        }
        bail!("{defect:?} was planted and not found in {PLANTED} histories (--seed {run})")
    })?;
    for line in found {
        println!("{}", line.lines().next().unwrap_or_default());
    }
    Ok(())
}
