//! How long it is from the call that submits a batch until its author learns over `WatchBatch` that a real agent applied it,
//! beside the sum of what cannot be left out: two calls, two entries of a log, and a durable replacement of the file.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::time::timeout;

use crate::author::{Author, connect, content};
use crate::goal::{self, Goal, median};
use crate::process::{Server, Setup, WORKSPACES};
use crate::raw_log::RawLog;
use crate::target::{Target, quantile, slice};
use crate::{echo, floors};

/// Batches of one pass, and calls of each floor.
const CALLS: usize = 20;
/// How much longer than the sum of its floors a batch may take.
const AT_MOST: f64 = 1.5;
/// How long one batch may take, unless something is broken.
const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// Measures, and prints what is reported.
///
/// # Errors
/// When a batch is not applied.
pub(crate) async fn measure(passes: usize) -> Result<()> {
    let place = tempfile::tempdir()?;
    let place = place.path();
    let echoing = echo::start()?;
    let echo = Target::Echo(connect(&echoing.address, 1).await?);
    let log = Target::Log(RawLog::create(&place.join("raw.log"))?);
    let server = Server::start(place, "server", Setup::Guarded, "")?;
    let (_agent, _) = server.start_agent(place)?;
    let token = server.tokens.as_ref().map(|tokens| &tokens.author);
    let author = Author::connect(&server.process.address, 1, token, WORKSPACES[0]).await?;
    let floor = place.join("floor");
    std::fs::create_dir(&floor)?;
    std::fs::write(floor.join("file"), content(0))?;
    // The first of these waits until the agent is connected; after them every file is there, as in that of the floor.
    for _ in 0..64 {
        batch(&author).await?;
    }
    let (mut ratios, mut all) = (Vec::new(), Vec::new());
    let mut medians = [const { Vec::new() }; 4];
    for _ in 0..passes {
        let echo = quantile(&slice(&echo, 1, CALLS).await?.each, 0.5);
        let log = quantile(&slice(&log, 1, CALLS).await?.each, 0.5);
        let write = write(&floor)?;
        let mut batches = Vec::new();
        for _ in 0..CALLS {
            let begin = Instant::now();
            batch(&author).await?;
            batches.push(begin.elapsed().as_secs_f64());
        }
        let whole = quantile(&batches, 0.5);
        ratios.push(whole / (2.0 * echo + 2.0 * log + write));
        medians.iter_mut().zip([echo, log, write, whole]).for_each(|(row, seconds)| row.push(seconds));
        all.extend(batches);
    }
    let [echo, log, write, whole] = medians.map(|row| median(row) * 1e3);
    println!(
        "ms, medians of {passes} passes of {CALLS}: echo {echo:.2}, raw log {log:.2}, durable replacement {write:.2}"
    );
    println!(
        "submit to APPLIED: p50 {whole:.2} beside {:.2} (two echoes, two entries, one replacement); p99 {:.2}",
        2.0 * (echo + log) + write,
        quantile(&all, 0.99) * 1e3,
    );
    goal::report(&[Goal::at_most("submit to APPLIED, p50 / sum of its floors", median(ratios), AT_MOST)]);
    Ok(())
}

/// Submits a batch and waits until it is applied.
async fn batch(author: &Author) -> Result<()> {
    let whole = async { author.wait(author.submit(0).await?).await };
    timeout(PATIENCE, whole).await.context("no batch is applied in time")?
}

/// The median time of a replacement.
fn write(directory: &Path) -> Result<f64> {
    let mut each = Vec::new();
    for number in 0..CALLS {
        let content = content(number as u64);
        let begin = Instant::now();
        floors::flushed(directory, &[("file", content.as_bytes())])?;
        each.push(begin.elapsed().as_secs_f64());
    }
    Ok(quantile(&each, 0.5))
}
