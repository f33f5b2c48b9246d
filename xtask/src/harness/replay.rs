//! Starts the replay of real histories.

use std::path::PathBuf;
use std::process::Command;

use anyhow::Result;

use super::corpus::corpus;
use super::start::{debug, optimized};
use crate::repo::{capture, root};
use crate::steps::{run, step};

/// What to replay.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// A git repository: each of its commits that is no merge
    #[arg(long, value_name = "DIR")]
    repo: Option<PathBuf>,
    /// The newest so many commits; all of them if left out
    #[arg(long, value_name = "N", requires = "repo")]
    commits: Option<u64>,
    /// Two versions of each of a dozen published crates, fetched by cargo
    #[arg(long, required_unless_present = "repo")]
    crates: bool,
    /// A dialect to say the changes in; may be repeated; all of them if left out
    #[arg(long = "dialect", value_name = "D")]
    dialects: Vec<String>,
    /// Instead of replaying: cut the documents off somewhere, which must be refused or do what the whole does
    #[arg(long)]
    cut: bool,
    /// Instead of replaying: send each change twice, which must take effect once
    #[arg(long)]
    twice: bool,
    /// About so many cuts or changes in each dialect; all of them if left out
    #[arg(long, value_name = "N")]
    most: Option<u64>,
    /// The seed of a run that is to be made again
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
}

/// Replays.
///
/// # Errors
///
/// When a change came out wrong, or was refused although the dialect can say it.
pub(crate) fn replay(args: &Args) -> Result<()> {
    // Nothing but replaying is timed: the rest is built as tests are.
    let is_timed = !args.cut && !args.twice;
    let mut bench = if is_timed { optimized("replay") } else { debug("replay") };
    if let Some(repo) = &args.repo {
        bench.arg("--repo").arg(std::path::absolute(repo)?);
    }
    if args.crates {
        bench.arg("--pairs").arg(corpus(2)?);
    }
    for dialect in &args.dialects {
        bench.args(["--dialect", dialect]);
    }
    for (flag, is_given) in [("--cut", args.cut), ("--twice", args.twice)] {
        bench.args(is_given.then_some(flag));
    }
    for (name, number) in [("--commits", args.commits), ("--most", args.most), ("--seed", args.seed)] {
        bench.args(number.into_iter().flat_map(|number| [name.to_owned(), number.to_string()]));
    }
    step("replay", || run(&mut bench))
}

/// Commits that a history has at least of which the tests take changes; a shallow copy of this repository has fewer.
const COMMITS: u64 = 100;

/// Sends changes of this repository's own history twice, and cuts documents of it off: as many as tests have time for.
/// Where the history is not there, changes between versions of published crates.
///
/// # Errors
///
/// When an edit takes effect twice, or a document that was cut off is applied in part.
pub(crate) fn damaged(seed: u64) -> Result<()> {
    let commits = capture(Command::new("git").current_dir(root()).args(["rev-list", "--count", "HEAD"]));
    let has_history = commits.is_ok_and(|count| count.trim().parse().is_ok_and(|count: u64| count >= COMMITS));
    let source = if has_history { ["--repo".into(), root().to_path_buf()] } else { ["--pairs".into(), corpus(2)?] };
    let seed = seed.to_string();
    let damaged = |arguments: [&str; 3]| run(debug("replay").args(arguments).args(["--seed", &seed]).args(&source));
    step("edits sent twice (all of them: cargo xtask replay --repo . --twice)", || {
        damaged(["--twice", "--most", "700"])
    })?;
    step("documents cut off (more of them: cargo xtask replay --repo . --cut)", || damaged(["--cut", "--most", "5000"]))
}
