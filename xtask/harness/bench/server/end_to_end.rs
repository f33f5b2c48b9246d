//! How long it is from the call that submits a batch until its author learns over `WatchBatch` that a real agent applied it,
//! beside the sum of what cannot be left out: two calls, two entries of a log, and a durable replacement of the file.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use tokio::time::timeout;

use crate::author::{Author, connect, content};
use crate::counting::GUARDS_AT_MOST;
use crate::goal::{self, Goal, median};
use crate::process::{Running, Server, Setup, WORKSPACES};
use crate::raw_log::RawLog;
use crate::target::{Target, quantile, slice};
use crate::{counting, echo, floors};

/// Batches of one pass, and calls of each floor.
const CALLS: usize = 20;
/// How much longer than the sum of its floors a batch may take.
const AT_MOST: f64 = 1.5;
/// Calls of the server for one batch: submit, watch and report. Their counting cannot be turned off.
const COUNTED_CALLS: f64 = 3.0;
/// How long one batch may take, unless something is broken.
pub(crate) const PATIENCE: std::time::Duration = std::time::Duration::from_secs(60);

/// A server with an agent, and who submits batches to it.
pub(crate) struct Line {
    author: Author,
    _agent: Running,
    _server: Server,
}

impl Line {
    /// Starts a server in a new directory, and an agent.
    pub(crate) async fn start(place: &Path, name: &str, setup: Setup) -> Result<Self> {
        let place = place.join(name);
        std::fs::create_dir(&place)?;
        let server = Server::start(&place, "server", setup, "")?;
        Self::with(&place, server).await
    }

    /// Starts an agent of a server, in the directory that has the server's.
    pub(crate) async fn with(place: &Path, server: Server) -> Result<Self> {
        let (agent, _) = server.start_agent(place)?;
        let author = Author::connect(&server.process.address, 1, server.authors(), WORKSPACES[0]).await?;
        Ok(Self { author, _agent: agent, _server: server })
    }

    /// How long each of so many batches takes.
    pub(crate) async fn batches(&self, count: usize) -> Result<Vec<f64>> {
        let mut each = Vec::new();
        for _ in 0..count {
            let begin = Instant::now();
            batch(&self.author).await?;
            each.push(begin.elapsed().as_secs_f64());
        }
        Ok(each)
    }
}

/// Measures and prints what is reported; answers what is gated.
///
/// # Errors
/// When a batch is not applied.
pub(crate) async fn measure(passes: usize) -> Result<Vec<Goal>> {
    let place = tempfile::tempdir()?;
    let place = place.path();
    let echoing = echo::start()?;
    let echo = Target::Echo(connect(&echoing.address, 1).await?);
    let log = Target::Log(RawLog::create(&place.join("raw.log"))?);
    let lines = [Line::start(place, "bare", Setup::Bare).await?, Line::start(place, "guarded", Setup::Guarded).await?];
    let floor = place.join("floor");
    std::fs::create_dir(&floor)?;
    std::fs::write(floor.join("file"), content(0))?;
    // The first of these waits until the agent is connected; after them every file is there, as in that of the floor.
    for line in &lines {
        line.batches(64).await?;
    }
    let counting = counting::per_call()? * COUNTED_CALLS;
    let (mut ratios, mut guards, mut all) = (Vec::new(), Vec::new(), Vec::new());
    let mut medians = [const { Vec::new() }; 5];
    for pass in 0..passes {
        let echo = quantile(&slice(&echo, 1, CALLS).await?.each, 0.5);
        let log = quantile(&slice(&log, 1, CALLS).await?.each, 0.5);
        let write = write(&floor)?;
        // Next to each other, each as often first.
        let mut halves = [0.0; 2];
        for turn in [pass % 2, 1 - pass % 2] {
            let (Some(line), Some(half)) = (lines.get(turn), halves.get_mut(turn)) else { continue };
            let batches = line.batches(CALLS).await?;
            *half = quantile(&batches, 0.5);
            if turn == 1 {
                all.extend(batches);
            }
        }
        let [bare, guarded] = halves;
        ratios.push(guarded / (2.0 * echo + 2.0 * log + write));
        guards.push(guarded / (bare - counting));
        medians.iter_mut().zip([echo, log, write, bare, guarded]).for_each(|(row, seconds)| row.push(seconds));
    }
    let [echo, log, write, bare, guarded] = medians.map(|row| median(row) * 1e3);
    println!(
        "ms, medians of {passes} passes of {CALLS}: echo {echo:.2}, raw log {log:.2}, durable replacement {write:.2}"
    );
    println!(
        "submit to APPLIED: p50 {bare:.2}, guarded {guarded:.2}, beside {:.2} (two echoes, two entries, one replacement); \
         p99 guarded {:.2}",
        2.0 * (echo + log) + write,
        quantile(&all, 0.99) * 1e3,
    );
    goal::report(&[Goal::at_most("submit to APPLIED, p50 / sum of its floors", median(ratios), AT_MOST)]);
    Ok(vec![Goal::at_most("submit to APPLIED, p50, guarded / unguarded", median(guards), GUARDS_AT_MOST)])
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
