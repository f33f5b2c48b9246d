//! How long a durable apply takes, beside its floor in the same run: what any program must do that promises as much; what a
//! long history adds to it; and how long a live read takes in a large tree, beside one in a small tree.
//!
//! Wall time of files of 10 KB that replace others, all rows interleaved, each at another place in every pass, medians of
//! paired ratios; flushes are counted at the disk interface through which everything is written. Fails when a
//! goal is missed. On a machine with other work it is most precise with `nice -n -20`, and with `TMPDIR` on a file system
//! that no other process flushes. Not on ext4 without a journal: there each new file takes longer the more were deleted
//! near it lately, by any program.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench lays out the directories it works in")]

#[expect(dead_code, reason = "the crash harness does more with it than to count")]
#[path = "../../watched_disk.rs"]
mod disk;
mod floors;
#[expect(dead_code, reason = "other benches have lower limits too")]
#[path = "../../goal.rs"]
mod goal;
mod history;
mod live;
mod sample;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, bail, ensure};
use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Origin, Presence, Target, WriteFile};

use crate::disk::{Operation, Verdict, Watched};
use crate::goal::{Goal, median};
use crate::sample::{BYTES, content, time};

/// How many files a batch has, how often it is measured, and how much longer than its floor it may take.
const SIZES: [(usize, usize, f64); 3] = [(1, 101, 1.5), (10, 51, 1.3), (100, 15, 1.3)];

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            println!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<()> {
    println!("ms for files of {BYTES} bytes, median; flushes of one batch in brackets");
    let goals = SIZES.map(|(files, passes, at_most)| measure(files, passes, at_most));
    let mut goals = goals.into_iter().collect::<Result<Vec<_>>>()?;
    goals.extend(history::measure()?);
    goals.push(live::measure()?);
    goal::check(&goals)
}

/// Measures one size.
fn measure(files: usize, passes: usize, at_most: f64) -> Result<Goal> {
    let place = tempfile::tempdir()?;
    let names: Vec<_> = (0..files).map(|file| format!("file{file}.txt")).collect();
    let directories = ["naive", "floor", "ws"].map(|name| place.path().join(name));
    for directory in &directories {
        std::fs::create_dir(directory)?;
        for (file, name) in names.iter().enumerate() {
            std::fs::write(directory.join(name), content(0, file))?;
        }
    }
    let [naive, floor, ws] = &directories;
    let flushes = Arc::new(AtomicUsize::new(0));
    let workspace = open(place.path(), ws, &flushes)?;
    let mut rows = [const { Vec::new() }; 3];
    let (mut ratios, mut count) = (Vec::new(), 0);
    for pass in 1..=passes {
        let contents: Vec<_> = (0..files).map(|file| content(pass, file)).collect();
        let batch = batch(&names, &contents);
        let bytes: Vec<_> = names.iter().map(String::as_str).zip(contents.iter().map(String::as_bytes)).collect();
        let [mut by_naive, mut by_floor, mut by_aptix] = [0.0; 3];
        for row in 0..rows.len() {
            match (row + pass) % rows.len() {
                0 => by_naive = time(|| floors::naive(naive, &bytes))?,
                1 => by_floor = time(|| floors::flushed(floor, &bytes))?,
                _ => {
                    let before = flushes.load(Ordering::Relaxed);
                    by_aptix = time(|| apply_batch(&workspace, &batch))?;
                    count = flushes.load(Ordering::Relaxed) - before;
                }
            }
        }
        ratios.push(by_aptix / by_floor);
        rows.iter_mut().zip([by_naive, by_floor, by_aptix]).for_each(|(row, seconds)| row.push(seconds));
    }
    for (file, name) in names.iter().enumerate() {
        ensure!(std::fs::read_to_string(ws.join(name))? == content(passes, file), "{name} came out wrong");
    }
    let [naive, floor, aptix] = rows.map(|row| median(row) * 1e3);
    println!(
        "{files:>4} files: naive {naive:.2} [{}]; floor {floor:.2} [{}], aptix {aptix:.2} [{count}]",
        2 * files,
        files + 2,
    );
    Ok(Goal::at_most(format!("{files} files, aptix / floor"), median(ratios), at_most))
}

fn open(place: &Path, ws: &Path, flushes: &Arc<AtomicUsize>) -> Result<Workspace> {
    let flushes = Arc::clone(flushes);
    let disk = Watched::new(move |operation: Operation<'_>| {
        if let Operation::Sync(_) = operation {
            flushes.fetch_add(1, Ordering::Relaxed);
        }
        Verdict::Pass
    });
    let root = ws.to_str().context("the directory has a name in UTF-8")?.parse()?;
    Ok(Workspace::open(&[root], &place.join("state"), Box::new(disk))?)
}

fn batch(names: &[String], contents: &[String]) -> Batch {
    let files = names.iter().zip(contents).map(|(name, content)| FilePatch {
        target: Target::Path(name.clone()),
        key: None,
        label: None,
        edit: FileEdit::WriteFile(WriteFile {
            content: Content::Text(content.clone()),
            presence: Presence::Present,
            content_format: None,
        }),
    });
    Batch { files: files.collect(), ..Batch::default() }
}

fn apply_batch(workspace: &Workspace, batch: &Batch) -> Result<()> {
    let policy = Policy::unstated(Caller::Shell);
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 0,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    match apply(workspace, batch, options, &mut |_| Decision::Apply) {
        Ok(_) => Ok(()),
        Err(refusal) => bail!("the batch is refused: {:?}", refusal.failures),
    }
}
