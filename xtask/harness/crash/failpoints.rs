//! Stops at each disk operation in turn: nothing works any more after it, in the commit or in its recovery.
//!
//! Either the process dies then, or the power is cut and takes with it whatever was not flushed.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::commit::commit_error::CommitError;
use aptix_client::workspace::fs::disk::Disk;
use aptix_client::workspace::keep::outbox;
use aptix_client::workspace::open::OpenError;
use aptix_client::workspace::roots::root::RootSpec;
use aptix_client::workspace::roots::workspace::Workspace;
use aptix_client::workspace::transaction::{CommitOptions, Receipt};
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::disk::{Operation, Verdict, Watched};
use crate::flushed::Flushed;
use crate::job::{Ending, Job};
use crate::program;
use crate::random::Random;
use crate::sequence::Sequence;
use crate::tree::{self, lay_out};
use crate::workers;

/// Which batch the receipts are of.
const BATCH: &str = "0190b3a0-0000-7000-8000-000000000001";

/// What stops.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Death {
    /// The process.
    Process,
    /// The whole system.
    System,
}

/// One crash.
#[derive(Clone, Debug)]
struct Crash<'a> {
    sequence: &'a Sequence,
    generation: usize,
    /// How many batches come, one after the other.
    batches: usize,
    death: Death,
    /// After how many operations.
    last: usize,
    /// After how many operations two attempts to recover stop as well.
    again: Option<usize>,
    control: Control,
}

/// What a control takes away.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Control {
    Nothing,
    /// The record of the commit.
    Record,
    /// Every flush.
    Flushes,
}

/// A disk that stops after so many operations, and the count of them. What is not flushed outlives a dead process.
pub(crate) fn stopping(last: usize) -> (Box<dyn Disk>, Arc<AtomicUsize>) {
    let (disk, count) = noting(last, |_| ());
    (Box::new(disk), count)
}

/// As [`stopping`]; calls `note` for every operation that happens.
fn noting(
    last: usize,
    note: impl Fn(Operation<'_>) + Send + Sync + 'static,
) -> (Watched<impl Fn(Operation<'_>) -> Verdict + Send + Sync + 'static>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let watch = move |operation: Operation<'_>| {
        if counted.fetch_add(1, Ordering::SeqCst) >= last {
            return Verdict::Fail(Errno::IO);
        }
        note(operation);
        match operation {
            Operation::Sync(_) => Verdict::Skip,
            _ => Verdict::Pass,
        }
    };
    (Watched::new(watch), count)
}

/// The workspace at a place: its files are in `ws`, its state in `state`.
pub(crate) fn open(place: &Path, disk: Box<dyn Disk>) -> Result<Workspace, OpenError> {
    open_in(&place.join("ws"), &place.join("state"), disk)
}

/// Opens the workspace at a place once, which recovers it.
pub(crate) fn recover(place: &Path) -> Result<()> {
    open(place, stopping(usize::MAX).0).map(drop).context("the workspace cannot be opened again")
}

/// The workspace whose files and state are in these directories.
pub(crate) fn open_in(ws: &Path, state: &Path, disk: Box<dyn Disk>) -> Result<Workspace, OpenError> {
    let root = RootSpec { name: None, dir: ws.to_owned() };
    Workspace::open(&[root], state, disk)
}

/// A place on a machine that can lose its power.
struct Machine<'a> {
    place: &'a Path,
    flushed: Arc<Flushed>,
    death: Death,
    control: Control,
    boots: usize,
}

impl Machine<'_> {
    fn disk(&self, last: usize) -> (Box<dyn Disk>, Arc<AtomicUsize>) {
        let (flushed, control) = (Arc::clone(&self.flushed), self.control);
        let note = move |operation: Operation<'_>| match operation {
            Operation::Sync(file) if control != Control::Flushes => flushed.note(file),
            _ => {}
        };
        let (disk, count) = noting(last, note);
        (Box::new(disk.booted(self.boots)), count)
    }

    fn die(&mut self) -> Result<()> {
        match self.death {
            Death::Process => Ok(()),
            Death::System => {
                self.boots += 1;
                self.flushed.cut(self.place)
            }
        }
    }
}

impl<'a> Crash<'a> {
    /// Batches that nothing happens to.
    const fn calm(sequence: &'a Sequence, generation: usize, batches: usize) -> Self {
        let (death, last, again, control) = (Death::Process, usize::MAX, None, Control::Nothing);
        Self { sequence, generation, batches, death, last, again, control }
    }

    /// How many operations they take.
    fn operations(&self) -> Result<usize> {
        let place = program::place()?;
        lay_out(&place.path().join("ws"), &self.sequence.tree(self.generation))?;
        let (disk, count) = stopping(usize::MAX);
        self.proceed(&open(place.path(), disk)?, self.receipt()?.as_ref()).1?;
        Ok(count.load(Ordering::SeqCst))
    }

    /// A single batch in an odd generation owes a report.
    fn receipt(&self) -> Result<Option<Receipt>> {
        let owed = self.batches == 1 && self.generation % 2 == 1;
        owed.then(|| Ok(Receipt { batch: BATCH.parse()?, bytes: b"what was done".to_vec() })).transpose()
    }

    /// Applies the batches until one fails; returns which generation was reached.
    fn proceed(&self, workspace: &Workspace, receipt: Option<&Receipt>) -> (usize, Result<()>) {
        for generation in self.generation..self.generation + self.batches {
            let terms = CommitOptions { receipt, ..CommitOptions::default() };
            if let Err(error) = self.sequence.advance(workspace, generation, terms) {
                return (generation, Err(error));
            }
        }
        (self.generation + self.batches, Ok(()))
    }

