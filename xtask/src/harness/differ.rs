//! Starts the comparison with `git apply`, with the program that a sample of the diffs is also given to.

use anyhow::Result;

use super::start::{build_client, debug};
use crate::steps::{run, step};

/// What to compare.
#[derive(clap::Args, Default)]
pub(crate) struct Args {
    /// 200,000 diffs instead of 20,000
    #[arg(long, conflicts_with = "count")]
    pub(crate) long: bool,
    /// So many diffs
    #[arg(long, value_name = "N")]
    pub(crate) count: Option<usize>,
    /// The seed of a run that is to be made again
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,
    /// Show the cases of one history in full
    #[arg(long, value_name = "N", requires = "seed")]
    pub(crate) only: Option<u64>,
}

/// Compares.
///
/// # Errors
///
/// When both accept a diff and make different trees of it, or differ in a way that has no class.
pub(crate) fn differ(args: &Args) -> Result<()> {
    build_client()?;
    let mut harness = debug("differ");
    harness.args(args.long.then_some("--long"));
    if let Some(count) = args.count {
        harness.args(["--count", &count.to_string()]);
    }
    if let Some(seed) = args.seed {
        harness.args(["--seed", &seed.to_string()]);
    }
    if let Some(only) = args.only {
        harness.args(["--only", &only.to_string()]);
    }
    step("differ (more of it: cargo xtask differ --long)", || run(&mut harness))
}
