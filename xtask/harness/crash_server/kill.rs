//! `kill -9` of the server at random moments: under load, while it starts, while it ends.

use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use aptix_model::wire::v1;

use crate::check::{Depth, about};
use crate::copies::Copy;
use crate::feed::{Position, Stopped, read};
use crate::job::{Ending, Job};
use crate::kept;
use crate::ledger::About;
use crate::load::{IDLE, SERVED};
use crate::moment::pass;
use crate::random::Random;
use crate::scene::Scene;
use crate::workers::with;

/// Cycles after which everything is compared, and a new data directory is begun.
const SPAN: usize = 50;

/// When the server is killed.
#[derive(Clone, Copy, Debug)]
enum When {
    /// So long after so many calls were acknowledged.
    UnderLoad(usize, Duration),
    /// So long after it was asked to end.
    WhileEnding(Duration),
    /// Under load, and again so long after it was started.
    WhileStarting(Duration),
}

impl When {
    fn random(random: &mut Random, start: Duration) -> Self {
        let brief = Duration::from_micros(random.below(40_000) as u64);
        match random.below(6) {
            0 => Self::WhileEnding(brief),
            1 | 2 => Self::WhileStarting(start.mul_f64(random.below(1200) as f64 / 1000.0)),
            _ => Self::UnderLoad(random.below(50), brief / 4),
        }
    }
}

/// One life of the server, which ends by a kill; then the next one starts and is compared. Answers whether a backup came of it, if one was
/// begun.
fn cycle(scene: &mut Scene, when: When, random: &mut Random) -> Result<Option<bool>> {
    scene.stage.start_agents()?;
    let mut copy = (random.below(5) == 0).then(|| Copy::begin(scene)).transpose()?;
    let load = scene.load(random)?;
    if random.below(8) == 0 {
        let [first, second] = SERVED;
        scene.stage.kill_agent(if random.below(2) == 0 { first } else { second });
    }
    if let Some(copy) = &mut copy {
        if random.below(2) == 0 { copy.wait()? } else { copy.wait_for_server()? }
    }
    match when {
        When::UnderLoad(count, then) => {
            load.acknowledges(count)?;
            pass(then);
            scene.stage.kill();
        }
        When::WhileEnding(then) => {
            load.acknowledges(20)?;
            scene.stage.kill_while_ending(then)?;
        }
        When::WhileStarting(_) => {
            load.acknowledges(10)?;
            scene.stage.kill();
        }
    }
    scene.end(load)?;
    let copied = copy.map(|copy| copy.end(scene)).transpose()?;
    if let When::WhileStarting(then) = when {
        scene.stage.kill_while_starting(then)?;
    }
    scene.stage.verify()?;
    scene.stage.start(&[])?;
    scene.check(Depth::New, random)?;
    Ok(copied)
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let (mut done, mut acknowledged, mut caught) = (0, 0, String::new());
    let (mut copies, mut cut_off) = (0, 0);
    while done < job.cycles {
        let mut scene = Scene::set(None)?;
        let begin = Instant::now();
        scene.stage.start(&[])?;
        let start = begin.elapsed();
        for _ in 0..SPAN.min(job.cycles - done) {
            let when = When::random(&mut job.random, start);
            match cycle(&mut scene, when, &mut job.random).with_context(|| format!("cycle {done}, {when:?}"))? {
                Some(true) => copies += 1,
                Some(false) => cut_off += 1,
                None => {}
            }
            done += 1;
        }
        scene.settle(&mut job.random).with_context(|| format!("after cycle {done}"))?;
        acknowledged += scene.acknowledged;
        if done >= job.cycles {
            caught = control(&mut scene, &mut job.random)?;
        }
    }
    Ok(Ending::Held(format!(
        "{done} kills, {acknowledged} acknowledged calls, {copies} backups restored and {cut_off} cut off; control: {caught}"
    )))
}

/// Puts back a copy of the data directory: what was acknowledged since then is lost, and every comparison has to find it.
fn control(scene: &mut Scene, random: &mut Random) -> Result<String> {
    scene.stage.kill();
    let copy = scene.place().join("copy");
    replace(&scene.stage.data, &copy)?;
    scene.stage.start(&[])?;
    let mut backup = Copy::begin(scene)?;
    backup.wait()?;
    let shared = scene.connect()?;
    let (mut rounds, reach) = (0, scene.runtime.block_on(kept::reach(&shared))?);
    while !is_rich(scene, reach) {
        ensure!(rounds < 50, "50 rounds of work did not do everything that can be done");
        rounds += 1;
        scene.stage.start_agents()?;
        let load = scene.load(random)?;
        load.acknowledges(usize::MAX)?;
        scene.end(load)?;
    }
    readers(scene)?;
    backup.promise_too_much(scene);
    let lacks = backup.end(scene).err().map(|error| format!("{error:#}")).unwrap_or_default();
    ensure!(
        lacks.contains("a backup lacks batch"),
        "the control was not caught: a backup has what was acknowledged after it{lacks}"
    );
    scene.stage.kill();
    replace(&copy, &scene.stage.data)?;
    scene.stage.start(&[])?;
    let mut findings = scene.findings(Depth::Everything, random)?;
    let load = scene.load(random)?;
    load.acknowledges(usize::MAX)?;
    findings.extend(scene.found(load)?);
    let found = about(&findings);
    let missed: Vec<_> = About::ALL.into_iter().filter(|about| !found.contains(about)).collect();
    ensure!(
        missed.is_empty(),
        "the control was not caught: a restored copy of the data directory lost nothing of {missed:?}"
    );
    Ok(format!(
        "a restored copy of the data directory was caught by all {} comparisons, an event left out or sent twice by the readers",
        found.len()
    ))
}

/// Swallows events, and sends them twice: readers have to notice.
fn readers(scene: &Scene) -> Result<()> {
    let shared = scene.connect()?;
    let swallowing = v1::EventFilter { kinds: vec![v1::EventKind::Submitted.into()], ..Default::default() };
    let cases = [("swallowed", Some(swallowing), Position::default()), ("repeated", None, Position::repeating(3))];
    for (what, filter, mut position) in cases {
        let request = v1::WatchWorkspaceRequest { workspace_id: IDLE.to_owned(), filter, ..Default::default() };
        let end = scene.runtime.block_on(read(&shared.author, &scene.ledger, request, &mut position, None));
        let is_caught = matches!(&end, Err(Stopped::Wrong(finding)) if finding.about == About::Feed);
        ensure!(is_caught, "the control was not caught: a reader did not notice events that were {what}");
    }
    Ok(())
}

/// Whether something of each kind was acknowledged and not compared since, and more was removed than the copy can remove by itself.
fn is_rich(scene: &Scene, reach: u64) -> bool {
    with(&scene.ledger, |ledger| {
        let sent = || ledger.workspaces.values().flat_map(|known| known.sent.values()).filter(|sent| !sent.is_checked);
        let reported = sent().any(|sent| sent.report.as_ref().is_some_and(|reported| reported.is_acknowledged));
        let decided = sent().any(|sent| sent.decision.as_ref().is_some_and(|decision| decision.is_acknowledged));
        reported && decided && ledger.kept.oldest > reach
    })
}

/// Makes one directory a copy of another.
fn replace(from: &Path, to: &Path) -> Result<()> {
    if to.exists() {
        std::fs::remove_dir_all(to)?;
    }
    let copied = Command::new("cp").arg("-a").args([from, to]).status()?;
    ensure!(copied.success(), "{} cannot be copied", from.display());
    Ok(())
}
