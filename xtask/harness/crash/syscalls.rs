//! Lets `strace` fail or kill `aptix apply` and `aptix undo` at each system call that they make, and at those of the
//! recovery that follows.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::process::{Command, Output};

use anyhow::{Context, Result, ensure};
use aptix_client::workspace::transaction::CommitOptions;

use crate::commands::{Action, LOOK, prepare, printed};
use crate::failpoints::{open, recover, stopping};
use crate::job::{Ending, Job};
use crate::program::{self, private, program};
use crate::sequence::{Kind, Sequence};
use crate::strace;
use crate::tree::{self, lay_out};
use crate::workers;

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
    arguments: &'static [&'static str],
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
        private(&mut strace, self.place);
        strace
    }

    /// The calls that it makes in its own code, by the thread that makes most of them.
    fn calls(&self) -> Result<Vec<Call>> {
        let output = self.command(&["-e".to_owned(), format!("trace={CALLS}")]).output()?;
        let trace = std::fs::read_to_string(self.place.join("trace"))?;
        ensure!(output.status.success(), "without any fault it fails: {}", printed(&output));
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

/// A workspace, and what is about to be done in it.
struct Scene<'a> {
    aptix: &'a Path,
    place: tempfile::TempDir,
    plot: &'a Plot,
}

/// What is done in a workspace.
#[derive(Clone, Debug)]
struct Plot {
    action: Action,
    sequence: Sequence,
}

impl Plot {
    /// The generations before and after.
    const fn ends(&self) -> (usize, usize) {
        match self.action {
            Action::Apply => (0, 1),
            Action::Undo => (1, 0),
        }
    }

    fn scene<'a>(&'a self, aptix: &'a Path) -> Result<Scene<'a>> {
        let place = program::place()?;
        lay_out(&place.path().join("ws"), &self.sequence.tree(0))?;
        prepare(place.path(), &self.sequence, 0)?;
        if self.action == Action::Undo {
            let workspace = open(place.path(), stopping(usize::MAX).0)?;
            self.sequence.advance(&workspace, 0, CommitOptions::default())?;
        }
        Ok(Scene { aptix, place, plot: self })
    }
}

impl Scene<'_> {
    fn action(&self) -> Traced<'_> {
        Traced { aptix: self.aptix, place: self.place.path(), arguments: self.plot.action.arguments() }
    }

    /// A command that does nothing but recover.
    fn recovering(&self) -> Traced<'_> {
        Traced { aptix: self.aptix, place: self.place.path(), arguments: &LOOK }
    }

    /// Recovers, and returns whether the tree is new.
    fn is_new(&self) -> Result<bool> {
        recover(self.place.path())?;
        tree::check_state(&self.place.path().join("state"))?;
        let found = tree::read(&self.place.path().join("ws"))?;
        let (old, new) = self.plot.ends();
        match self.plot.action {
            Action::Apply => self.plot.sequence.is_new(&found, old, new),
            // The tests of undo check whether it removes the directories that the batch made.
            Action::Undo => self.plot.sequence.is_new_except_dirs(&found, old, new),
        }
    }
}

/// What is done to a program that does something: a fault at one of its calls, or at one of the recovery that follows
/// where it was killed at another.
#[derive(Clone, Debug)]
struct Case<'a> {
    plot: &'a Plot,
    killed: Option<&'a Call>,
    call: Call,
    fault: Fault,
}

impl Case<'_> {
    fn look(&self, aptix: &Path) -> Result<()> {
        let scene = self.plot.scene(aptix)?;
        let output = match self.killed {
            Some(stop) => {
                scene.action().run(stop, &Fault::Kill)?;
                scene.recovering().run(&self.call, &self.fault)?
            }
            None => scene.action().run(&self.call, &self.fault)?,
        };
        let printed = printed(&output);
        let attempt = || {
            let is_new = scene.is_new()?;
            if self.killed.is_some() {
                return Ok(());
            }
            // A program that prints nothing died, or could not print.
            let is_open = printed.contains("NEEDS_OPERATOR") || printed.contains("all the same") || printed.is_empty();
            let is_done = output.status.success();
            ensure!(!is_done || is_new, "it succeeded and is not in the tree");
            ensure!(is_done || !is_new || is_open || self.call.0 == "write", "it failed and is in the tree");
            Ok(())
        };
        attempt().with_context(|| format!("{self:?}, which then printed {printed:?}"))
    }
}

/// The faults that a call is tried with: all of them, or one errno after the other and a kill.
fn faults(job: &Job, index: usize) -> Vec<Fault> {
    let errors = ERRORS.into_iter().map(Fault::Error).chain([Fault::Kill]);
    if job.long { errors.collect() } else { errors.skip(index % 8).take(1).collect() }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    if let Some(why) = strace::obstacle() {
        return Ok(Ending::Skipped(why));
    }
    let aptix = program("aptix")?;
    let [edit, make, moved, remove, run, swap, case] = Kind::ALL;
    let plots = [
        (Action::Apply, [edit, make, moved]),
        (Action::Apply, [moved, remove, run]),
        (Action::Apply, [swap, case, edit]),
        (Action::Undo, [run, make, moved]),
    ];
    let plots = plots.map(|(action, kinds)| Plot { action, sequence: Sequence::new(3, &kinds) });
    let mut counted = Vec::new();
    let mut renames = Vec::new();
    for plot in &plots {
        let calls = plot.scene(&aptix)?.action().calls()?;
        let of_all = calls.iter().enumerate();
        let cases = of_all.flat_map(|(index, call)| {
            let case = |fault| Case { plot, killed: None, call: call.clone(), fault };
            faults(job, index).into_iter().map(case).collect::<Vec<_>>()
        });
        let cases: Vec<_> = cases.collect();
        workers::each(&cases, |_, case| case.look(&aptix))?;
        counted.push(format!("{} faults at the {} calls of {:?}", cases.len(), calls.len(), plot.action));
        let stops = calls.into_iter().filter(|(name, _)| name.starts_with("rename"));
        renames.extend(stops.map(|call| (plot, call)));
    }
    let mut cases = Vec::new();
    for (plot, stop) in &renames {
        let scene = plot.scene(&aptix)?;
        scene.action().run(stop, &Fault::Kill)?;
        for (index, call) in scene.recovering().calls()?.into_iter().enumerate() {
            // In the short run not every call of each recovery: they differ little.
            if job.long || job.random.below(4) == 0 {
                let case = |fault| Case { plot, killed: Some(stop), call: call.clone(), fault };
                let turn = index + job.random.below(8);
                cases.extend(faults(job, turn).into_iter().map(case));
            }
        }
    }
    workers::each(&cases, |_, case| case.look(&aptix))?;
    let mut caught = 0;
    for (plot, stop) in &renames {
        let scene = plot.scene(&aptix)?;
        scene.action().run(stop, &Fault::Kill)?;
        std::fs::remove_dir_all(scene.place.path().join("state"))?;
        caught += usize::from(scene.is_new().is_err());
    }
    ensure!(caught > 0, "the control was not caught: no kill between two renames left a tree torn without its record");
    Ok(Ending::Held(format!(
        "{}, and {} at those of recoveries; control: {caught} of {} caught without a record",
        counted.join(", ").to_lowercase(),
        cases.len(),
        renames.len()
    )))
}
