//! Histories of prepared batches over a real server and a real agent, held against a plain reference of the life of a batch: ten
//! owners prepare, replace, apply, cancel and revert, reviewers approve and reject, other programs change the files, and both processes
//! are killed. A history that goes otherwise than the reference is made shorter and printed.

#![expect(clippy::print_stdout, reason = "what was found is printed")]
#![expect(clippy::indexing_slicing, reason = "numbers are below the lengths that they are drawn for")]

mod history;
#[path = "../crash/moment.rs"]
mod moment;
mod played;
#[path = "../program.rs"]
mod program;
#[path = "../random.rs"]
#[expect(dead_code, reason = "the crash harness uses all of it")]
mod random;
mod reference;
#[path = "../shrink.rs"]
mod shrink;
mod stage;
mod taken_back;
#[path = "../workers.rs"]
#[expect(dead_code, reason = "other harnesses use all of it")]
mod workers;

use std::time::Instant;

use anyhow::{Result, bail};
use clap::Parser;

use self::history::Step;
use self::played::play;
use self::random::Random;
use self::shrink::shrunk;

/// Batches of a history in the long run; the histories of the tests are of different lengths up to that.
const BATCHES: usize = 100;
/// Histories from one line about the progress to the next.
const PROGRESS: usize = 500;
/// Histories that are played to make one that fails shorter.
const TRIES: usize = 100;

#[derive(Parser)]
struct Args {
    /// 10,000 histories of a hundred batches instead of 100 shorter ones
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
    /// Play one history alone
    #[arg(long, value_name = "N", requires = "seed")]
    only: Option<u64>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (count, begun) = (args.count.unwrap_or(if args.long { 10_000 } else { 100 }), Instant::now());
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
        "{} histories of prepared batches, {steps} steps, each as in the reference ({:.0?}, --seed {})",
        played.len(),
        begun.elapsed(),
        args.seed
    );
    Ok(())
}

/// Plays a history; the number of its steps.
fn one(args: &Args, number: u64) -> Result<usize> {
    let mut random = Random::new(args.seed.wrapping_mul(1_000_003).wrapping_add(number));
    let batches = if args.long { BATCHES } else { [3, 6, 12, 25][random.below(4)] };
    let (approval, steps) = history::random(&mut random, batches);
    let Some(why) = play(approval, &steps)? else { return Ok(steps.len()) };
    let fails = |steps: &[Step]| Ok(play(approval, steps)?.is_some());
    let short = shrunk(steps, TRIES, fails)?;
    let why = play(approval, &short)?.unwrap_or(why);
    let listed: Vec<String> = short.iter().map(|step| format!("  {step:?}")).collect();
    let seed = args.seed;
    bail!("history {number} (--seed {seed} --only {number}), approval {approval:?}: {why}\n{}", listed.join("\n"))
}
