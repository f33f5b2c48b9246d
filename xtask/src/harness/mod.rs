//! Builds and starts the harnesses: the programs of `xtask/harness`, which break, replay, compare and measure.

mod corpus;
pub(crate) mod replay;
pub(crate) mod start;

use std::ffi::OsStr;

use anyhow::{Result, ensure};

use self::corpus::{VERSIONS, corpus};
use self::start::{Profile, build, debug, harness, optimized};
use crate::bucket::{self, BucketServer};
use crate::repo::cargo;
use crate::steps::{run, step};

/// What can be measured.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Subject {
    /// Applying files durably, beside what the disk takes at the least, and beside what it takes without a history.
    Agent,
    /// Planning and applying line patches, beside `memcpy`, SHA-256 and diffy.
    Engine,
    /// Planning and applying one typical edit in each dialect, beside the search for the same bytes.
    Dialects,
    /// Submitting batches to a server, beside a unary echo and a log, and what identity, quotas and metrics add.
    Submit,
    /// From submitting a batch until it is applied by an agent, beside the sum of its floors.
    EndToEnd,
    /// Memory and processor time of a server with idle agents and watchers.
    Idle,
    /// The PostgreSQL store beside a bare loop of the same transactions, and beside the embedded store.
    Postgres,
}

/// Measures; only the benches of the server take arguments.
///
/// # Errors
///
/// When the corpus cannot be fetched, a result is wrong, or a goal is missed.
pub(crate) fn bench(subject: Subject, args: &[String]) -> Result<()> {
    let is_of_server = matches!(subject, Subject::Submit | Subject::EndToEnd | Subject::Idle | Subject::Postgres);
    ensure!(is_of_server || args.is_empty(), "this bench takes no arguments");
    match subject {
        Subject::Agent => {
            let program = ["build", "--locked", "--release", "--package", "aptix-client", "--bin", "aptix"];
            step("build", || run(cargo().args(program)))?;
            step("bench agent", || run(&mut optimized("agent")))
        }
        Subject::Engine => {
            let list = corpus(VERSIONS)?;
            step("bench engine", || run(optimized("engine").arg(list)))
        }
        Subject::Dialects => step("bench dialects", || run(&mut optimized("dialects"))),
        Subject::Submit => bench_server("submit", args),
        Subject::EndToEnd => bench_server("end-to-end", args),
        Subject::Idle => bench_server("idle", args),
        Subject::Postgres => bench_server("postgres", args),
    }
}

fn bench_server(subject: &str, args: &[String]) -> Result<()> {
    start::released()?;
    step(&format!("bench {subject}"), || run(optimized("server").arg(subject).args(args)))
}

/// Measures what batches cost and compares the simulation of servers and databases with real processes; with `--quick` only checks the
/// simulation.
///
/// # Errors
///
/// When the simulation lacks a property, or differs from the real processes by too much.
pub(crate) fn scale(args: &[impl AsRef<OsStr>]) -> Result<()> {
    if args.iter().any(|arg| arg.as_ref() == "--quick") {
        return step("scale (with measured costs: cargo xtask scale)", || run(debug("scale").args(args)));
    }
    start::released()?;
    step("scale", || run(optimized("scale").args(args)))
}

/// Builds the programs and lets a crash harness kill them: that of the server if the first argument is `server`.
///
/// # Errors
///
/// When a tree is torn, something is lost, or a control is not caught.
pub(crate) fn crash(args: &[impl AsRef<OsStr>]) -> Result<()> {
    build()?;
    if let Some((_, rest)) = args.split_first().filter(|(first, _)| first.as_ref() == "server") {
        let name = "crash harness of the server (more of it: cargo xtask crash server --long)";
        return step(name, || {
            let bucket = BucketServer::start()?;
            run(bucket::with(bucket.as_ref(), debug("crash_server").args(rest)))
        });
    }
    step("crash harness (more of it: cargo xtask crash --long)", || run(debug("crash").args(args)))
}

/// Builds the program and applies every answer of the corpus.
///
/// # Errors
///
/// When an answer has another result than the corpus states.
pub(crate) fn answers(args: &[impl AsRef<OsStr>]) -> Result<()> {
    build()?;
    step("answers", || run(debug("answers").args(args)))
}

/// Builds the program and lets git and Aptix apply the same diffs.
///
/// # Errors
///
/// When both accept a diff and make different trees of it, or differ in a way that has no class.
pub(crate) fn differ(args: &[impl AsRef<OsStr>]) -> Result<()> {
    build()?;
    step("differ (more of it: cargo xtask differ --long)", || run(debug("differ").args(args)))
}

/// Plays histories of one server or three, and agents, over a simulated network.
///
/// # Errors
///
/// When a history goes otherwise than the reference, or a planted defect is not found.
pub(crate) fn simulate(args: &[impl AsRef<OsStr>]) -> Result<()> {
    // Millions of steps: unoptimized, they take several times as long.
    let is_long = args.iter().any(|arg| arg.as_ref() == "--long");
    let profile = if is_long { Profile::CHECKED } else { Profile::DEV };
    let name = "simulated histories (more of them: cargo xtask simulate --long)";
    step(name, || run(harness("simulate", profile).args(args)))
}

/// Builds the programs and plays histories of prepared batches on them.
///
/// # Errors
///
/// When a history goes otherwise than the reference.
pub(crate) fn prepared(args: &[impl AsRef<OsStr>]) -> Result<()> {
    // Millions of steps: unoptimized, they take five times as long.
    let is_long = args.iter().any(|arg| arg.as_ref() == "--long");
    let profile = if is_long { Profile::CHECKED } else { Profile::DEV };
    start::programs(profile)?;
    let name = "prepared batches (more of it: cargo xtask prepared --long)";
    step(name, || run(harness("prepared", profile).args(args)))
}
