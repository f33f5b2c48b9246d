//! Lets `strace` fail or kill `aptix apply` at each system call that it makes, in the commit and in its recovery.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};

use crate::course::{self, Course, Kind, lay_out};
use crate::kill::private;
use crate::seam::{open, stopping};
use crate::{Ending, Job, aptix, tree};

/// Calls that change something, or that must not be taken for nothing when they fail.
const CALLS: &str = "openat,openat2,write,pwrite64,fsync,fdatasync,syncfs,sync_file_range,rename,renameat,renameat2,link,\
                     linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,fchmod,fchown,fsetxattr,ftruncate,fallocate,flock";

/// What a call can be made to end with.
const ERRORS: [&str; 7] = ["ENOSPC", "EIO", "EACCES", "EROFS", "EDQUOT", "EINTR", "EMFILE"];

/// Seconds after which a program is taken to hang, and what `timeout` then ends with.
const DEADLINE: &str = "60";
const TIMED_OUT: i32 = 124;

/// A system call of a program: its name, and the how manieth of that name in its thread.
type Call = (String, usize);

/// What happens at a call.
#[derive(Clone, Debug)]
enum Fault {
    Error(&'static str),
    Kill,
}

/// A program that is started beneath `strace`.
struct Traced<'a> {
    aptix: &'a Path,
    place: &'a Path,
    arguments: &'a [&'a str],
}

impl Traced<'_> {
    fn command(&self, how: &[String]) -> Command {
        let mut strace = Command::new("timeout");
        strace
            .args([DEADLINE, "strace", "-f", "-qq", "-o"])
            .arg(self.place.join("trace"))
            .args(how)
            .arg(self.aptix)
            .args(self.arguments);
        strace.current_dir(self.place);
        private(&mut strace, self.place);
        strace
    }

    /// The calls that it makes in its own code, by the thread that makes most of them.
    fn calls(&self) -> Result<Vec<Call>> {
        let output = self.command(&["-e".to_owned(), format!("trace={CALLS}")]).output()?;
        let trace = std::fs::read_to_string(self.place.join("trace"))?;
        let told = String::from_utf8_lossy(&output.stdout).into_owned();
        ensure!(output.status.success(), "without any fault it fails: {told}");
        // The first thread only loads the program; what it does happens in others.
        let first = trace.split(' ').next().unwrap_or_default();
        let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
        let mut calls = BTreeSet::new();
        for line in trace.lines() {
            let Some((thread, call)) = line.split_once(' ').filter(|(thread, _)| *thread != first) else { continue };
            let Some((name, _)) = call.trim_start().split_once('(') else { continue };
            if name.chars().all(|c| c.is_ascii_alphanumeric()) {
                let count = counts.entry((thread, name)).or_default();
                *count += 1;
                // One thread wakes another by such a write: it goes to no disk and cannot fail.
                if !call.contains(r"\1\0\0\0\0\0\0\0") {
                    calls.insert((name.to_owned(), *count));
                }
            }
        }
        ensure!(!calls.is_empty(), "strace saw no call of the program:\n{trace}");
        Ok(calls.into_iter().collect())
    }

    fn run(&self, call: &Call, fault: &Fault) -> Result<Output> {
        let (name, at) = call;
        let fault = match fault {
            Fault::Error(errno) => format!("error={errno}"),
            Fault::Kill => "signal=SIGKILL".to_owned(),
        };
        let how =
            ["-e".to_owned(), format!("trace={name}"), "-e".to_owned(), format!("inject={name}:{fault}:when={at}")];
        let output = self.command(&how).output()?;
        ensure!(output.status.code() != Some(TIMED_OUT), "{fault} at {call:?}: nothing happens any more");
        Ok(output)
    }
}

/// A workspace in a generation, and the document that leads to the next.
struct Scene {
    place: tempfile::TempDir,
    course: Course,
}

const APPLY: [&str; 6] = ["apply", "--yes", "--json", "--root", "ws", "document.json"];

impl Scene {
    fn new(course: &Course) -> Result<Self> {
        let place = course::place()?;
        lay_out(&place.path().join("ws"), &course.tree(0))?;
        std::fs::write(place.path().join("document.json"), course.document(0)?)?;
        let harmless = r#"{"files": [{"path": "nothing.txt", "operation": "create", "content": ""}]}"#;
        std::fs::write(place.path().join("harmless.json"), harmless)?;
        Ok(Self { place, course: course.clone() })
    }

    fn traced<'a>(&'a self, aptix: &'a Path) -> Traced<'a> {
        Traced { aptix, place: self.place.path(), arguments: &APPLY }
    }

