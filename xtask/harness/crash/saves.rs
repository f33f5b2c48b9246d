//! Saves of another process while `aptix apply` and `aptix undo` work on the same files, all of them real processes.
//!
//! Every save is afterwards in place, in a kept copy that a result or `aptix log` names, or it was the base of the edit.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader, Lines, Write};
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Output, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use aptix_client::apply::acting::Acting;
use aptix_client::apply::proposal::Decision;
use aptix_client::apply::{ApplyOptions, Mode, apply};
use aptix_client::policy::Policy;
use aptix_client::policy::caller::Caller;
use aptix_engine::digest::sha256;
use aptix_model::batch::Origin;
use aptix_model::documents;
use rustix::fs::AtFlags;
use serde_json::{Value, json};

use crate::disk::{Operation, Verdict, Watched};
use crate::failpoints::open;
use crate::job::{Ending, Job};
use crate::moment::pass;
use crate::program::{place, private, program};
use crate::random::Random;
use crate::saver::{Style, mark, name};
use crate::{tree, workers};

/// Files that one batch changes.
const FILES: usize = 8;
/// Rounds in one place; then a new one is made.
const ROUNDS: usize = 25;
/// What every file holds before a round.
const FIRST: &str = "first\nlast\n";

/// What a batch does with the files.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Action {
    /// A line is put into each.
    Edit,
    /// Each is replaced as a whole.
    Replace,
    /// Each is removed.
    Delete,
    /// Each gets another name.
    Rename,
    /// A line is taken out of each, by `aptix undo`.
    Undo,
}

const ACTIONS: [Action; 6] =
    [Action::Edit, Action::Replace, Action::Edit, Action::Delete, Action::Rename, Action::Undo];

impl Action {
    /// What `aptix apply` is given; the edit itself for the batch that is undone.
    fn document(self, files: usize, number: usize) -> String {
        let names = (0..files).map(name);
        match self {
            Self::Edit | Self::Undo => {
                let line = json!([{ "find": "first\n", "replace": format!("first\nours {number}\n") }]);
                let patches = names.map(|name| json!({ "path": name, "replacements": line }));
                json!({ "patches": patches.collect::<Vec<_>>() }).to_string()
            }
            Self::Replace => {
                let content = format!("first\nours {number}\nlast\n");
                let files = names.map(|name| json!({ "path": name, "operation": "replace", "content": content }));
                json!({ "files": files.collect::<Vec<_>>() }).to_string()
            }
            Self::Delete => {
                let files = names.map(|name| json!({ "path": name, "operation": "delete" }));
                json!({ "files": files.collect::<Vec<_>>() }).to_string()
            }
            Self::Rename => {
                let files = names.map(|name| {
                    format!("diff --git a/{name} b/to-{name}\nsimilarity index 100%\nrename from {name}\nrename to to-{name}\n")
                });
                files.collect()
            }
        }
    }
}

/// The process under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Program {
    /// `aptix`.
    Real,
    /// This harness, which applies the batch with a disk that removes a displaced file instead of moving it.
    Control,
}

/// Where saves ended.
#[derive(Default, Debug)]
struct Tally {
    applied: usize,
    refused: usize,
    saves: usize,
    in_place: usize,
    kept: usize,
    base: usize,
    lost: Vec<String>,
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.applied += other.applied;
        self.refused += other.refused;
        self.saves += other.saves;
        self.in_place += other.in_place;
        self.kept += other.kept;
        self.base += other.base;
        self.lost.extend(other.lost);
    }
}

/// Arguments of the control: it applies a document as `aptix apply` does, and keeps no displaced file.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct Applier {
    place: PathBuf,
}

/// Applies the document in a place without keeping what it displaces.
pub(crate) fn apply_carelessly(args: &Applier) -> Result<()> {
    let watch = |operation: Operation<'_>| match operation {
        Operation::Rename(dir, from, to_dir) if is_displaced(to_dir.as_raw_fd()) => {
            match rustix::fs::unlinkat(dir, from, AtFlags::empty()) {
                Ok(()) => Verdict::Skip,
                Err(errno) => Verdict::Fail(errno),
            }
        }
        Operation::Sync(_) => Verdict::Skip,
        _ => Verdict::Pass,
    };
    let workspace = open(&args.place, Box::new(Watched::new(watch)))?;
    let document = std::fs::read(args.place.join("document"))?;
    let document = documents::parse(&document, None).map_err(|failures| anyhow::anyhow!("{failures:?}"))?;
    let policy = Policy::unstated(Caller::Shell);
    let options = ApplyOptions {
        policy: &policy,
        origin: &Origin::default(),
        diff_bytes: 0,
        mode: Mode::Commit,
        prepared: None,
        acting: Acting::UNKNOWN,
    };
    let done = apply(&workspace, &document.batch, options, &mut |_| Decision::Apply);
    if done.is_err() {
        std::process::exit(1);
    }
    Ok(())
}

