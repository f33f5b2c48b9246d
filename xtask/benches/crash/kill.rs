//! `kill -9` of `aptix apply` at random moments.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};

use crate::course::{self, Course, Kind, lay_out};
use crate::seam::{open, stopping};
use crate::{Ending, Job, aptix, tree};

/// `aptix apply` of a document, in a place that nobody else uses.
pub(crate) fn apply(aptix: &Path, place: &Path, document: &Path) -> Command {
    let mut command = Command::new(aptix);
    command.args(["apply", "--yes", "--json", "--root"]).arg(place.join("ws")).arg(document);
    private(&mut command, place);
    command
}

/// Lets a process know no home but the place.
pub(crate) fn private(command: &mut Command, place: &Path) {
    command
        .env("HOME", place)
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .stdin(Stdio::null());
}

/// What came of one killing.
struct Found {
    /// Whether the tree was between old and new before recovery.
    between: bool,
    generation: usize,
}

/// Starts an apply, kills it after a time, and lets somebody else recover.
fn kill(
    aptix: &Path,
    place: &Path,
    course: &Course,
    generation: usize,
    after: Duration,
    forget: &dyn Fn() -> Result<()>,
) -> Result<Found> {
    let document = place.join("document.json");
    std::fs::write(&document, course.document(generation)?)?;
    let mut process = apply(aptix, place, &document).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
    let due = Instant::now() + after;
    while Instant::now() < due {
        std::thread::sleep(Duration::from_micros(50));
    }
    process.kill()?;
    let done = process.wait()?.success();
    let ws = place.join("ws");
    let between = course.generation(&tree::read(&ws)?, generation).is_err();
    forget()?;
    drop(open(place, stopping(usize::MAX).0).context("nobody can open the workspace again")?);
    let found = course.generation(&tree::read(&ws)?, generation)?;
    tree::check_state(&place.join("state"))?;
    ensure!(!done || found > generation, "the batch was said to be applied");
    Ok(Found { between, generation: found })
}

/// How long an apply takes that nobody kills.
fn span(aptix: &Path, course: &Course) -> Result<Duration> {
    let mut spans = Vec::new();
    let place = course::place()?;
    lay_out(&place.path().join("ws"), &course.tree(0))?;
    let document = place.path().join("document.json");
    for generation in 0..9 {
        std::fs::write(&document, course.document(generation)?)?;
        let begin = Instant::now();
        let output = apply(aptix, place.path(), &document).output()?;
        spans.push(begin.elapsed());
        let told = String::from_utf8_lossy(&output.stdout);
        ensure!(output.status.success(), "an apply that nobody kills fails: {told}");
    }
    spans.sort();
    spans.get(spans.len() / 2).copied().context("there are spans")
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let aptix = aptix()?;
    let (mut between, mut new) = (0, 0);
    let courses = [1, 3, 10, 100].map(|files| Course::new(files, &Kind::WHOLE));
    for course in &courses {
        let span = span(&aptix, course)?;
        let place = course::place()?;
        lay_out(&place.path().join("ws"), &course.tree(0))?;
        let mut generation = 0;
        for cycle in 0..job.cycles.div_ceil(courses.len()) {
            let after = span.mul_f64(job.random.below(1200) as f64 / 1000.0);
            let files = course.files();
            let what =
                || format!("kill {cycle} of an apply of {files} files in generation {generation}, after {after:?}");
            let found = kill(&aptix, place.path(), course, generation, after, &|| Ok(())).with_context(what)?;
            between += usize::from(found.between);
            new += found.generation - generation;
            generation = found.generation;
        }
    }
    let [.., course] = &courses;
    let caught = control(job, &aptix, course)?;
    Ok(Ending::Held(format!(
        "{} killed, {new} of them left the new tree, {between} a mixed one that was recovered; control: caught at kill \
         {caught} without a record",
        job.cycles
    )))
}

/// Kills as often as it takes until a tree stays torn whose record is lost.
fn control(job: &mut Job, aptix: &Path, course: &Course) -> Result<usize> {
    let span = span(aptix, course)?;
    for cycle in 1..=500 {
        let place = course::place()?;
        lay_out(&place.path().join("ws"), &course.tree(0))?;
        let state = place.path().join("state");
        let forget = || if state.exists() { Ok(std::fs::remove_dir_all(&state)?) } else { Ok(()) };
        let after = span.mul_f64(job.random.below(1200) as f64 / 1000.0);
        if kill(aptix, place.path(), course, 0, after, &forget).is_err() {
            return Ok(cycle);
        }
    }
    anyhow::bail!("the control was not caught: 500 kills of an apply that forgets its record left no tree torn")
}
