//! How long a durable apply takes, beside its floors in the same run: what any program must do that promises as much.
//!
//! In mode `journal` there are two: the bare calls, and those with the digests and the looks that the promise takes.
//!
//! Wall time of files of 10 KB that replace others, all rows interleaved, each at another place in every pass, medians of
//! paired ratios; flushes are counted at the seam through which everything is written. Fails when a goal is missed. On a
//! machine with other work it says the most with `nice -n -20`, and with `TMPDIR` on a file system that nobody else flushes.
//! Not on ext4 without a journal: there each new file takes longer the more were deleted near it lately, whoever makes it.

#![expect(clippy::print_stdout, reason = "a bench prints its figures")]
#![expect(clippy::disallowed_methods, reason = "a bench lays out the directories it works in")]

#[expect(dead_code, reason = "the crash harness does more with it than to count")]
#[path = "../seam/disk.rs"]
mod disk;
mod floors;

use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Instant;

use anyhow::{Context, Result, bail, ensure};
use aptix_client::apply::{Mode, Order, apply};
use aptix_client::policy::{Deletions, Policy};
use aptix_client::proposal::Decision;
use aptix_client::workspace::Workspace;
use aptix_client::workspace::transaction::Durability;
use aptix_model::batch::{Batch, Content, FileEdit, FilePatch, Origin, Presence, Target, WriteFile};

use crate::disk::{Operation, Verdict, Watched};
use crate::floors::Look;

/// Bytes of each file.
const BYTES: usize = 10_000;
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
    let mut missed = 0;
    println!("ms for files of {BYTES} bytes, median; flushes of one batch in brackets");
    for (files, passes, at_most) in SIZES {
        missed += measure(files, passes, at_most)?;
    }
    ensure!(missed == 0, "{missed} goals missed");
    Ok(())
}

/// What a file holds in a pass.
fn content(pass: usize, file: usize) -> String {
    let line = format!("line of file {file} in pass {pass}, as long as lines of source code usually are\n");
    line.chars().cycle().take(BYTES).collect()
}

