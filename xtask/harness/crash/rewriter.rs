//! Another process that works on the same files, in bursts as fast as it can: every write is a mark of its own, and destroys
//! nothing.
//!
//! It prints the marks in all that it replaces or removes, so that a mark that is nowhere was lost by Aptix.

use std::fs;
use std::io::{BufRead, Write};
use std::os::unix::fs::{OpenOptionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::ChildStdin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use rustix::fs::{CWD, OFlags, RenameFlags};

use crate::random::Random;

/// The files that are fought over.
pub(crate) const FILES: [&str; 5] = ["a.txt", "d/b.txt", "d/c.txt", "d/e/f.txt", "new.txt"];
/// Their directories.
const DIRECTORIES: [&str; 2] = ["d", "d/e"];

/// Arguments of a rewriter.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Rewriter {
    place: PathBuf,
    seed: u64,
}

/// Average number of operations in a burst, without a pause between them.
const BURST: usize = 64;
/// Microseconds between them at most, unless stdin says otherwise.
const PAUSE: usize = 3000;
/// How a mark begins.
const MARK: &str = "theirs ";

/// What the rewriter writes into a file, as one line.
fn mark(number: usize) -> String {
    format!("{MARK}{number};\n")
}

/// Runs one operation after the other until stdin ends; each of its lines is the longest pause from then on, in
/// microseconds. Prints each mark that was put into the root, and those that were in what was taken out of it.
pub(crate) fn rewrite(args: &Rewriter) -> Result<()> {
    let (pause, is_over) = (AtomicUsize::new(PAUSE), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for line in std::io::stdin().lock().lines().map_while(Result::ok) {
                pause.store(line.parse().unwrap_or(PAUSE), Ordering::Relaxed);
            }
            is_over.store(true, Ordering::Relaxed);
        });
        rewrite_until(args, &pause, &is_over)
    })
}

fn rewrite_until(args: &Rewriter, pause: &AtomicUsize, is_over: &AtomicBool) -> Result<()> {
    let mut random = Random::new(args.seed);
    let mut out = std::io::stdout().lock();
    let (ws, own) = (args.place.join("ws"), args.place.join("theirs"));
    for number in 0.. {
        if is_over.load(Ordering::Relaxed) {
            break;
        }
        let file = ws.join(FILES.get(random.below(FILES.len())).copied().unwrap_or_default());
        let directory = ws.join(DIRECTORIES.get(random.below(DIRECTORIES.len())).copied().unwrap_or_default());
        let away = ws.join(format!("away{number}"));
        // Another change may prevent any of these: then it is left out.
        let done = match random.below(500) {
            0..250 => save(&own, &file, number).map(|()| Some("saved")),
            250..350 => append(&file, number).map(|()| Some("appended")),
            350..400 => put_away(&own, &file).map(|()| None),
            400..420 => fs::hard_link(&file, &away).map(|()| None),
            420..440 => replace_by_link(&own, &file, Path::new("../outside/secret.txt")).map(|()| None),
            440..450 => {
                // The directory leads out for a moment, and is itself again.
                let (outside, moment) = (args.place.join("outside"), random.below(300));
                let swapped = replace_by_link(&away, &directory, &outside).and_then(|()| {
                    let due = Instant::now() + Duration::from_micros(moment as u64);
                    while Instant::now() < due {}
                    exchange(&away, &directory)
                });
                swapped.and_then(|()| fs::remove_file(&away)).map(|()| None)
            }
            450 => fs::rename(&directory, &away).map(|()| None),
            _ => fs::create_dir_all(ws.join("d/e")).map(|()| None),
        };
        if let Ok(Some(how)) = done {
            writeln!(out, "{how} {number}")?;
        }
        // What was taken out is printed, and not kept.
        let taken = fs::symlink_metadata(&own).is_ok_and(|metadata| metadata.is_file());
        if taken && let Ok(text) = fs::read_to_string(&own) {
            writeln!(out, "taken {}", marks(&text).map(|number| format!("{number} ")).collect::<String>())?;
        }
        let _ = fs::remove_file(&own).or_else(|_| fs::remove_dir(&own));
        // Without a pause no batch would be published.
        if random.below(BURST) == 0 {
            let due = Instant::now() + Duration::from_micros(random.below(pause.load(Ordering::Relaxed) + 1) as u64);
            while Instant::now() < due {
                std::thread::yield_now();
            }
        }
    }
    Ok(())
}

/// How long a rewriter pauses: so long that most batches are applied and many are not, however fast this machine is.
pub(crate) struct Pace {
    stdin: ChildStdin,
    pause: f64,
}

impl Pace {
    /// Paces the rewriter with this input.
    pub(crate) fn new(stdin: ChildStdin) -> Self {
        Self { stdin, pause: PAUSE as f64 }
    }

    /// Lets the rewriter come oftener after a batch that was applied, and seldomer after one that was refused. These
    /// factors balance when two of three are applied.
    pub(crate) fn follow(&mut self, is_applied: bool) -> Result<()> {
        self.pause = (self.pause * if is_applied { 0.94 } else { 1.13 }).clamp(1.0, 1e6);
        Ok(writeln!(self.stdin, "{:.0}", self.pause)?)
    }
}

/// The marks in a text.
pub(crate) fn marks(text: &str) -> impl Iterator<Item = usize> {
    text.split(MARK).skip(1).filter_map(|rest| rest.split(';').next()?.parse().ok())
}

/// Saves as editors do; what was there is in the own file then.
fn save(own: &Path, file: &Path, number: usize) -> std::io::Result<()> {
    fs::write(own, mark(number))?;
    let saved = exchange(own, file).or_else(|_| put_away(file, own));
    // What could not be saved is no mark that was taken out.
    saved.inspect_err(|_| drop(fs::remove_file(own)))
}

/// Writes at the end of the file that is there, whatever name it has by then.
fn append(file: &Path, number: usize) -> std::io::Result<()> {
    let no_link = i32::try_from(OFlags::NOFOLLOW.bits()).unwrap_or_default();
    let mut open = fs::File::options().append(true).custom_flags(no_link).open(file)?;
    open.write_all(mark(number).as_bytes())
}

/// Moves to where nothing is.
fn put_away(to: &Path, from: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, from, CWD, to, RenameFlags::NOREPLACE)?)
}

fn replace_by_link(own: &Path, file: &Path, to: &Path) -> std::io::Result<()> {
    symlink(to, own)?;
    exchange(own, file).inspect_err(|_| drop(fs::remove_file(own)))
}

fn exchange(one: &Path, other: &Path) -> std::io::Result<()> {
    Ok(rustix::fs::renameat_with(CWD, one, CWD, other, RenameFlags::EXCHANGE)?)
}