/// Whether a directory is the one that displaced files are moved to.
fn is_displaced(dir: i32) -> bool {
    std::fs::read_link(format!("/proc/self/fd/{dir}")).is_ok_and(|path| path.ends_with("displaced"))
}

/// The process that saves.
struct Saving {
    process: Child,
    commands: ChildStdin,
    says: Lines<BufReader<ChildStdout>>,
}

impl Saving {
    fn start(place: &Path, files: usize, seed: usize) -> Result<Self> {
        let mut process = Command::new(std::env::current_exe()?)
            .arg("saver")
            .args([place.join("ws").as_os_str(), files.to_string().as_ref(), seed.to_string().as_ref()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let commands = process.stdin.take().context("the saver has an input")?;
        let says = BufReader::new(process.stdout.take().context("the saver has an output")?).lines();
        Ok(Self { process, commands, says })
    }

    fn begin(&mut self, round: usize, style: Style, window: Duration, held: Duration) -> Result<()> {
        let [window, held] = [window, held].map(|time| time.as_micros());
        writeln!(self.commands, "{round} {style:?} {window} {held}")?;
        Ok(self.commands.flush()?)
    }

    fn line(&mut self) -> Result<String> {
        Ok(self.says.next().context("the saver has ended")??)
    }

    /// The files that were saved.
    fn saved(&mut self) -> Result<Vec<usize>> {
        let line = self.line()?;
        let numbers = line.strip_prefix("saved").with_context(|| format!("the saver says {line}"))?;
        Ok(numbers.split_whitespace().map(str::parse).collect::<Result<_, _>>()?)
    }

    fn end(self) -> Result<()> {
        let Self { mut process, commands, says } = self;
        drop((commands, says));
        ensure!(process.wait()?.success(), "the saver fails");
        Ok(())
    }
}

/// A workspace that is saved in and edited.
struct Scene {
    place: tempfile::TempDir,
    aptix: PathBuf,
    files: usize,
    /// The names of kept copies that results have named.
    named: BTreeSet<String>,
}

impl Scene {
    fn new(files: usize) -> Result<Self> {
        let scene = Self { place: place()?, aptix: program("aptix")?, files, named: BTreeSet::new() };
        scene.lay_out()?;
        Ok(scene)
    }

    fn ws(&self) -> PathBuf {
        self.place.path().join("ws")
    }

    /// Puts the files back, by rename, and removes everything else.
    fn lay_out(&self) -> Result<()> {
        let ws = self.ws();
        std::fs::create_dir_all(&ws)?;
        let names: BTreeSet<_> = (0..self.files).map(name).collect();
        for entry in std::fs::read_dir(&ws)? {
            let entry = entry?;
            if !names.contains(&*entry.file_name().to_string_lossy()) {
                std::fs::remove_file(entry.path())?;
            }
        }
        let own = self.place.path().join("own");
        for name in names {
            std::fs::write(&own, FIRST)?;
            std::fs::rename(&own, ws.join(name))?;
        }
        Ok(())
    }

    fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.aptix);
        command.args(arguments).args(["--json", "--root", "ws"]);
        private(&mut command, self.place.path());
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        command
    }

    fn spawn(&self, program: Program, action: Action, number: usize) -> Result<Child> {
        std::fs::write(self.place.path().join("document"), action.document(self.files, number))?;
        let mut command = match (program, action) {
            (Program::Real, Action::Undo) => self.command(&["undo", "--yes"]),
            (Program::Real, _) => {
                let mut command = self.command(&["apply", "--yes"]);
                command.arg("document");
                command
            }
            (Program::Control, _) => {
                let mut command = Command::new(std::env::current_exe()?);
                command.arg("applier").arg(self.place.path()).stdout(Stdio::null()).stderr(Stdio::null());
                command
            }
        };
        Ok(command.spawn()?)
    }