/// Measures one size, and tells how many goals are missed.
fn measure(files: usize, passes: usize, at_most: f64) -> Result<usize> {
    let place = tempfile::tempdir()?;
    let names: Vec<_> = (0..files).map(|file| format!("file{file}.txt")).collect();
    let directories = ["naive", "floor", "journal-floor", "digest-floor", "ws", "journal-ws"];
    let directories = directories.map(|name| place.path().join(name));
    for directory in &directories {
        std::fs::create_dir(directory)?;
        for (file, name) in names.iter().enumerate() {
            std::fs::write(directory.join(name), content(0, file))?;
        }
    }
    let [naive, floor, journal_floor, digest_floor, ws, journal_ws] = &directories;
    let flushes = Arc::new(AtomicUsize::new(0));
    let workspaces = [ws, journal_ws].map(|ws| open(place.path(), ws, &flushes));
    let [flushed, journal] = workspaces;
    let (flushed, journal) = (flushed?, journal?);
    let counted = |workspace: &Workspace, batch: &Batch, durability| {
        let before = flushes.load(Ordering::Relaxed);
        let seconds = time(|| apply_batch(workspace, batch, durability))?;
        Ok::<_, anyhow::Error>((seconds, flushes.load(Ordering::Relaxed) - before))
    };
    let mut rows = [const { Vec::new() }; 6];
    let mut ratios = [const { Vec::new() }; 4];
    let mut counts = [0, 0];
    for pass in 1..=passes {
        let contents: Vec<_> = (0..files).map(|file| content(pass, file)).collect();
        let batch = batch(&names, &contents);
        let bytes: Vec<_> = names.iter().map(String::as_str).zip(contents.iter().map(String::as_bytes)).collect();
        let [mut by_naive, mut by_floor, mut by_aptix] = [0.0; 3];
        let [mut by_journal_floor, mut by_digest_floor, mut by_journal] = [0.0; 3];
        for row in 0..rows.len() {
            match (row + pass) % rows.len() {
                0 => by_naive = time(|| floors::naive(naive, &bytes))?,
                1 => by_floor = time(|| floors::flushed(floor, &bytes))?,
                2 => (by_aptix, counts[0]) = counted(&flushed, &batch, Durability::Flushed)?,
                3 => by_journal_floor = time(|| floors::journal(journal_floor, &bytes, Look::Away))?,
                4 => by_digest_floor = time(|| floors::journal(digest_floor, &bytes, Look::AtAll))?,
                _ => (by_journal, counts[1]) = counted(&journal, &batch, Durability::Journal)?,
            }
        }
        let compared =
            [by_aptix / by_floor, by_journal / by_journal_floor, by_journal / by_digest_floor, by_naive / by_journal];
        ratios.iter_mut().zip(compared).for_each(|(row, ratio)| row.push(ratio));
        let seconds = [by_naive, by_floor, by_aptix, by_journal_floor, by_digest_floor, by_journal];
        rows.iter_mut().zip(seconds).for_each(|(row, seconds)| row.push(seconds));
    }
    for (file, name) in names.iter().enumerate() {
        for ws in [ws, journal_ws] {
            ensure!(std::fs::read_to_string(ws.join(name))? == content(passes, file), "{name} came out wrong");
        }
    }
    let [naive, floor, aptix, journal_floor, digest_floor, aptix_journal] = rows.map(|row| median(row) * 1e3);
    let [flushes, journal_flushes] = counts;
    println!(
        "{files:>4} files: naive {naive:.2} [{}]; flushed: floor {floor:.2} [{}], aptix {aptix:.2} [{flushes}]; journal: floor \
         {journal_floor:.2} [1], with digests {digest_floor:.2} [1], aptix {aptix_journal:.2} [{journal_flushes}]",
        2 * files,
        files + 2,
    );
    let [flushed, journal, digests, naive] = ratios.map(median);
    let mut goals = vec![
        ("flushed / floor", flushed, flushed <= at_most, format!("at most {at_most}")),
        ("journal / floor", journal, journal <= 1.3, "at most 1.3".to_owned()),
        ("journal / with digests", digests, digests <= 1.3, "at most 1.3".to_owned()),
        ("flushes of journal", journal_flushes as f64, journal_flushes == 1, "exactly 1".to_owned()),
    ];
    let faster = match files {
        1 => Some(1.5),
        10 => Some(4.0),
        _ => None,
    };
    goals.extend(faster.map(|least| ("naive / journal", naive, naive >= least, format!("at least {least}"))));
    for (name, measured, holds, goal) in &goals {
        let verdict = if *holds { "ok    " } else { "MISSED" };
        println!("{verdict} {files:>3} files, {name:<22} {measured:>7.2}  ({goal})");
    }
    Ok(goals.iter().filter(|(_, _, holds, _)| !holds).count())
}

fn open(place: &Path, ws: &Path, flushes: &Arc<AtomicUsize>) -> Result<Workspace> {
    let flushes = Arc::clone(flushes);
    let disk = Watched::new(move |operation: Operation<'_>| {
        if let Operation::Sync(_) | Operation::SyncSystem = operation {
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
        edit: FileEdit::WriteFile(WriteFile { content: Content::Text(content.clone()), presence: Presence::Present }),
    });
    Batch { files: files.collect(), ..Batch::default() }
}

fn apply_batch(workspace: &Workspace, batch: &Batch, durability: Durability) -> Result<()> {
    let mut policy = Policy::unstated(Deletions::Allow);
    policy.durability = durability;
    let order = Order { policy: &policy, origin: &Origin::default(), diff_bytes: 0, mode: Mode::Commit };
    match apply(workspace, batch, order, &mut |_| Decision::Apply) {
        Ok(_) => Ok(()),
        Err(refusal) => bail!("the batch is refused: {:?}", refusal.failures),
    }
}

/// Wall seconds.
fn time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}

fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}