    /// Crashes, recovers and looks; returns how many operations the recovery took.
    fn run(&self) -> Result<usize> {
        self.attempt().with_context(|| format!("{self:?}"))
    }

    fn attempt(&self) -> Result<usize> {
        let (place, generation) = (program::place()?, self.generation);
        let (ws, state) = (place.path().join("ws"), place.path().join("state"));
        lay_out(&ws, &self.sequence.tree(generation))?;
        let flushed = Arc::new(Flushed::default());
        flushed.note_all(place.path())?;
        let mut machine = Machine { place: place.path(), flushed, death: self.death, control: self.control, boots: 0 };
        let receipt = self.receipt()?;
        let (reached, outcome) = match open(place.path(), machine.disk(self.last).0) {
            Ok(workspace) => self.proceed(&workspace, receipt.as_ref()),
            Err(error) => (generation, Err(error.into())),
        };
        // A batch that succeeded is applied; one that was cut short may have either outcome.
        let (old, new) = if outcome.is_ok() { (reached - 1, reached) } else { (reached, reached + 1) };
        machine.die()?;
        if self.control == Control::Record && state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        if let Some(again) = self.again {
            for _ in 0..2 {
                drop(open(place.path(), machine.disk(again).0));
                machine.die()?;
            }
        }
        let (disk, operations) = machine.disk(usize::MAX);
        let workspace = open(place.path(), disk)?;
        let operations = operations.load(Ordering::SeqCst);
        let found = tree::read(&ws)?;
        let is_new = match self.death {
            Death::Process => self.sequence.is_new(&found, old, new)?,
            // Without its record, recovery does not know the directories that the batch made.
            Death::System => self.sequence.is_new_except_dirs(&found, old, new)?,
        };
        let pending = outbox::waiting(&workspace)?;
        ensure!(
            pending.is_empty() != (is_new && receipt.is_some()),
            "new: {is_new}, but these reports wait: {pending:?}"
        );
        for batch in pending {
            outbox::acknowledge(&workspace, batch, None)?;
        }
        tree::check_state(&state)?;
        check_outcome(is_new, &outcome)?;
        Ok(operations)
    }
}

/// How many operations a batch takes that is not stopped.
pub(crate) fn operations(sequence: &Sequence, generation: usize) -> Result<usize> {
    Crash::calm(sequence, generation, 1).operations()
}

/// How many crashes of a batch of more than three files.
const SAMPLED: usize = 200;

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let (single, triple, many) = Sequence::all();
    // Longer than what a disk writes at once.
    let long = triple[0].clone().of_lines(200);
    let mut cases = Vec::new();
    let alone = single.iter().chain(&triple).chain([&long]).chain(&many);
    let alone = alone.flat_map(|sequence| [0, 1].map(|generation| (sequence, generation, 1)));
    for (sequence, generation, batches) in alone.chain([(&long, 0, 3), (&triple[1], 1, 3)]) {
        let calm = Crash::calm(sequence, generation, batches);
        let count = calm.operations()? + 1;
        for death in [Death::Process, Death::System] {
            let enough = match (sequence.files(), batches) {
                (1 | 3, 1) => count,
                (1 | 3, _) => SAMPLED / 2,
                _ => SAMPLED / 4,
            };
            for last in job.random.sample(enough, count) {
                cases.push((Crash { death, last, ..calm.clone() }, job.random.below(1 << 30) as u64));
            }
        }
    }
    let (crashes, recoveries) = (AtomicUsize::new(0), AtomicUsize::new(0));
    workers::each(&cases, |_, (crash, seed)| {
        let takes = crash.run()?;
        crashes.fetch_add(1, Ordering::Relaxed);
        let agains = match crash.sequence.files() {
            1 | 3 if job.long => takes,
            1 | 3 => 2,
            _ => 1,
        };
        for again in Random::new(*seed).sample(agains, takes) {
            Crash { again: Some(again), ..crash.clone() }.run()?;
            recoveries.fetch_add(1, Ordering::Relaxed);
        }
        Ok(())
    })?;
    let [sequence, ..] = &triple;
    let calm = Crash::calm(sequence, 0, 1);
    let count = calm.operations()? + 1;
    let controls = [(Death::Process, Control::Record), (Death::System, Control::Flushes)];
    let mut caught = Vec::new();
    for (death, control) in controls {
        let is_caught = |last: &usize| Crash { death, last: *last, control, ..calm.clone() }.run().is_err();
        let times = (0..count).filter(is_caught).count();
        ensure!(times > 0, "the control was not caught: {control:?} taken away, every tree is whole");
        caught.push(format!("{times} without {control:?}"));
    }
    Ok(Ending::Held(format!(
        "{} crashes of batches of 1, 3, 10 and 100 files and {} of recoveries; controls, of {count}: caught {}",
        crashes.into_inner(),
        recoveries.into_inner(),
        caught.join(", ").to_lowercase()
    )))
}

/// Fails when the tree contradicts the outcome of the batch: a refused batch is not in the tree, unless its outcome is
/// undecided.
pub(crate) fn check_outcome(is_new: bool, outcome: &Result<()>) -> Result<()> {
    match outcome {
        Ok(()) => ensure!(is_new, "the batch succeeded and is not in the tree"),
        Err(error) => {
            let reason = error.downcast_ref::<CommitError>().map(|error| error.failure().reason);
            let is_undecided = reason == Some(Reason::NeedsOperator);
            ensure!(!is_new || is_undecided, "the batch failed and is in the tree: {error:#}");
        }
    }
    Ok(())
}
