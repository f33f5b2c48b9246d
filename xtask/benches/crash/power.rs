//! Power cuts, on a file system of its own: the writer is stopped, the file system shut down, and mounted again.
//!
//! What was not flushed is lost then, in the journal of the file system as well. What was acknowledged must be there.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aptix_client::workspace::disk::Disk;

use crate::course::{Course, Kind, lay_out};
use crate::disk::{Operation, Verdict, Watched};
use crate::seam::open;
use crate::tree::{Entry, Tree};
use crate::volume::Volume;
use crate::{Ending, Job, tree};

/// What a writer is told: it brings a workspace from generation to generation until it is stopped.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Writer {
    place: std::path::PathBuf,
    generation: usize,
    files: usize,
    /// How often the system was started so far.
    boot: usize,
    /// Flush nothing.
    #[arg(long)]
    unflushed: bool,
}

fn course(files: usize) -> Course {
    // As long as a file of source code.
    Course::new(files, &Kind::ALL).of_lines(200)
}

/// The disk of a system that was started so often.
fn disk(boot: usize, unflushed: bool) -> Box<dyn Disk> {
    let watch = move |operation: Operation<'_>| match operation {
        Operation::Sync if unflushed => Verdict::Skip,
        _ => Verdict::Pass,
    };
    Box::new(Watched::new(watch).booted(boot))
}

/// Acknowledges each generation by a line.
pub(crate) fn write(told: &Writer) -> Result<()> {
    let course = course(told.files);
    let workspace = open(&told.place, disk(told.boot, told.unflushed))?;
    for generation in told.generation.. {
        course.advance(&workspace, generation, None)?;
        println!("{}", generation + 1);
    }
    Ok(())
}

/// A writer, and what it has acknowledged.
struct Running {
    process: Child,
    acknowledged: mpsc::Receiver<usize>,
}

impl Running {
    fn start(told: &Writer) -> Result<Self> {
        let mut command = Command::new(std::env::current_exe()?);
        command.arg("writer").arg(&told.place);
        command.args([told.generation, told.files, told.boot].map(|number| number.to_string()));
        command.args(told.unflushed.then_some("--unflushed"));
        let mut process = command.stdin(Stdio::null()).stdout(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stdout.take().context("the writer has an output")?).lines();
        // Room for more than a writer can acknowledge before it is stopped.
        let (sender, acknowledged) = mpsc::sync_channel(1 << 16);
        std::thread::spawn(move || {
            let generations = lines.map_while(|line| line.ok()?.parse::<usize>().ok());
            let _ = generations.into_iter().try_for_each(|generation| sender.send(generation));
        });
        Ok(Self { process, acknowledged })
    }

    /// Stops it for good, as it is, and tells the last generation that it has acknowledged.
    fn stop(mut self, cut: impl FnOnce() -> Result<()>) -> Result<Option<usize>> {
        signal("-STOP", &self.process)?;
        let done = cut();
        // A process that is stopped takes no signal but this one.
        self.process.kill()?;
        self.process.wait()?;
        done?;
        Ok(self.acknowledged.iter().last())
    }
}

fn signal(name: &str, process: &Child) -> Result<()> {
    let sent = Command::new("kill").args([name, &process.id().to_string()]).status()?;
    ensure!(sent.success(), "cannot send {name} to the writer");
    Ok(())
}

/// What lasts: a power cut may leave files that were staged and never came to be more, and empty directories.
fn lasting(tree: Tree) -> (Tree, usize) {
    let before = tree.len();
    let files: Tree = tree
        .into_iter()
        .filter(|(name, entry)| !(name.ends_with(".aptix-tmp") || (*entry == Entry::Dir && name.contains("/new"))))
        .collect();
    let left = before - files.len();
    (files, left)
}

/// One power cut: tells the generation that the workspace is in afterwards.
fn cut(volume: &mut Volume, told: &Writer, wait: usize, pause: Duration) -> Result<usize> {
    let running = Running::start(told)?;
    let mut acknowledged = told.generation;
    for _ in 0..wait {
        match running.acknowledged.recv_timeout(Duration::from_secs(60)) {
            Ok(generation) => acknowledged = generation,
            Err(error) => bail!("the writer acknowledges nothing more after generation {acknowledged}: {error}"),
        }
    }
    std::thread::sleep(pause);
    acknowledged = running.stop(|| volume.shut_down())?.unwrap_or(acknowledged);
    volume.mount_again()?;
    let course = course(told.files);
    drop(open(&told.place, disk(told.boot + 1, false)).context("nobody can open the workspace again")?);
    let (found, _) = lasting(tree::read(&told.place.join("ws"))?);
    let expected = |generation| lasting(course.tree(generation)).0;
    let generation = (acknowledged..=acknowledged + 1).find(|generation| expected(*generation) == found);
    match generation {
        Some(generation) => Ok(generation),
        None => {
            let told = course.generation(&found, acknowledged).err().map(|error| error.to_string());
            bail!("generation {acknowledged} was acknowledged: {}", told.unwrap_or_default())
        }
    }
}

fn cuts(job: &mut Job, volume: &mut Volume, files: usize, count: usize, unflushed: bool) -> Result<usize> {
    let place = volume.path().join(format!("{files}{}", if unflushed { "-unflushed" } else { "" }));
    lay_out(&place.join("ws"), &course(files).tree(0))?;
    lay_out(&place.join("state"), &Tree::new())?;
    sync(&place)?;
    let mut generation = 0;
    for boot in 0..count {
        let told = Writer { place: place.clone(), generation, files, boot, unflushed };
        let (wait, pause) = (1 + job.random.below(4), Duration::from_micros(job.random.below(20_000) as u64));
        let what = || format!("cut {boot} of a batch of {files} files, in generation {generation}");
        generation = cut(volume, &told, wait, pause).with_context(what)?;
    }
    Ok(generation)
}

/// Makes everything durable that is on the file system of a path.
fn sync(path: &Path) -> Result<()> {
    let done = Command::new("sync").arg("-f").arg(path).status()?;
    ensure!(done.success(), "cannot sync {}", path.display());
    Ok(())
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let mut volume = match Volume::make() {
        Ok(volume) => volume,
        Err(why) => return Ok(Ending::Skipped(format!("{why:#}"))),
    };
    let count = if job.long { 100 } else { 8 };
    let mut generations = 0;
    for files in [1, 10, 100] {
        generations += cuts(job, &mut volume, files, count, false)?;
    }
    let Err(caught) = cuts(job, &mut volume, 10, 60, true) else {
        bail!("the control was not caught: 60 power cuts while nothing was flushed lost nothing");
    };
    let caught = caught.to_string();
    Ok(Ending::Held(format!(
        "{} cuts of ext4 while batches of 1, 10 and 100 files came, {generations} batches; control: without flushes \
         caught at {caught}",
        3 * count
    )))
}
