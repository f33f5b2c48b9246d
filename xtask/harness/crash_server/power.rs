//! Power cuts of the server's disk, an ext4 of its own: what was not flushed is lost, in the journal of the file system too.
//! The agents and the reference are on another disk.

use std::time::Duration;

use anyhow::{Context, Result, bail};

use crate::behind::behind;
use crate::check::Depth;
use crate::job::{Ending, Job};
use crate::moment::pass;
use crate::random::Random;
use crate::scene::Scene;
use crate::strace;
use crate::volume::Volume;

/// Cuts after which everything is compared, and a new data directory is begun.
const SPAN: usize = 25;
/// Cuts within which a server whose flushes do nothing loses something.
const CONTROL: usize = 20;

/// One life of the server, which ends by a power cut.
fn cut(scene: &mut Scene, volume: &mut Volume, behind: &[String], random: &mut Random) -> Result<()> {
    scene.stage.start(behind)?;
    scene.stage.start_agents()?;
    let load = scene.load(random)?;
    load.acknowledges(1 + random.below(50))?;
    pass(Duration::from_micros(random.below(10_000) as u64));
    // What it acknowledges from here on was flushed before.
    scene.stage.signal("-STOP")?;
    let done = volume.shut_down();
    scene.stage.kill();
    let found = scene.end(load);
    done?;
    found?;
    volume.mount_again()
}

/// Compares after a cut.
fn look(scene: &mut Scene, random: &mut Random) -> Result<()> {
    scene.stage.verify()?;
    scene.stage.start(&[])?;
    scene.check(Depth::New, random)
}

pub(crate) fn run(job: &mut Job) -> Result<Ending> {
    let mut volume = match Volume::make() {
        Ok(volume) => volume,
        Err(why) => return Ok(Ending::Skipped(format!("{why:#}"))),
    };
    if let Some(why) = strace::obstacle() {
        return Ok(Ending::Skipped(format!("its control needs strace: {why}")));
    }
    let (mut done, mut acknowledged) = (0, 0);
    while done < job.cycles {
        let data = volume.path().join(format!("data-{done}"));
        let mut scene = Scene::set(Some(&data))?;
        for _ in 0..SPAN.min(job.cycles - done) {
            let what = || format!("power cut {done}");
            cut(&mut scene, &mut volume, &[], &mut job.random).with_context(what)?;
            look(&mut scene, &mut job.random).with_context(what)?;
            scene.stage.kill();
            done += 1;
        }
        scene.stage.start(&[])?;
        scene.settle(&mut job.random).with_context(|| format!("after power cut {done}"))?;
        acknowledged += scene.acknowledged;
        drop(scene);
        std::fs::remove_dir_all(data)?;
    }
    let caught = control(&mut volume, &mut job.random)?;
    Ok(Ending::Held(format!("{done} cuts of ext4, {acknowledged} acknowledged calls; control: {caught}")))
}

/// Lets every flush of the server succeed and do nothing: a cut has to lose something that was acknowledged.
fn control(volume: &mut Volume, random: &mut Random) -> Result<String> {
    let data = volume.path().join("control");
    let mut scene = Scene::set(Some(&data))?;
    let lying = behind("fsync,fdatasync", "fsync,fdatasync:retval=0", &[]);
    for number in 1..=CONTROL {
        cut(&mut scene, volume, &lying, random).context("the control")?;
        if let Err(error) = look(&mut scene, random) {
            let causes: Vec<_> = error.chain().map(ToString::to_string).collect();
            let said = causes
                .iter()
                .flat_map(|cause| cause.lines())
                .find(|line| ["acknowledged", "damage", "differences"].iter().any(|word| line.contains(word)));
            let Some(said) = said else { return Err(error.context("the control")) };
            let said: String = said.chars().take(120).collect();
            return Ok(format!("flushes that do nothing were caught at cut {number}: {said}"));
        }
        scene.stage.kill();
    }
    bail!("the control was not caught: {CONTROL} power cuts without a flush lost nothing")
}
