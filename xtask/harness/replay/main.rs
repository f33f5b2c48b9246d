//! Replays real histories in every dialect: each file's change is said in the dialect, applied by the engine, and
//! compared with what the commit made of the file. Fails if anything is wrong, or refused that could be said.
//! `--cut` cuts the documents off somewhere instead, and `--twice` sends them twice.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::indexing_slicing, reason = "ranges come from the diff of the same lines")]

mod cut;
mod express;
mod history;
mod indentation;
mod judge;
mod lines;
#[path = "../memory.rs"]
mod memory;
mod parts;
#[path = "../random.rs"]
#[expect(dead_code, reason = "the crash harness uses all of it")]
mod random;
mod rival;
mod suspicion;
mod tally;
mod twice;
mod variant;
#[path = "../workers.rs"]
mod workers;

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use aptix_model::documents::Dialect;
use clap::Parser;

use express::reach::Reach;
use history::{FileChange, Objects, Step};
use indentation::Indentation;
use judge::{Verdict, judge};
use suspicion::Suspicion;
use tally::Tally;
use variant::Variant;

#[derive(Parser)]
struct Args {
    #[arg(long)]
    repo: Option<PathBuf>,
    /// A file that lists folders, two lines a pair: before and after
    #[arg(long)]
    pairs: Option<PathBuf>,
    #[arg(long)]
    commits: Option<usize>,
    #[arg(long = "dialect", default_values_t = Dialect::ALL)]
    dialects: Vec<Dialect>,
    /// Instead of replaying: send each change twice
    #[arg(long)]
    twice: bool,
    /// Instead of replaying: cut documents off
    #[arg(long)]
    cut: bool,
    /// At most so many changes
    #[arg(long)]
    most: Option<usize>,
    #[arg(long, default_value_t = random::seed())]
    seed: u64,
    /// Cargo passes this to every bench
    #[arg(long, hide = true)]
    bench: bool,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if args.twice || args.cut {
        let mut steps = Vec::new();
        each_step(&args, |step| {
            steps.push(step);
            Ok(())
        })?;
        if args.cut {
            cut::run(&steps, &args.dialects, args.most, args.seed)?;
        }
        if args.twice {
            twice::run(&steps, &args.dialects, args.most, args.seed)?;
        }
        return Ok(());
    }
    let mut tally = Tally::default();
    let (mut suspicion, mut indentation) = (Suspicion::default(), Indentation::default());
    each_step(&args, |step| {
        for file in &step.files {
            suspicion.add(&step.name, file)?;
            indentation.add(&step.name, file)?;
        }
        replay(&step, &args.dialects, &mut tally)
    })?;
    args.repo.iter().try_for_each(|repo| suspicion.add_newest(repo))?;
    tally.print();
    suspicion.print();
    indentation.print();
    tally.verdict().and(suspicion.verdict()).and(indentation.verdict())
}

/// Reads the history that is asked for, step by step.
fn each_step(args: &Args, mut work: impl FnMut(Step) -> Result<()>) -> Result<()> {
    if let Some(repo) = &args.repo {
        let mut objects = Objects::of(repo)?;
        let commits = history::commits(repo, args.commits)?;
        ensure!(!commits.is_empty(), "{} has no commit with a parent", repo.display());
        for commit in &commits {
            work(history::step(repo, &mut objects, commit)?)?;
        }
    }
    if let Some(pairs) = &args.pairs {
        let listed = std::fs::read_to_string(pairs).with_context(|| format!("{} cannot be read", pairs.display()))?;
        let folders: Vec<&str> = listed.lines().collect();
        for pair in folders.chunks_exact(2) {
            work(history::between(pair[0].as_ref(), pair[1].as_ref())?)?;
        }
    }
    Ok(())
}

fn replay(step: &Step, dialects: &[Dialect], tally: &mut Tally) -> Result<()> {
    tally.steps += 1;
    tally.left_out += step.left_out;
    for variant in Variant::ALL {
        let files: Vec<FileChange> = step.files.iter().filter_map(|file| variant.of(file)).collect();
        for dialect in dialects {
            say(*dialect, variant, step, &files, tally)?;
        }
    }
    if let Some(patch) = &step.patch
        && dialects.contains(&Dialect::GitPatch)
    {
        whole_patch(step, patch, tally)?;
    }
    Ok(())
}

/// Says every file's change that the dialect can say, all in as few documents as it takes.
fn say(dialect: Dialect, variant: Variant, step: &Step, files: &[FileChange], tally: &mut Tally) -> Result<()> {
    let mut said = Vec::new();
    let mut parts = Vec::new();
    for file in files {
        match express::part(dialect, file, Reach::Unique) {
            Ok(part) => {
                said.push(file);
                parts.push(part);
            }
            Err(reason) => tally.unsaid(dialect, variant, reason),
        }
    }
    if said.is_empty() {
        return Ok(());
    }
    let documents = express::documents(dialect, parts)?;
    let groups: Vec<&[&FileChange]> = if documents.len() == 1 { vec![&said] } else { said.chunks(1).collect() };
    for (document, group) in documents.iter().zip(groups) {
        let (verdict, time) = judge(document, dialect, group)?;
        if let (Verdict::Refused(_) | Verdict::Wrong(_), [_, _, ..]) = (&verdict, group) {
            // One file can spoil a document: each is tried alone, to count the others.
            for file in group {
                let part = express::part(dialect, file, Reach::Unique).map_err(anyhow::Error::msg)?;
                for document in express::documents(dialect, vec![part])? {
                    let (verdict, time) = judge(&document, dialect, &[file])?;
                    tally.add(dialect, variant, &step.name, &[file], &verdict, time);
                }
            }
            continue;
        }
        tally.add(dialect, variant, &step.name, group, &verdict, time);
    }
    Ok(())
}

/// Applies a commit's patch as git writes it, renames included, and lets git do the same.
fn whole_patch(step: &Step, patch: &[u8], tally: &mut Tally) -> Result<()> {
    let is_text = |file: &FileChange| {
        [&file.before, &file.after].into_iter().flatten().all(|file| memchr::memchr(0, &file.bytes).is_none())
    };
    let is_open = |file: &FileChange| aptix_model::protection::of(&file.path).is_none();
    let files: Vec<&FileChange> = step.files.iter().collect();
    if step.left_out > 0 || files.is_empty() || !files.iter().all(|file| is_text(file) && is_open(file)) {
        tally.whole.unsaid += 1;
        return Ok(());
    }
    let (verdict, time) = judge(patch, Dialect::GitPatch, &files)?;
    tally.whole.add(&step.name, &verdict, time);
    let (is_exact, time) = rival::git_apply(patch, &files)?;
    tally.rival.add(is_exact, time);
    Ok(())
}
