//! `kill -9` of `aptix apply` and `aptix undo` at random moments. The agent is killed by the end-to-end tests
//! (`xtask/tests/it/crash.rs`), beside its server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::commands::{Action, prepare, printed};
use crate::failpoints::recover;
use crate::job::{Ending, Job};
use crate::moment::pass;
use crate::program::{private, program};
use crate::sequence::Sequence;
use crate::tree::{self, lay_out};

/// A workspace that processes are killed in.
struct Scene<'a> {
    aptix: &'a Path,
    place: &'a Path,
    sequence: &'a Sequence,
    generation: usize,
    /// Whether the newest batch is the one that led to the generation.
    can_undo: bool,
}

/// What came of one killing.
struct Found {
    /// Whether the tree was between old and new before recovery.
    between: bool,
    is_new: bool,
}

impl Scene<'_> {
    fn command(&self, action: Action) -> Command {
        let mut command = Command::new(self.aptix);
        command.args(action.arguments());
        private(&mut command, self.place);
        command
    }

    /// The generation after an action.
    const fn end(&self, action: Action) -> usize {
        match action {
            Action::Apply => self.generation + 1,
            Action::Undo => self.generation - 1,
        }
    }

    fn is_new(&self, action: Action) -> Result<bool> {
        let found = tree::read(&self.place.join("ws"))?;
        self.sequence.is_new(&found, self.generation, self.end(action))
    }

    /// Runs an undo again that was killed: it undoes that batch and no other, however far it had come.
    fn run_again(&self) -> Result<()> {
        let output = self.command(Action::Undo).output()?;
        let printed = printed(&output);
        ensure!(output.status.success(), "an undo that was killed cannot be run again: {printed}");
        ensure!(self.is_new(Action::Undo).context("an undo was run again")?, "the batch is not undone: {printed}");
        Ok(())
    }

    /// Starts an action, kills it after a time, and lets another process recover. A killed undo is then run again.
    fn kill(&mut self, action: Action, after: Duration, forget: &dyn Fn() -> Result<()>) -> Result<Found> {
        prepare(self.place, self.sequence, self.generation)?;
        let answer = self.place.join("answer");
        let stdout = std::fs::File::create(&answer)?;
        let mut process = self.command(action).stdout(stdout).stderr(Stdio::null()).spawn()?;
        pass(after);
        process.kill()?;
        let status = process.wait()?;
        // A complete answer counts, however the process ended.
        let done = status.success() || std::fs::read_to_string(&answer)?.ends_with("}\n");
        let between = self.is_new(action).is_err();
        forget()?;
        recover(self.place)?;
        let is_new = self.is_new(action)?;
        tree::check_state(&self.place.join("state"))?;
        ensure!(!done || is_new, "the batch succeeded and is not in the tree");
        if action == Action::Undo && !done {
            self.run_again()?;
            (self.generation, self.can_undo) = (self.end(action), false);
        } else if is_new {
            (self.generation, self.can_undo) = (self.end(action), action == Action::Apply);
        }
        Ok(Found { between, is_new })
    }

    /// How long an apply takes that is not killed.
    fn span(&mut self) -> Result<Duration> {
        let mut spans = Vec::new();
        for _ in 0..5 {
            prepare(self.place, self.sequence, self.generation)?;
            let begin = Instant::now();
            let output = self.command(Action::Apply).output()?;
            spans.push(begin.elapsed());
            let printed = printed(&output);
            ensure!(output.status.success(), "an apply that is not killed fails: {printed}");
            self.generation += 1;
        }
        spans.sort();
        spans.get(spans.len() / 2).copied().context("there are spans")
    }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let aptix = program("aptix")?;
    let (mut between, mut new, mut undone, mut killed) = (0, 0, 0, 0);
    let mut longest = Duration::ZERO;
    let (single, triple, many) = Sequence::all();
    let sequences: Vec<_> = single.into_iter().chain(triple).chain(many).collect();
    for sequence in &sequences {
        let place = tempfile::tempdir()?;
        lay_out(&place.path().join("ws"), &sequence.tree(0))?;
        let mut scene = Scene { aptix: &aptix, place: place.path(), sequence, generation: 0, can_undo: false };
        let span = scene.span()?;
        longest = longest.max(span);
        for cycle in 0..job.cycles.div_ceil(sequences.len()) {
            let after = span.mul_f64(job.random.below(1200) as f64 / 1000.0);
            let action = if scene.can_undo && job.random.below(3) == 0 { Action::Undo } else { Action::Apply };
            let (files, generation) = (sequence.files(), scene.generation);
            let what =
                || format!("kill {cycle}, after {after:?}, of {action:?} with {files} files, generation {generation}");
            let found = scene.kill(action, after, &|| Ok(())).with_context(what)?;
            between += usize::from(found.between);
            new += usize::from(found.is_new);
            undone += usize::from(found.is_new && action == Action::Undo);
            killed += 1;
        }
    }
    let [.., sequence] = sequences.as_slice() else { anyhow::bail!("there are sequences") };
    let caught = control(job, &aptix, sequence, longest)?;
    Ok(Ending::Held(format!(
        "{killed} killed, {new} of them left the new tree ({undone} by undoing), {between} a mixed one that was recovered; \
         control: caught at kill {caught} without a record",
    )))
}

/// Kills as often as it takes until a tree stays torn whose record is lost.
fn control(job: &mut Job, aptix: &Path, sequence: &Sequence, span: Duration) -> Result<usize> {
    for cycle in 1..=500 {
        let place = tempfile::tempdir()?;
        let place = place.path();
        lay_out(&place.join("ws"), &sequence.tree(0))?;
        let mut scene = Scene { aptix, place, sequence, generation: 0, can_undo: false };
        let state = place.join("state");
        let forget = || if state.exists() { Ok(std::fs::remove_dir_all(&state)?) } else { Ok(()) };
        let after = span.mul_f64(job.random.below(1200) as f64 / 1000.0);
        if scene.kill(Action::Apply, after, &forget).is_err() {
            return Ok(cycle);
        }
    }
    anyhow::bail!("the control was not caught: 500 kills of an apply that forgets its record left no tree torn")
}