    /// Notes what a result says; returns the digests that files had before, if it changed them.
    fn note(&mut self, output: &Output) -> Result<Option<Vec<String>>> {
        let said = String::from_utf8_lossy(&output.stdout);
        let words = said.split(|char: char| char.is_whitespace() || matches!(char, '"' | ',' | ';' | '\\'));
        self.named.extend(words.filter(|word| word.contains(".kept-")).map(str::to_owned));
        match output.status.code() {
            Some(0) => {}
            Some(1 | 3) => return Ok(None),
            _ => bail!("aptix fails: {} {said} {}", output.status, String::from_utf8_lossy(&output.stderr)),
        }
        let result: Value = serde_json::from_str(&said).unwrap_or_default();
        let needs_operator = said.contains("NEEDS_OPERATOR");
        ensure!(!needs_operator, "an operator is needed: {said}");
        let files = result.get("files").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(Some(files.iter().filter_map(|file| Some(file.get("sha256Before")?.as_str()?.to_owned())).collect()))
    }

    /// The displaced writes that the log names.
    fn displaced(&self) -> Result<Vec<PathBuf>> {
        let output = self.command(&["log"]).output()?;
        ensure!(output.status.success(), "aptix log fails: {}", String::from_utf8_lossy(&output.stderr));
        let log: Value = serde_json::from_slice(&output.stdout)?;
        let writes = log.get("displacedWrites").and_then(Value::as_array).cloned().unwrap_or_default();
        Ok(writes.iter().filter_map(|write| Some(write.get("keptAs")?.as_str()?.into())).collect())
    }

    /// Looks for every save of a round; removes the kept copies, as a user would once they have seen them.
    fn look(&self, round: usize, saved: &[usize], bases: &[Vec<String>], tally: &mut Tally) -> Result<()> {
        let displaced = self.displaced()?;
        let mut kept = String::new();
        for path in &displaced {
            let bytes = std::fs::read(path).with_context(|| format!("the log names {}", path.display()))?;
            kept.push_str(&String::from_utf8_lossy(&bytes));
        }
        let mut in_place = String::new();
        for (name, entry) in tree::read(&self.ws())? {
            let tree::Entry::File { bytes, .. } = entry else { continue };
            let text = String::from_utf8_lossy(&bytes);
            if name.contains(".kept-") {
                let is_listed = displaced.iter().any(|path| path.ends_with(&name));
                ensure!(is_listed || self.named.contains(&name), "nothing names the kept copy {name}");
                kept.push_str(&text);
            } else if !name.ends_with(".aptix-tmp") {
                in_place.push_str(&text);
            }
        }
        for file in saved {
            let mark = mark(round, *file);
            let saved = sha256(format!("{FIRST}{mark}").as_bytes()).to_string();
            tally.saves += 1;
            if in_place.contains(&mark) {
                tally.in_place += 1;
            } else if kept.contains(&mark) {
                tally.kept += 1;
            } else if bases.iter().flatten().any(|base| *base == saved) {
                tally.base += 1;
            } else {
                tally.lost.push(format!("{} in round {round}", name(*file)));
            }
        }
        displaced.iter().try_for_each(std::fs::remove_file)?;
        Ok(())
    }
}

/// Some rounds in one place.
#[derive(Clone, Copy, Debug)]
struct Run {
    program: Program,
    style: Style,
    held: Duration,
    rounds: usize,
    seed: usize,
}

/// How long a batch takes without other writes.
fn span(scene: &mut Scene, program: Program) -> Result<Duration> {
    let begin = Instant::now();
    let output = scene.spawn(program, Action::Edit, 0)?.wait_with_output()?;
    ensure!(
        output.status.success(),
        "an apply without other writes fails: {}",
        String::from_utf8_lossy(&output.stdout)
    );
    let span = begin.elapsed();
    scene.lay_out()?;
    Ok(span)
}

fn play(run: &Run) -> Result<Tally> {
    let mut scene = Scene::new(FILES)?;
    let mut tally = Tally::default();
    let mut random = Random::new(run.seed as u64);
    let window = span(&mut scene, run.program)?.mul_f64(1.3);
    let mut saving = Saving::start(scene.place.path(), FILES, random.below(1 << 20))?;
    for round in 0..run.rounds {
        let action = match run.program {
            Program::Real => ACTIONS.get(random.below(ACTIONS.len())).copied().unwrap_or(Action::Edit),
            // It does not print the bases, so that every mark has to be in a file.
            Program::Control => Action::Edit,
        };
        if action == Action::Undo {
            let output = scene.spawn(run.program, Action::Edit, round)?.wait_with_output()?;
            ensure!(output.status.success(), "nothing to undo: {}", String::from_utf8_lossy(&output.stdout));
        }
        saving.begin(round, run.style, window, run.held)?;
        let output = scene.spawn(run.program, action, round)?.wait_with_output()?;
        let saved = saving.saved()?;
        let base = scene.note(&output)?;
        *(if base.is_some() { &mut tally.applied } else { &mut tally.refused }) += 1;
        scene.look(round, &saved, base.as_slice(), &mut tally).with_context(|| format!("{action:?}, {run:?}"))?;
        scene.lay_out()?;
    }
    saving.end()?;
    Ok(tally)
}

