//! What it takes to submit a batch of one file over gRPC, beside a unary echo of the same message and a log that keeps the same
//! bytes; and what identity, quotas and metrics add.

use anyhow::{Context, Result};

use crate::author::{Author, connect};
use crate::counting::GUARDS_AT_MOST;
use crate::goal::{self, Goal, median};
use crate::process::{Running, Server, Setup, WORKSPACES, WRITERS};
use crate::raw_log::RawLog;
use crate::target::{Slice, Target, slice};
use crate::{counting, echo, neighbours};

/// How many writers there are, and how many calls each makes in a pass.
const ROWS: [(usize, usize); 3] = [(1, 96), (16, 32), (WRITERS, 20)];
/// The rate of submitted batches beside that of an echo, with many writers.
const OF_ECHO_AT_LEAST: f64 = 0.85;
/// The same beside the log.
const OF_LOG_AT_LEAST: f64 = 0.35;
/// The time of one batch beside that of an echo and the log together, with one writer.
const OF_BOTH_AT_MOST: f64 = 1.0;

/// Everything that is called.
struct Stage {
    echo: Target,
    log: Target,
    /// The server without and with guards.
    servers: [(Server, Target); 2],
    _echo: Running,
    _place: tempfile::TempDir,
}

/// Measures, and prints what is reported.
///
/// # Errors
/// When a call fails.
pub(crate) async fn measure(passes: usize) -> Result<Vec<Goal>> {
    let stage = set().await?;
    for target in stage.targets() {
        slice(target, WRITERS, 4).await?;
    }
    println!("calls a second, median of {passes} passes; in brackets processor time of the server for each call");
    let counting = counting::per_call()?;
    println!("metrics and the quotas of workspaces, always on: {:.2} µs for each call", counting * 1e6);
    let (mut reported, mut gated) = (Vec::new(), Vec::new());
    for (writers, calls) in ROWS {
        let row = Row::measure(&stage, writers, calls, passes, counting).await?;
        row.print();
        reported.extend(row.goals());
        gated.push(Goal::at_most(row.name("guarded / unguarded"), median(row.guards), GUARDS_AT_MOST));
    }
    goal::report(&reported);
    let [_, (guarded, quiet)] = &stage.servers;
    let tokens = guarded.tokens.as_ref().context("the server was given tokens")?;
    let noisy = std::slice::from_ref(&tokens.neighbour);
    let noisy = Author::connect(&guarded.process.address, WRITERS, noisy, WORKSPACES[1]).await?;
    neighbours::measure((quiet, &Target::Server(noisy)), &stage.echo, passes).await?;
    Ok(gated)
}

async fn set() -> Result<Stage> {
    let place = tempfile::tempdir()?;
    let running = echo::start()?;
    let echo = Target::Echo(connect(&running.address, WRITERS).await?);
    let log = Target::Log(RawLog::create(&place.path().join("raw.log"))?);
    let start = async |name, setup| {
        let server = Server::start(place.path(), name, setup, "")?;
        let author = Author::connect(&server.process.address, WRITERS, server.authors(), WORKSPACES[0]).await?;
        anyhow::Ok((server, Target::Server(author)))
    };
    let servers = [start("bare", Setup::Bare).await?, start("guarded", Setup::Guarded).await?];
    Ok(Stage { echo, log, servers, _echo: running, _place: place })
}

impl Stage {
    fn targets(&self) -> [&Target; 4] {
        let [(_, bare), (_, guarded)] = &self.servers;
        [&self.echo, &self.log, bare, guarded]
    }
}

/// What so many writers took.
struct Row {
    writers: usize,
    /// Seconds for each call of the echo, the log, and the server without and with guards.
    seconds: [Vec<f64>; 4],
    /// Microseconds of processor time for each call of the server without and with guards.
    processor: [f64; 2],
    /// Ratios of one pass: with guards to without, and without what cannot be turned off.
    guards: Vec<f64>,
}

impl Row {
    async fn measure(stage: &Stage, writers: usize, calls: usize, passes: usize, counting: f64) -> Result<Self> {
        let mut seconds = [const { Vec::new() }; 4];
        let (mut processor, mut guards) = ([0.0; 2], Vec::new());
        for pass in 0..passes {
            let floors = [slice(&stage.echo, writers, calls).await?, slice(&stage.log, writers, calls).await?];
            // Next to each other, each as often first.
            let mut of_servers = [0.0; 2];
            for turn in [pass % 2, 1 - pass % 2] {
                let (Some((server, target)), Some(cost), Some(spent)) =
                    (stage.servers.get(turn), of_servers.get_mut(turn), processor.get_mut(turn))
                else {
                    continue;
                };
                let before = server.process.processor_seconds()?;
                *cost = slice(target, writers, calls).await?.per_call;
                *spent += server.process.processor_seconds()? - before;
            }
            let [bare, guarded] = of_servers;
            guards.push(guarded / (bare - counting));
            let all = floors.map(|Slice { per_call, .. }| per_call).into_iter().chain(of_servers);
            seconds.iter_mut().zip(all).for_each(|(row, seconds)| row.push(seconds));
        }
        let made = (passes * writers * calls) as f64;
        Ok(Self { writers, seconds, processor: processor.map(|seconds| seconds / made * 1e6), guards })
    }

    fn name(&self, what: &str) -> String {
        let ending = if self.writers == 1 { "" } else { "s" };
        format!("{} writer{ending}, {what}", self.writers)
    }

    fn print(&self) {
        let [echo, log, bare, guarded] = self.seconds.clone().map(|row| 1.0 / median(row));
        let [of_bare, of_guarded] = self.processor;
        println!(
            "{:>2} writers: echo {echo:.0}; raw log {log:.0}; submit {bare:.0} [{of_bare:.0} µs], guarded {guarded:.0} \
             [{of_guarded:.0} µs]",
            self.writers
        );
    }

    /// What is reported beside its goal.
    fn goals(&self) -> Vec<Goal> {
        let [echo, log, bare, _] = &self.seconds;
        let pairs = |floor: &[f64]| median(floor.iter().zip(bare).map(|(floor, bare)| floor / bare).collect());
        if self.writers == 1 {
            let both = echo.iter().zip(log).map(|(echo, log)| echo + log);
            let ratios = both.zip(bare).map(|(both, bare)| bare / both).collect();
            return vec![Goal::at_most(self.name("submit / (echo + raw log)"), median(ratios), OF_BOTH_AT_MOST)];
        }
        vec![
            Goal::at_least(self.name("rate of submit / echo"), pairs(echo), OF_ECHO_AT_LEAST),
            Goal::at_least(self.name("rate of submit / raw log"), pairs(log), OF_LOG_AT_LEAST),
        ]
    }
}
