//! Power cuts, on a file system of its own: the writer is stopped, the file system shut down, and mounted again.
//!
//! What was not flushed is lost then, in the journal of the file system as well. What was acknowledged must be there, once
//! the next command has run: to it and to the writer the system was started anew, because the boot id file differs.

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc;
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use aptix_client::workspace::fs::disk::{Disk, SystemDisk};
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::transaction::{CommitOptions, Receipt};
use aptix_model::id::{BatchId, Uuid};

use crate::commands::{LOOK, prepare, printed};
use crate::disk::{Operation, Verdict, Watched};
use crate::failpoints::open;
use crate::job::{Ending, Job};
use crate::moment::pass;
use crate::program::{private, program};
use crate::sequence::{Kind, Sequence};
use crate::tree::{self, Tree, lay_out};
use crate::volume::{self, Volume};

/// Arguments of a writer, which advances a workspace from generation to generation until it is stopped.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Writer {
    place: std::path::PathBuf,
    generation: usize,
    files: usize,
    /// Flush nothing.
    #[arg(long)]
    unflushed: bool,
}

fn sequence(files: usize) -> Sequence {
    // As long as a file of source code.
    Sequence::new(files, &Kind::ALL).of_lines(200)
}

fn disk(unflushed: bool) -> Box<dyn Disk> {
    if !unflushed {
        return Box::new(SystemDisk);
    }
    Box::new(Watched::new(|operation: Operation<'_>| match operation {
        Operation::Sync(_) => Verdict::Skip,
        _ => Verdict::Pass,
    }))
}

/// The batch that leads on from a generation.
fn batch(generation: usize) -> BatchId {
    BatchId(Uuid::from_u128(1 + generation as u128))
}

/// Acknowledges each generation by a line; its report was acknowledged once the next one is.
pub(crate) fn write(args: &Writer) -> Result<()> {
    let sequence = sequence(args.files);
    let workspace = open(&args.place, disk(args.unflushed))?;
    for generation in args.generation.. {
        let receipt = Receipt { batch: batch(generation), bytes: format!("report {generation}").into_bytes() };
        sequence.advance(
            &workspace,
            generation,
            CommitOptions { receipt: Some(&receipt), ..CommitOptions::default() },
        )?;
        if let Some(before) = generation.checked_sub(1) {
            outbox::acknowledge(&workspace, batch(before), None)?;
        }
        println!("{}", generation + 1);
    }
    Ok(())
}

/// Shows one process another boot id, by a mount of its own.
const AS_BOOTED: &str = r#"mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@""#;

/// A program on the system that was started so often.
fn on_boot(place: &Path, boot: usize, program: &Path) -> Result<Command> {
    let said = place.join("boot");
    std::fs::write(&said, format!("the start number {boot}\n"))?;
    let mut command = Command::new("unshare");
    command.args(["--mount", "--propagation", "private", "sh", "-c", AS_BOOTED]).arg(said).arg(program);
    Ok(command)
}

/// A writer, and what it has acknowledged.
struct Running {
    process: Child,
    acknowledged: mpsc::Receiver<usize>,
}

impl Running {
    fn start(args: &Writer, elsewhere: &Path, boot: usize) -> Result<Self> {
        let mut command = on_boot(elsewhere, boot, &std::env::current_exe()?)?;
        command.arg("writer").arg(&args.place);
        command.args([args.generation, args.files].map(|number| number.to_string()));
        command.args(args.unflushed.then_some("--unflushed"));
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

    /// Stops it for good, as it is, and returns the last generation that it has acknowledged.
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

/// What a control takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    Nothing,
    /// Every flush of the writer.
    Flushes,
}

/// A workspace on a volume.
struct Scene<'a> {
    volume: &'a mut Volume,
    /// Where nothing is lost.
    elsewhere: &'a Path,
    place: std::path::PathBuf,
    sequence: Sequence,
    control: Control,
    boot: usize,
    generation: usize,
}

