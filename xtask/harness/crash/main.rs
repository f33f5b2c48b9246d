//! Kills, fails and cuts the power of what writes files, and looks at what is left: every tree is wholly old or wholly new.
//!
//! Each suite also takes a protection away and must then find something torn or lost: a suite that cannot see the damage
//! proves nothing. A suite whose needs this machine lacks is skipped by name; started by `cargo xtask crash`.

#![expect(clippy::print_stdout, clippy::print_stderr, reason = "a harness prints what it does")]
#![expect(clippy::disallowed_methods, reason = "a harness lays out the directories it works in")]

mod agents;
mod commands;
#[path = "../watched_disk.rs"]
mod disk;
mod failpoints;
mod flushed;
mod job;
mod kill;
mod losses;
mod moment;
mod power;
#[path = "../program.rs"]
mod program;
mod race;
#[path = "../random.rs"]
mod random;
mod rewriter;
mod saver;
mod saves;
mod sequence;
#[path = "../strace.rs"]
mod strace;
mod syscalls;
mod tree;
mod unseeing;
mod volume;
#[path = "../workers.rs"]
#[expect(dead_code, reason = "other harnesses count while they work")]
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
    /// Run every case instead of a part of them
    #[arg(long)]
    long: bool,
    /// How often processes are killed; 200, or 2,000 in the long run
    #[arg(long)]
    cycles: Option<usize>,
    /// Fail when a suite has to be skipped
    #[arg(long, env = "APTIX_SKIP_NOTHING")]
    skip_nothing: bool,
    /// What decides about everything random
    #[arg(long)]
    seed: Option<u64>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

/// A way of breaking things.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Suite {
    /// Stops at each disk operation in turn, in the commit and in the recovery.
    Failpoints,
    /// Kills `aptix apply` and `aptix undo` at random moments. `aptix agent` is killed by the end-to-end tests.
    Kill,
    /// Fails or kills `aptix apply` and `aptix undo` at each system call; needs strace.
    Syscalls,
    /// Makes files immutable, file systems read-only, and mounts others over them; needs root and loop devices.
    Losses,
    /// Cuts the power of an ext4 of its own; needs root and loop devices.
    Power,
    /// Applies while another process works on the same files.
    Race,
    /// Lets batches end at the same time, at a real server, while agents are killed.
    Agents,
    /// Applies and undoes while another process saves the same files, by rename, by append and through held descriptors.
    Saves,
}

/// What this program does when it is started by itself.
#[derive(Parser)]
enum Role {
    /// Writes until it is stopped.
    Writer(power::Writer),
    /// Works on the files of others.
    Rewriter(rewriter::Rewriter),
    /// Serves a workspace until it is killed.
    Unseeing(unseeing::Unseeing),
    /// Saves files as editors do.
    Saver(saver::Saver),
    /// Applies, and keeps nothing that it displaces.
    Applier(saves::Applier),
}

fn play(role: &Role) -> Result<()> {
    match role {
        Role::Writer(args) => power::write(args),
        Role::Rewriter(args) => rewriter::rewrite(args),
        Role::Unseeing(args) => unseeing::serve_unseeing(args),
        Role::Saver(args) => saver::save(args),
        Role::Applier(args) => saves::apply_carelessly(args),
    }
}

fn main() -> ExitCode {
    let done = match Role::try_parse() {
        Ok(role) => play(&role),
        Err(_) => run(&Args::parse()),
    };
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // The harness keeps this of the programs that it starts.
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(args: &Args) -> Result<()> {
    let suites = if args.suites.is_empty() { Suite::value_variants() } else { &args.suites };
    let seed = args.seed.unwrap_or_else(random::seed);
    let cycles = args.cycles.unwrap_or(if args.long { 2000 } else { 200 });
    let mut skipped = Vec::new();
    for suite in suites {
        let mut job = Job { long: args.long, cycles, random: Random::new(seed) };
        let begin = Instant::now();
        let run = match suite {
            Suite::Failpoints => failpoints::run,
            Suite::Kill => kill::run,
            Suite::Syscalls => syscalls::run,
            Suite::Losses => losses::run,
            Suite::Power => power::run,
            Suite::Race => race::run,
            Suite::Agents => agents::run,
            Suite::Saves => saves::run,
        };
        let name = format!("{suite:?}").to_lowercase();
        let ending = run(&mut job).with_context(|| format!("suite {name}, --seed {seed}"))?;
        let seconds = begin.elapsed().as_secs_f64();
        match ending {
            Ending::Held(what) => println!("    {name:<9} held in {seconds:.1} s: {what}"),
            Ending::Skipped(why) => {
                println!("    {name:<9} SKIPPED: {why}");
                skipped.push(name);
            }
        }
    }
    ensure!(!args.skip_nothing || skipped.is_empty(), "nothing may be skipped here, but {} was", skipped.join(", "));
    Ok(())
}
