//! Replays real histories in every dialect: each file's change is said in the dialect, applied by the engine, and
//! compared with what the commit made of the file. Fails if anything is wrong, or refused that could be said.

#![expect(clippy::print_stdout, reason = "a measurement is printed")]
#![expect(clippy::indexing_slicing, reason = "ranges come from the diff of the same lines")]

mod express;
mod history;
mod judge;
mod lines;
mod rival;
mod tally;
mod variant;

use std::path::PathBuf;

use anyhow::{Context, Result, bail, ensure};
use aptix_model::documents::Dialect;

use history::{FileChange, Objects, Step};
use judge::{Verdict, judge};
use tally::Tally;
use variant::Variant;

/// What is asked for.
struct Args {
    repo: Option<PathBuf>,
    pairs: Option<PathBuf>,
    commits: Option<usize>,
    dialects: Vec<Dialect>,
}

fn args() -> Result<Args> {
    let mut args = Args { repo: None, pairs: None, commits: None, dialects: Vec::new() };
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().with_context(|| format!("{word} has a value"));
        match word.as_str() {
            "--repo" => args.repo = Some(value()?.into()),
            "--pairs" => args.pairs = Some(value()?.into()),
            "--commits" => args.commits = Some(value()?.parse()?),
            "--dialect" => args.dialects.push(value()?.parse()?),
            // What `cargo bench` adds.
            "--bench" => {}
            _ => bail!("unknown argument {word}"),
        }
    }
    if args.dialects.is_empty() {
        args.dialects = Dialect::ALL.to_vec();
    }
    Ok(args)
}

fn main() -> Result<()> {
    let args = args()?;
    let mut tally = Tally::default();
    if let Some(repo) = &args.repo {
        let mut objects = Objects::of(repo)?;
        let commits = history::commits(repo, args.commits)?;
        ensure!(!commits.is_empty(), "{} has no commit with a parent", repo.display());
        for commit in &commits {
            replay(&history::step(repo, &mut objects, commit)?, &args.dialects, &mut tally)?;
        }
    }
    if let Some(pairs) = &args.pairs {
        let listed = std::fs::read_to_string(pairs).with_context(|| format!("{} cannot be read", pairs.display()))?;
        let folders: Vec<&str> = listed.lines().collect();
        for pair in folders.chunks_exact(2) {
            let step = history::between(pair[0].as_ref(), pair[1].as_ref())?;
            replay(&step, &args.dialects, &mut tally)?;
        }
    }
    tally.print();
    tally.verdict()
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
        match express::part(dialect, file) {
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
                let part = express::part(dialect, file).map_err(anyhow::Error::msg)?;
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
