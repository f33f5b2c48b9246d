//! Fails each kind of system call that the server makes on its data directory, in turn: while it starts, under load, once or
//! from then on, and cuts writes short. The server answers errors and recovers, or ends with a message; nothing is lost.

use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result, ensure};

use crate::behind::{behind, everything_in, traced};
use crate::check::Depth;
use crate::job::{Ending, Job};
use crate::random::Random;
use crate::scene::Scene;
use crate::strace;

/// Calls that read or change what is on disk.
const CALLS: &str = "openat,read,pread64,write,pwrite64,writev,fsync,fdatasync,sync_file_range,rename,renameat,renameat2,link,\
                     linkat,unlink,unlinkat,mkdir,mkdirat,rmdir,ftruncate,fallocate,lseek,flock,copy_file_range";

/// Faults from one line about the progress to the next.
const PROGRESS: usize = 50;
/// What a server logs whose store is opened anew after a fault.
const HEALED: &str = "the store takes writes again";
/// What a call ends with.
const ERRORS: [&str; 3] = ["ENOSPC", "EIO", "EMFILE"];

/// What is done to the server.
#[derive(Clone, Debug)]
enum Fault {
    /// The call of this name that a thread makes on the directory as its how manieth ends with an error.
    Once(String, usize, &'static str),
    /// That one and each later one.
    From(String, usize, &'static str),
    /// No file may get longer than so many bytes: the write that would make it longer is cut short, and the next one fails.
    Short(u64),
}

impl Fault {
    /// Words to start a server behind, so that it gets the fault in this directory.
    fn words(&self, data: &Path) -> Result<Vec<String>> {
        Ok(match self {
            Self::Once(name, at, error) => {
                behind(CALLS, &format!("{name}:error={error}:when={at}"), &everything_in(data)?)
            }
            Self::From(name, at, error) => {
                behind(CALLS, &format!("{name}:error={error}:when={at}+"), &everything_in(data)?)
            }
            Self::Short(bytes) => {
                let words = ["env", "--ignore-signal=XFSZ", "prlimit", &format!("--fsize={bytes}"), "--"];
                words.map(str::to_owned).to_vec()
            }
        })
    }
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    if let Some(why) = strace::obstacle() {
        return Ok(Ending::Skipped(why));
    }
    let mut scene = Scene::set(None)?;
    let calls = survey(&mut scene, &mut job.random)?;
    let (mut refused, mut ended, mut healed) = (0, 0, 0);
    let begun = Instant::now();
    for number in 0..job.cycles {
        if number > 0 && number % PROGRESS == 0 {
            println!("    {number} faults ({:.0?})", begun.elapsed());
        }
        let fault = fault(&scene, &calls, number, &mut job.random)?;
        let what = || format!("fault {number}, {fault:?}");
        match case(&mut scene, &fault, &mut job.random).with_context(what)? {
            Outcome::RefusedToStart => refused += 1,
            Outcome::Ended => ended += 1,
            Outcome::Healed => healed += 1,
            Outcome::Stayed => {}
        }
    }
    scene.stage.start(&[])?;
    scene.settle(&mut job.random)?;
    let caught = control(&mut scene, &mut job.random)?;
    Ok(Ending::Held(format!(
        "{} faults at {} kinds of calls: {refused} starts refused by name, {ended} ends by name, {healed} healed; {} acknowledged \
         calls; control: {caught}",
        job.cycles,
        calls.len(),
        scene.acknowledged
    )))
}

/// The calls that the server makes on its data directory while it starts and works: names, and the how manieth of its thread.
fn survey(scene: &mut Scene, random: &mut Random) -> Result<BTreeMap<String, BTreeSet<usize>>> {
    let file = scene.place().join("trace");
    for _ in 0..2 {
        scene.stage.start(&traced(CALLS, &file))?;
        scene.stage.start_agents()?;
        let load = scene.load(random)?;
        load.acknowledges(usize::MAX)?;
        scene.end(load)?;
        scene.stage.kill();
    }
    let trace = std::fs::read_to_string(&file)?;
    let data = scene.stage.data.display().to_string();
    let mut counts: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let mut calls: BTreeMap<String, BTreeSet<usize>> = BTreeMap::new();
    for line in trace.lines() {
        let Some((thread, call)) = line.split_once(' ') else { continue };
        let Some((name, arguments)) = call.trim_start().split_once('(') else { continue };
        let is_name = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if is_name && arguments.contains(&data) {
            let count = counts.entry((thread, name)).or_default();
            *count += 1;
            calls.entry(name.to_owned()).or_default().insert(*count);
        }
    }
    ensure!(calls.len() > 5, "strace saw hardly a call on the data directory: {calls:?}");
    Ok(calls)
}

/// One fault after the other: every kind of call, each kind with every error, then short writes.
fn fault(
    scene: &Scene,
    calls: &BTreeMap<String, BTreeSet<usize>>,
    number: usize,
    random: &mut Random,
) -> Result<Fault> {
    let (kind, round) = (number % (calls.len() + 1), number / (calls.len() + 1));
    let Some((name, places)) = calls.iter().nth(kind) else {
        // Where the journal ends by now, about.
        let used = std::fs::metadata(journal(&scene.stage.data)?)?.blocks() * 512;
        return Ok(Fault::Short(used.saturating_sub(4096) + random.below(8192) as u64));
    };
    let error = ERRORS.into_iter().cycle().nth(kind + round).unwrap_or("EIO");
    let at = places.iter().nth(random.below(places.len())).copied().unwrap_or(1);
    Ok(match random.below(2) {
        0 => Fault::Once(name.clone(), at, error),
        _ => Fault::From(name.clone(), at, error),
    })
}

/// What a server did about a fault.
enum Outcome {
    RefusedToStart,
    Ended,
    Healed,
    Stayed,
}

/// One fault, and a start without it.
fn case(scene: &mut Scene, fault: &Fault, random: &mut Random) -> Result<Outcome> {
    let outcome = faulty(scene, fault, random)?;
    scene.stage.kill();
    scene.stage.verify()?;
    scene.stage.start(&[])?;
    scene.check(Depth::New, random)?;
    scene.stage.kill();
    Ok(outcome)
}

/// Starts the server with a fault and lets everyone work on it.
fn faulty(scene: &mut Scene, fault: &Fault, random: &mut Random) -> Result<Outcome> {
    scene.stage.empty_log()?;
    let named = |scene: &Scene| {
        let said = scene.stage.log();
        ensure!(said.contains("ERROR") && !said.contains("panicked"), "it ended without a message: {said}");
        Ok(())
    };
    if scene.stage.start(&fault.words(&scene.stage.data)?).is_err() {
        ensure!(scene.stage.ended()?.is_some(), "it neither starts nor ends{}", scene.stage.tail());
        named(scene)?;
        return Ok(Outcome::RefusedToStart);
    }
    scene.stage.start_agents()?;
    let Ok(load) = scene.load(random) else {
        // Where no file can be opened, no connection can be taken.
        let is_open = scene.stage.ended()?.is_none();
        if !is_open {
            named(scene)?;
        }
        return Ok(if is_open { Outcome::Stayed } else { Outcome::Ended });
    };
    load.acknowledges(usize::MAX)?;
    let mut findings = scene.found(load)?;
    // While calls of its own fail, a server may refuse anything.
    findings.retain(|finding| !finding.is_refusal);
    crate::check::none(&findings)?;
    if scene.stage.ended()?.is_some() {
        named(scene)?;
        return Ok(Outcome::Ended);
    }
    if !matches!(fault, Fault::Once(..)) {
        return Ok(Outcome::Stayed);
    }
    let healed = scene.heals(random);
    match healed {
        Ok(true) => Ok(Outcome::Healed),
        Ok(false) => named(scene).map(|()| Outcome::Ended),
        // strace counts the calls of each thread: a store that is opened anew has new ones, which fail in the same place.
        Err(_) if scene.stage.log().matches(HEALED).count() > 1 => Ok(Outcome::Stayed),
        Err(error) => Err(error),
    }
}

/// The newest journal of the database.
fn journal(data: &Path) -> Result<std::path::PathBuf> {
    let mut journals = Vec::new();
    for entry in std::fs::read_dir(data)? {
        let path = entry?.path();
        if path.extension().is_some_and(|end| end == "jnl") {
            journals.push((std::fs::metadata(&path)?.modified()?, path));
        }
    }
    journals.sort();
    Ok(journals.pop().context("the data directory has no journal")?.1)
}

/// Where the bytes of a journal end, before the zeros that it is made longer by.
fn end_of(journal: &Path) -> Result<usize> {
    std::fs::read(journal)?.iter().rposition(|byte| *byte != 0).context("the journal is empty")
}

/// Takes away what the journal has of a load: the server refuses to start, and where the loss is accepted the comparison finds it.
fn control(scene: &mut Scene, random: &mut Random) -> Result<String> {
    let before = journal(&scene.stage.data)?;
    let kept = end_of(&before)?;
    let load = scene.load(random)?;
    load.acknowledges(usize::MAX)?;
    scene.end(load)?;
    scene.stage.kill();
    let path = journal(&scene.stage.data)?;
    let end = end_of(&path)?;
    let begin = if path == before { kept + 1 } else { 0 };
    let file = std::fs::File::options().write(true).open(&path)?;
    file.write_all_at(&vec![0; end - begin + 1], begin as u64)?;
    let Err(error) = scene.stage.start(&[]) else {
        anyhow::bail!("the control was not caught: the server starts on a journal without its end");
    };
    let said = format!("{error:#}");
    ensure!(said.contains("lacks what was acknowledged"), "the control was not caught by name: {said}");
    scene.stage.options = vec!["--accept-loss".to_owned()];
    scene.stage.start(&[])?;
    let found = scene.findings(Depth::Everything, random)?;
    ensure!(!found.is_empty(), "the control was not caught: no comparison misses the end of the journal");
    Ok(format!(
        "a journal without its end was refused by name, and once that was accepted {} differences found",
        found.len()
    ))
}
