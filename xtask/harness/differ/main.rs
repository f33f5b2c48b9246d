//! Diffs made by git from random trees, perturbed, and applied by git and by Aptix. Where both accept a diff, both make
//! the same tree. Every other difference belongs to a class of [`classes`], which is also in `docs/reference/git-patch.md`.

#![expect(clippy::print_stdout, reason = "what was found is printed")]
#![expect(clippy::indexing_slicing, reason = "numbers are below the lengths that they are drawn for")]

mod case;
mod classes;
mod family;
mod git;
mod judge;
mod level;
#[path = "../memory.rs"]
mod memory;
mod mend;
mod ours;
mod perturb;
#[path = "../program.rs"]
mod program;
mod proof;
#[path = "../random.rs"]
#[expect(dead_code, reason = "the crash harness uses all of it")]
mod random;
mod section;
mod seen;
mod tally;
mod tree;
#[path = "../workers.rs"]
mod workers;

use std::path::Path;
use std::sync::Mutex;
use std::time::Instant;

use anyhow::{Result, ensure};
use clap::Parser;

use case::Case;
use family::History;
use git::Repo;
use memory::Tree;
use tally::Tally;

/// Histories whose trees are in one repository.
const BATCH: u64 = 40;

/// Each so manieth case is also done by the program.
const PROGRAM_EVERY: usize = 200;

#[derive(Parser)]
struct Args {
    /// 200,000 diffs instead of 20,000
    #[arg(long, conflicts_with = "count")]
    long: bool,
    /// So many diffs
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    /// The seed of a run that is to be made again
    #[arg(long, value_name = "N", default_value_t = random::seed())]
    seed: u64,
    /// Show the cases of one history in full
    #[arg(long, value_name = "N", requires = "seed")]
    only: Option<u64>,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    let count = args.count.unwrap_or(if args.long { 200_000 } else { 20_000 });
    let start = Instant::now();
    judge::control()?;
    classes::check_page()?;
    let folder = program::place()?;
    if let Some(only) = args.only {
        return show(&args, folder.path(), only);
    }
    let histories = count.div_ceil(family::SIZE) as u64;
    let (tally, mut next, mut done) = (Mutex::new(Tally::default()), 0, 0);
    // Some histories come without a diff.
    while done < histories {
        let firsts: Vec<u64> = (0..(histories - done).div_ceil(BATCH)).map(|batch| next + batch * BATCH).collect();
        next += firsts.len() as u64 * BATCH;
        let found = workers::each(&firsts, |_, first| batch(&args, folder.path(), *first, &tally))?;
        done += found.into_iter().sum::<u64>();
    }
    let tally = tally.into_inner()?;
    tally.print(args.seed, start.elapsed());
    tally.verdict(count)
}

/// Makes some histories, and judges their cases; the number of histories that have a diff.
fn batch(args: &Args, folder: &Path, first: u64, tally: &Mutex<Tally>) -> Result<u64> {
    let histories: Vec<History> = (first..first + BATCH).map(|number| History::new(args.seed, number)).collect();
    let folder = folder.join(first.to_string());
    let found = made(&folder.join("repo"), histories)?;
    let mut with_diff = 0;
    for (number, cases) in found {
        with_diff += u64::from(!cases.is_empty());
        for (position, case) in cases.iter().enumerate() {
            let judged = judge::judge(case, &folder.join("work"))?;
            let is_sample = (number as usize * family::SIZE + position).is_multiple_of(PROGRAM_EVERY);
            let sampled = is_sample.then(|| judge::by_program(case, &judged.ours, &folder.join("program")));
            let sampled = sampled.transpose()?;
            workers::with(tally, |tally| tally.add(number, position, case, judged, sampled));
        }
    }
    git::clear(&folder)?;
    Ok(with_diff)
}

fn made(repo: &Path, histories: Vec<History>) -> Result<Vec<(u64, Vec<Case>)>> {
    let trees: Vec<(u64, [&Tree; 3])> =
        histories.iter().map(|history| (history.number, history.trees.each_ref())).collect();
    let trees: Vec<(u64, &[&Tree])> = trees.iter().map(|(number, trees)| (*number, trees.as_slice())).collect();
    let repo = Repo::new(repo, &trees)?;
    histories.into_iter().map(|history| Ok((history.number, history.cases(&repo)?))).collect()
}

/// Shows the cases of one history in full.
fn show(args: &Args, folder: &Path, only: u64) -> Result<()> {
    let found = made(&folder.join("repo"), vec![History::new(args.seed, only)])?;
    ensure!(!found.is_empty(), "no history");
    for (position, case) in found.iter().flat_map(|(_, cases)| cases).enumerate() {
        let judged = judge::judge(case, &folder.join("work"))?;
        println!("case {only}.{position}\n{}", tally::shown(case, &judged));
    }
    Ok(())
}
