//! Starts the replay of real histories.

use std::path::PathBuf;

use anyhow::Result;

use crate::bench::{bench_of, corpus};
use crate::steps::{run, step};

/// What to replay.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A git repository: each of its commits that is no merge
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The newest so many commits; all of them if left out
    #[arg(long, value_name = "N", requires = "repo")]
    commits: Option<usize>,
    /// Two versions of each of a dozen published crates, fetched by cargo
    #[arg(long, required_unless_present = "repo")]
    crates: bool,
    /// A dialect to say the changes in; may be repeated; all of them if left out
    #[arg(long = "dialect", value_name = "D")]
    dialects: Vec<String>,
}

/// Replays.
///
/// # Errors
///
/// When a change came out wrong, or was refused although the dialect can say it.
pub(crate) fn replay(args: &Args) -> Result<()> {
    let mut bench = bench_of("replay");
    if let Some(repo) = &args.repo {
        bench.arg("--repo").arg(std::path::absolute(repo)?);
    }
    if let Some(commits) = args.commits {
        bench.args(["--commits", &commits.to_string()]);
    }
    if args.crates {
        bench.arg("--pairs").arg(corpus(2)?);
    }
    for dialect in &args.dialects {
        bench.args(["--dialect", dialect]);
    }
    step("replay", || run(&mut bench))
}
