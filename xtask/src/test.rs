//! Every test, and what the tests need: our binaries, the example clients, and the official MCP clients.

use std::fs;
use std::process::Command;
use std::thread::available_parallelism;

use anyhow::Result;

use crate::bucket::{self, BucketServer};
use crate::harness::start::build;
use crate::harness::{answers, crash, differ, prepared, replay, scale, simulate};
use crate::repo::{capture, cargo, target, write_file};
use crate::steps::{run, step};
use crate::{node, python, toolchains};

/// What random trees, diffs and cuts of the tests are made from, so that two runs of one commit do the same. Other seeds
/// are for runs of their own.
const SEED: u64 = 31_331;

/// Builds what the tests need and runs them all.
///
/// # Errors
///
/// When something is missing or a test fails.
pub(crate) fn test() -> Result<()> {
    build()?;
    step("example client in Python", python::example)?;
    step("example client in TypeScript (tsc --strict)", node::example)?;
    step("example client in Go", toolchains::go)?;
    step("example client in C#", toolchains::csharp)?;
    step("official MCP clients", || python::conformance().and_then(|()| node::conformance()))?;
    // First the few, so that the count of the many is what a log ends with.
    step("doc tests", || run(cargo().args(["test", "--locked", "--quiet", "--workspace", "--all-features", "--doc"])))?;
    answers(&["--gate", "--seed", &SEED.to_string()])?;
    crash(&[] as &[&str])?;
    crash(&["server", "--seed", &SEED.to_string()])?;
    replay::damaged(SEED)?;
    differ(&["--seed", &SEED.to_string()])?;
    prepared(&["--seed", &SEED.to_string()])?;
    simulate(&["--seed", &SEED.to_string()])?;
    scale(&["--quick"])?;
    step("tests", tests)
}

/// Runs the tests, and then prints what they had to skip on this machine.
fn tests() -> Result<()> {
    let skipped = target()?.join("skipped-tests.txt");
    write_file(&skipped, b"")?;
    let bucket = BucketServer::start()?;
    run(bucket::with(bucket.as_ref(), runner().env("APTIX_SKIPPED", &skipped)))?;
    print!("{}", fs::read_to_string(&skipped).unwrap_or_default());
    Ok(())
}

/// One process for each test where nextest is installed, else cargo's own runner.
fn runner() -> Command {
    let mut tests = cargo();
    if capture(cargo().args(["nextest", "--version"])).is_ok() {
        // Most tests wait for processes and for flushes more than they compute.
        let threads = 2 * available_parallelism().map_or(1, usize::from);
        tests.args(["nextest", "run", "--no-fail-fast", "--test-threads", &threads.to_string()]);
    } else {
        tests.args(["test", "--no-fail-fast", "--lib", "--bins", "--tests"]);
    }
    tests.args(["--locked", "--workspace", "--all-features"]);
    tests
}
