//! Stops at each disk operation in turn: nothing works any more after it, in the commit or in its recovery.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::disk::Disk;
use aptix_client::workspace::transaction::{CommitError, Receipt};
use aptix_client::workspace::{OpenError, Workspace, outbox};
use aptix_model::reason::Reason;
use rustix::io::Errno;

use crate::course::{self, Course, Kind, lay_out};
use crate::disk::{Operation, Verdict, Watched};
use crate::{Ending, Job, tree};

/// Which batch the receipts are of.
const BATCH: &str = "0190b3a0-0000-7000-8000-000000000001";

/// One crash.
struct Crash<'a> {
    course: &'a Course,
    generation: usize,
    /// After how many operations.
    last: usize,
    /// After how many operations two attempts to recover stop as well.
    again: Option<usize>,
    control: Control,
}

/// What a control takes away.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Control {
    Nothing,
    /// The record of the commit.
    Record,
}

/// A disk that stops after so many operations, and the count of them. What is not flushed outlives a dead process.
pub(crate) fn stopping(last: usize) -> (Box<dyn Disk>, Arc<AtomicUsize>) {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let watch = move |operation: Operation<'_>| match (counted.fetch_add(1, Ordering::SeqCst) < last, operation) {
        (false, _) => Verdict::Fail(Errno::IO),
        (true, Operation::Sync) => Verdict::Skip,
        (true, _) => Verdict::Pass,
    };
    (Box::new(Watched::new(watch)), count)
}

/// The workspace at a place: its files are in `ws`, its state in `state`.
pub(crate) fn open(place: &Path, disk: Box<dyn Disk>) -> Result<Workspace, OpenError> {
    let root = place.join("ws").to_string_lossy().parse().map_err(|_| OpenError::NoRoot)?;
    Workspace::open(&[root], &place.join("state"), disk)
}

impl Crash<'_> {
    /// Crashes, recovers and looks; tells how many operations the recovery took.
    fn run(&self) -> Result<usize> {
        self.attempt().with_context(|| {
            let Self { course, generation, last, again, .. } = self;
            let files = course.files();
            format!(
                "{files} files of generation {generation}, stopped after {last}, recovery after {again:?}: {course:?}"
            )
        })
    }

    fn attempt(&self) -> Result<usize> {
        let (place, generation) = (course::place()?, self.generation);
        let (ws, state) = (place.path().join("ws"), place.path().join("state"));
        lay_out(&ws, &self.course.tree(generation))?;
        // Every second batch owes somebody a report.
        let receipt = (generation % 2 == 1).then(receipt).transpose()?;
        let outcome = match open(place.path(), stopping(self.last).0) {
            Ok(workspace) => self.course.advance(&workspace, generation, receipt.as_ref()),
            Err(error) => Err(error.into()),
        };
        if self.control == Control::Record && state.exists() {
            std::fs::remove_dir_all(&state)?;
        }
        if let Some(again) = self.again {
            for _ in 0..2 {
                drop(open(place.path(), stopping(again).0));
            }
        }
        let (disk, operations) = stopping(usize::MAX);
        let workspace = open(place.path(), disk)?;
        let operations = operations.load(Ordering::SeqCst);
        let is_new = self.course.generation(&tree::read(&ws)?, generation)? > generation;
        let pending = outbox::waiting(&workspace)?;
        ensure!(
            pending.is_empty() != (is_new && receipt.is_some()),
            "new: {is_new}, but these reports wait: {pending:?}"
        );
        for batch in pending {
            outbox::acknowledge(&workspace, batch)?;
        }
        tree::check_state(&state)?;
        match outcome {
            Ok(()) => ensure!(is_new, "the batch was said to be applied"),
            Err(error) => {
                let undecided = error.downcast_ref::<CommitError>().map(|error| error.failure().reason);
                ensure!(
                    !is_new || undecided == Some(Reason::NeedsOperator),
                    "the batch was said to be refused: {error}"
                );
            }
        }
        Ok(operations)
    }
}

fn receipt() -> Result<Receipt> {
    Ok(Receipt { batch: BATCH.parse()?, bytes: b"what was done".to_vec() })
}

/// How many operations a batch takes.
fn operations(course: &Course, generation: usize) -> Result<usize> {
    let place = course::place()?;
    lay_out(&place.path().join("ws"), &course.tree(generation))?;
    let (disk, count) = stopping(usize::MAX);
    let receipt = (generation % 2 == 1).then(receipt).transpose()?;
    course.advance(&open(place.path(), disk)?, generation, receipt.as_ref())?;
    Ok(count.load(Ordering::SeqCst))
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let [edit, make, moved, remove, run] = Kind::ALL;
    let single = Kind::ALL.map(|kind| Course::new(1, &[kind]));
    let triple = [[edit, make, moved], [moved, remove, run]].map(|kinds| Course::new(3, &kinds));
    let many = [10, 100].map(|files| Course::new(files, &Kind::ALL));
    let (mut crashes, mut recoveries) = (0, 0);
    for course in single.iter().chain(&triple).chain(&many) {
        for generation in 0..2 {
            let count = operations(course, generation)? + 1;
            let enough = match course.files() {
                1 | 3 => count,
                // A hundred files take long to lay out.
                100 if !job.long => 50,
                _ => 200,
            };
            let stops = job.random.sample(enough, count);
            for last in stops {
                let crash = |again| Crash { course, generation, last, again, control: Control::Nothing };
                let takes = crash(None).run()?;
                crashes += 1;
                let agains = match course.files() {
                    1 | 3 if job.long => takes,
                    1 | 3 => 2,
                    _ => 1,
                };
                for again in job.random.sample(agains, takes) {
                    crash(Some(again)).run()?;
                    recoveries += 1;
                }
            }
        }
    }
    let [course, _] = &triple;
    let count = operations(course, 0)? + 1;
    let control = |last| Crash { course, generation: 0, last, again: None, control: Control::Record }.run().is_err();
    let caught = (0..count).filter(|last| control(*last)).count();
    ensure!(caught > 0, "the control was not caught: a commit that forgets its record left no tree torn");
    Ok(Ending::Held(format!(
        "{crashes} crashes of batches of 1, 3, 10 and 100 files and {recoveries} of recoveries; control: {caught} of \
         {count} caught without a record"
    )))
}