    /// Lets somebody recover, and tells whether the tree is new.
    fn is_new(&self) -> Result<bool> {
        drop(open(self.place.path(), stopping(usize::MAX).0).context("nobody can open the workspace again")?);
        let found = self.course.generation(&tree::read(&self.place.path().join("ws"))?, 0)?;
        tree::check_state(&self.place.path().join("state"))?;
        Ok(found == 1)
    }
}

/// Applies with one fault, and looks at what comes of it.
fn fail(aptix: &Path, course: &Course, call: &Call, fault: &Fault) -> Result<()> {
    let scene = Scene::new(course)?;
    let output = scene.traced(aptix).run(call, fault)?;
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    let attempt = || {
        let is_new = scene.is_new()?;
        // Whoever says nothing at all has died, or could not say it.
        let is_open = told.contains("NEEDS_OPERATOR") || told.contains("applied all the same") || told.is_empty();
        ensure!(!output.status.success() || is_new, "it was said to be applied");
        ensure!(output.status.success() || !is_new || is_open || call.0 == "write", "it was said to be refused");
        Ok(())
    };
    attempt().with_context(|| format!("{fault:?} at {call:?} of an apply, which then said {told:?}"))
}

/// Leaves a commit half-way, lets the next command recover with one fault, and looks at what comes of it.
fn fail_recovery(aptix: &Path, course: &Course, stop: &Call, call: &Call, fault: &Fault) -> Result<()> {
    let scene = Scene::new(course)?;
    scene.traced(aptix).run(stop, &Fault::Kill)?;
    let output = recovering(aptix, &scene).run(call, fault)?;
    let told = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text).into_owned()).concat();
    scene.is_new().map(drop).with_context(|| {
        format!("killed at {stop:?}, then {fault:?} at {call:?} of the recovery, which then said {told:?}")
    })
}

/// A command that does nothing but recover.
fn recovering<'a>(aptix: &'a Path, scene: &'a Scene) -> Traced<'a> {
    Traced { aptix, place: scene.place.path(), arguments: &["apply", "--dry-run", "--root", "ws", "harmless.json"] }
}

/// Why `strace` cannot be used here.
fn obstacle() -> Option<String> {
    match Command::new("strace").args(["-qq", "-e", "trace=none", "true"]).output() {
        Err(error) => Some(format!("strace cannot be started ({error}); install the package strace")),
        Ok(output) if !output.status.success() => {
            let told = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Some(format!("strace may not trace here: {told}"))
        }
        Ok(_) => None,
    }
}

/// The faults that a call is tried with: all of them, or one errno after the other and a kill.
fn faults(job: &Job, index: usize) -> Vec<Fault> {
    let errors = ERRORS.into_iter().map(Fault::Error).chain([Fault::Kill]);
    if job.long { errors.collect() } else { errors.skip(index % 8).take(1).collect() }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    if let Some(why) = obstacle() {
        return Ok(Ending::Skipped(why));
    }
    let aptix = aptix()?;
    let course = Course::new(3, &Kind::WHOLE);
    let scene = Scene::new(&course)?;
    let calls = scene.traced(&aptix).calls()?;
    let (mut commits, mut recoveries) = (0, 0);
    for (index, call) in calls.iter().enumerate() {
        for fault in faults(job, index) {
            fail(&aptix, &course, call, &fault)?;
            commits += 1;
        }
    }
    let renames: Vec<_> = calls.iter().filter(|(name, _)| name.starts_with("rename")).collect();
    for stop in &renames {
        let scene = Scene::new(&course)?;
        scene.traced(&aptix).run(stop, &Fault::Kill)?;
        for (index, call) in recovering(&aptix, &scene).calls()?.iter().enumerate() {
            for fault in faults(job, index) {
                fail_recovery(&aptix, &course, stop, call, &fault)?;
                recoveries += 1;
            }
        }
    }
    let mut caught = 0;
    for stop in &renames {
        let scene = Scene::new(&course)?;
        scene.traced(&aptix).run(stop, &Fault::Kill)?;
        std::fs::remove_dir_all(scene.place.path().join("state"))?;
        caught += usize::from(scene.is_new().is_err());
    }
    ensure!(caught > 0, "the control was not caught: no kill between two renames left a tree torn without its record");
    Ok(Ending::Held(format!(
        "{commits} faults at the {} calls of a commit and {recoveries} at those of recoveries; control: {caught} of {} \
         caught without a record",
        calls.len(),
        renames.len()
    )))
}
