//! Measures a real server process beside floors of the same run: what a submitted batch takes, how long it is until one is
//! applied, and what idle streams take; and the PostgreSQL store beside a bare loop of the same transactions.
//!
//! Passes of all rows are interleaved; figures are medians of paired ratios, each beside its goal. Only the cost of identity,
//! quotas and metrics is a gate. On a machine with other work it is most precise with `nice -n -20`, and with `TMPDIR` on a file
//! system that no other process flushes.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench lays out the directories it works in")]

mod author;
mod bare_loop;
mod counting;
#[expect(dead_code, reason = "the crash harness breaks clusters")]
#[path = "../../database.rs"]
mod database;
mod echo;
mod end_to_end;
#[expect(dead_code, reason = "the bench of the agent has another floor too")]
#[path = "../agent/floors.rs"]
mod floors;
#[path = "../../goal.rs"]
mod goal;
mod idle;
mod idle_stream;
#[path = "../../crash/moment.rs"]
mod moment;
mod neighbours;
mod postgres;
#[expect(dead_code, reason = "the model of the scale counts bytes too")]
mod process;
#[expect(dead_code, reason = "other harnesses need a directory in memory")]
#[path = "../../program.rs"]
mod program;
mod raw_log;
mod submit;
mod target;

use std::process::ExitCode;

use anyhow::Result;
use clap::{Parser, ValueEnum};

use crate::goal::Goal;

#[derive(Parser)]
struct Args {
    /// What to measure
    #[arg(value_enum)]
    subject: Subject,
    /// A few passes, to see that it works: nothing is gated
    #[arg(long)]
    quick: bool,
    /// How many passes there are
    #[arg(long)]
    passes: Option<usize>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Clone, Copy, ValueEnum)]
enum Subject {
    /// Batches submitted by 1, 16 and 64 writers, beside a unary echo and a log with one flush for each group
    Submit,
    /// From the call that submits a batch until its author learns that it was applied, beside the sum of its floors
    EndToEnd,
    /// Memory and processor time of 1,000, 9,000 and 10,000 streams on which nothing happens
    Idle,
    /// The PostgreSQL store beside a bare loop of the same transactions, the embedded store, and servers beside one server
    Postgres,
    /// Answers each message with itself; the other benches start it
    #[value(hide = true)]
    Echo,
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let passes = |usual, quick| args.passes.unwrap_or(if args.quick { quick } else { usual });
    match args.subject {
        Subject::Submit => gate(args, &runtime.block_on(submit::measure(passes(61, 3)))?),
        Subject::EndToEnd => gate(args, &runtime.block_on(end_to_end::measure(passes(41, 2)))?),
        Subject::Idle => gate(args, &idle::measure(&runtime, args.quick)?),
        Subject::Postgres => runtime.block_on(postgres::measure(passes(21, 2))),
        Subject::Echo => runtime.block_on(echo::serve()),
    }
}

/// Prints what is gated, and holds it unless a few passes were enough.
fn gate(args: &Args, gated: &[Goal]) -> Result<()> {
    if args.quick {
        goal::report(gated);
        return Ok(());
    }
    println!("gated:");
    goal::check(gated)
}