/// Plays so many saves of a style, in as many places at a time as there are processors.
fn play_all(job: &mut Job, style: Style, held: Duration, saves: usize) -> Result<Tally> {
    // Some saves come when a batch has just removed their file.
    let rounds = saves.div_ceil(FILES) * 5 / 4;
    let runs: Vec<_> = (0..rounds)
        .step_by(ROUNDS)
        .map(|from| {
            let seed = job.random.below(1 << 30);
            Run { program: Program::Real, style, held, rounds: ROUNDS.min(rounds - from), seed }
        })
        .collect();
    let mut all = Tally::default();
    workers::each(&runs, |_, run| play(run))?.into_iter().for_each(|tally| all.add(tally));
    ensure!(all.lost.is_empty(), "{} of {} saves are lost ({style:?}): {:?}", all.lost.len(), all.saves, all.lost);
    let met = all.kept > 0 || style == Style::Quick;
    ensure!(all.applied > 0 && met, "no save met an apply ({style:?}): {all:?}");
    Ok(all)
}

/// Files that are all opened at first, and written at some time in a span, while batches come and the log is looked at.
fn play_long(job: &mut Job, files: usize, span: Duration) -> Result<Tally> {
    let mut scene = Scene::new(files)?;
    let mut tally = Tally::default();
    let mut saving = Saving::start(scene.place.path(), files, job.random.below(1 << 20))?;
    saving.begin(0, Style::Patient, Duration::ZERO, span)?;
    ensure!(saving.line()? == "open", "the saver does not open the files");
    let begin = Instant::now();
    let mut bases = Vec::new();
    let mut number = 0;
    while begin.elapsed() < span {
        number += 1;
        let output = scene.spawn(Program::Real, Action::Edit, number)?.wait_with_output()?;
        let base = scene.note(&output)?;
        *(if base.is_some() { &mut tally.applied } else { &mut tally.refused }) += 1;
        bases.extend(base);
        scene.displaced()?;
        pass(span / 20);
    }
    let saved = saving.saved()?;
    scene.look(0, &saved, &bases, &mut tally)?;
    saving.end()?;
    let Tally { applied, saves, kept, lost, .. } = &tally;
    ensure!(lost.is_empty(), "{} of {saves} saves are lost that were held up to {span:?}: {lost:?}", lost.len());
    ensure!(*applied > 0 && *kept > 0, "no save met an apply: {tally:?}");
    Ok(tally)
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let [quick, held, long] = if job.long { [100_000, 20_000, 500] } else { [1_200, 400, 24] };
    let longest = if job.long { Duration::from_mins(1) } else { Duration::from_secs(2) };
    let mut counted = Vec::new();
    for (what, tally) in [
        ("by rename and append", play_all(job, Style::Quick, Duration::ZERO, quick)?),
        ("held up to 50 ms", play_all(job, Style::Held, Duration::from_millis(50), held)?),
        ("held up to the longest", play_long(job, long, longest)?),
    ] {
        let Tally { applied, refused, saves, in_place, kept, base, .. } = tally;
        counted.push(format!(
            "{saves} saves {what}, {applied} batches applied and {refused} refused: {in_place} in place, {kept} kept and \
             named, {base} the base, 0 lost"
        ));
    }
    let caught = control(job)?;
    Ok(Ending::Held(format!("{}; control: {caught} without the move", counted.join("; "))))
}

/// Plays without the move until a save is lost.
fn control(job: &mut Job) -> Result<String> {
    let held = Duration::from_millis(50);
    let mut saves = 0;
    for _ in 0..20 {
        let seed = job.random.below(1 << 30);
        let tally = play(&Run { program: Program::Control, style: Style::Held, held, rounds: ROUNDS, seed })?;
        saves += tally.saves;
        if !tally.lost.is_empty() {
            return Ok(format!("{} of {saves} saves lost", tally.lost.len()));
        }
    }
    bail!("the control was not caught: {saves} held saves and none is lost though no displaced file is kept")
}