impl Scene<'_> {
    fn lay_out(&self) -> Result<()> {
        lay_out(&self.place.join("ws"), &self.sequence.tree(0))?;
        lay_out(&self.place.join("state"), &Tree::new())?;
        prepare(&self.place, &self.sequence, 0)?;
        let done = Command::new("sync").arg("-f").arg(&self.place).status()?;
        ensure!(done.success(), "cannot sync {}", self.place.display());
        Ok(())
    }

    /// One power cut, while the writer is so far on its way.
    fn cut(&mut self, wait: usize, pause: Duration) -> Result<()> {
        let args = Writer {
            place: self.place.clone(),
            generation: self.generation,
            files: self.sequence.files(),
            unflushed: self.control == Control::Flushes,
        };
        let running = Running::start(&args, self.elsewhere, self.boot)?;
        let mut acknowledged = self.generation;
        for _ in 0..wait {
            match running.acknowledged.recv_timeout(Duration::from_secs(60)) {
                Ok(generation) => acknowledged = generation,
                Err(error) => bail!("the writer acknowledges nothing more after generation {acknowledged}: {error}"),
            }
        }
        pass(pause);
        acknowledged = running.stop(|| self.volume.shut_down())?.unwrap_or(acknowledged);
        self.volume.mount_again()?;
        self.boot += 1;
        self.recover()?;
        let found = tree::read(&self.place.join("ws"))?;
        let is_new = self.sequence.is_new_except_dirs(&found, acknowledged, acknowledged + 1);
        let is_new = is_new.with_context(|| format!("generation {acknowledged} was acknowledged"))?;
        self.generation = acknowledged + usize::from(is_new);
        self.check_outbox()?;
        tree::check_state(&self.place.join("state"))?;
        Ok(())
    }

    /// Every batch that was carried out is owed, or known to have ended.
    fn check_outbox(&self) -> Result<()> {
        let workspace = open(&self.place, Box::new(SystemDisk))?;
        let waiting = outbox::waiting(&workspace)?;
        for generation in self.generation.saturating_sub(64)..self.generation {
            let is_known = waiting.contains(&batch(generation)) || outbox::is_done(&workspace, batch(generation))?;
            ensure!(is_known, "the report of the batch that led on from generation {generation} is lost");
        }
        ensure!(!waiting.contains(&batch(self.generation)), "a batch that was not carried out has a report");
        waiting.into_iter().try_for_each(|batch| outbox::acknowledge(&workspace, batch, None))?;
        Ok(())
    }

    /// The next command, whatever it is.
    fn recover(&self) -> Result<()> {
        let mut command = on_boot(self.elsewhere, self.boot, &program("aptix")?)?;
        private(command.args(LOOK), &self.place);
        let output = command.output()?;
        ensure!(output.status.success(), "the next command fails: {}", printed(&output));
        Ok(())
    }

    fn cuts(&mut self, job: &mut Job, count: usize) -> Result<()> {
        self.lay_out()?;
        for cut in 0..count {
            let (wait, pause) = (1 + job.random.below(4), Duration::from_micros(job.random.below(20_000) as u64));
            let files = self.sequence.files();
            let what = format!("cut {cut} of a batch of {files} files, in generation {}", self.generation);
            self.cut(wait, pause).with_context(|| what)?;
        }
        Ok(())
    }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let mut volume = match Volume::make() {
        Ok(volume) => volume,
        Err(why) => return Ok(Ending::Skipped(format!("{why:#}"))),
    };
    let elsewhere = tempfile::tempdir()?;
    let mut nothing = on_boot(elsewhere.path(), 0, Path::new("true"))?;
    if let Err(why) = volume::run(&mut nothing) {
        return Ok(Ending::Skipped(format!("a process cannot have mounts of its own here: {why:#}")));
    }
    let count = if job.long { 100 } else { 8 };
    let mut generations = 0;
    let mut scene = |job: &mut Job, files, count, control| {
        let place = volume.path().join(format!("{files}-{control:?}"));
        let (volume, elsewhere, sequence) = (&mut volume, elsewhere.path(), sequence(files));
        let mut scene = Scene { volume, elsewhere, place, sequence, control, boot: 0, generation: 0 };
        scene.cuts(job, count).map(|()| scene.generation)
    };
    for files in [1, 10, 100] {
        generations += scene(job, files, count, Control::Nothing)?;
    }
    let Err(error) = scene(job, 10, 60, Control::Flushes) else {
        bail!("the control was not caught: 60 power cuts without a flush lost nothing");
    };
    let caught: Vec<_> = error.chain().take(2).map(ToString::to_string).collect();
    Ok(Ending::Held(format!(
        "{} cuts of ext4 while batches of 1, 10 and 100 files came, {generations} batches; control: without flushes caught at {}",
        3 * count,
        caught.join(": ")
    )))
}
