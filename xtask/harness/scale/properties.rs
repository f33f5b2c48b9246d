//! What every simulation has to have, whatever its figures: a simulation that is broken does not.

use anyhow::{Result, ensure};

use crate::costs::{Costs, StoreCosts};
use crate::simulation::{GROUP, Layout, Load, Machines, Outcome, simulate};

/// How far a law of averages may be missed by a run of some thousand batches.
const NEAR: f64 = 0.03;

/// Authors of the closed loads: one, some, and more than a group takes.
const AUTHORS: [usize; 3] = [1, 64, 300];
/// Batches of each run at least, and how often each author has one.
const BATCHES: usize = 6_000;
const TURNS: usize = 60;

/// Tries each property with the costs of both stores; answers how many layouts were simulated.
///
/// # Errors
/// Names the property that does not hold.
pub(crate) fn check(costs: &Costs) -> Result<usize> {
    let mut tried = 0;
    for (of, servers) in [(costs.embedded, 1), (costs.postgres, 1), (costs.company, 3)] {
        for machines in [Machines::One(2), Machines::Apart { server: 4, database: 8 }] {
            for agents in [None, Some(costs.agents)] {
                let layout =
                    |load| Layout { costs: of, agents, servers, machines, load, bandwidth: 1e9, seconds: 1.0, seed: 1 };
                let mut most = 0.0_f64;
                for authors in AUTHORS {
                    most = most.max(holds(layout(Load::Closed(authors)), BATCHES.max(authors * TURNS))?.rate);
                }
                // Half of what is possible: more than that would queue without end.
                holds(layout(Load::Open(most / 2.0)), BATCHES)?;
                tried += AUTHORS.len() + 1;
            }
        }
    }
    slow_disk(&costs.postgres)?;
    more(&costs.postgres)?;
    Ok(tried)
}

/// Simulates a layout for as long as so many batches take, and tries what has to hold of every one.
fn holds(mut layout: Layout, batches: usize) -> Result<Outcome> {
    let mut outcome = simulate(&layout);
    // One that loses batches would never have so many.
    while outcome.latencies.len() < batches && outcome.begun == outcome.ended {
        layout.seconds *= 2.0;
        outcome = simulate(&layout);
    }
    sound(&layout, &outcome).map_err(|error| error.context(format!("simulation of {layout:?}")))?;
    Ok(outcome)
}

fn sound(layout: &Layout, outcome: &Outcome) -> Result<()> {
    let Outcome { begun, ended, .. } = *outcome;
    ensure!(begun > 0 && begun == ended, "of {begun} batches {ended} ended");
    ensure!(outcome.excess == 0, "a group had {} writes more than what waited", outcome.excess);
    ensure!(outcome.largest <= GROUP, "a group had {} writes, more than {GROUP}", outcome.largest);
    let used = [outcome.server_use, outcome.database_use, outcome.disk_use];
    ensure!(used.iter().all(|used| *used <= 1.0 + NEAR), "more was used than there is: {used:?}");
    let little = outcome.rate * outcome.mean();
    ensure!(
        near(little, outcome.under_way),
        "Little's law: {:.2} batches were under way, and rate and latency give {little:.2}",
        outcome.under_way
    );
    let least = outcome.latencies.first().copied().unwrap_or_default();
    ensure!(least >= layout.costs.flush / 2.0, "a batch was durable after {least} s, before a flush can have ended");
    if let Load::Open(rate) = layout.load {
        let bound = rate * (1.0 + 5.0 / (rate * layout.seconds).sqrt());
        ensure!(outcome.rate <= bound, "{:.1} batches a second ended, of {rate} that began", outcome.rate);
    }
    if let Load::Closed(authors) = layout.load {
        ensure!(outcome.under_way <= authors as f64 + 1e-9, "{authors} authors had {:.2} batches", outcome.under_way);
    }
    Ok(())
}

/// Where nothing but the flush takes time, one author gets half as many batches from a disk that takes twice as long, and many authors get
/// more from larger groups, as servers do that share a flush.
fn slow_disk(costs: &StoreCosts) -> Result<()> {
    let flush = costs.flush.max(1e-4);
    let of = |times: f64, authors, servers| {
        let costs = StoreCosts { flush: flush * times, ..StoreCosts::default() };
        let (machines, load, seconds) = (Machines::One(2), Load::Closed(authors), flush * 20_000.0);
        simulate(&Layout { costs, agents: None, servers, machines, load, bandwidth: 1e12, seconds, seed: 2 })
    };
    let (once, twice, many, three) = (of(1.0, 1, 1).rate, of(2.0, 1, 1).rate, of(1.0, 64, 1), of(1.0, 3, 3).rate);
    ensure!(
        near(once, twice * 2.0),
        "with twice the flush one author has {twice:.1} batches a second instead of {once:.1}"
    );
    ensure!(near(once, 1.0 / flush), "one author has {once:.1} batches a second with a flush of {flush} s");
    ensure!(near(many.rate, once * many.group), "{:.1} batches a second in groups of {:.1}", many.rate, many.group);
    ensure!(
        three > once * 1.4,
        "three servers that can share a flush have {three:.1} batches a second, one has {once:.1}"
    );
    ensure!(many.group > 16.0, "64 authors share groups of {:.1}", many.group);
    Ok(())
}

/// More authors, servers or processors do not make less of the throughput.
fn more(costs: &StoreCosts) -> Result<()> {
    let rate = |authors, servers, processors| {
        let (machines, load) = (Machines::Apart { server: processors, database: processors }, Load::Closed(authors));
        simulate(&Layout {
            costs: *costs,
            agents: None,
            servers,
            machines,
            load,
            bandwidth: 1e9,
            seconds: 10.0,
            seed: 3,
        })
        .rate
    };
    let rates = [rate(1, 1, 2), rate(16, 1, 2), rate(256, 1, 2), rate(256, 3, 2), rate(256, 3, 8)];
    let grows = rates.windows(2).all(|pair| matches!(pair, [less, more] if *more >= less * (1.0 - NEAR)));
    ensure!(grows, "authors, servers and processors are added, and batches a second are {rates:.1?}");
    Ok(())
}

fn near(one: f64, other: f64) -> bool {
    (one - other).abs() <= NEAR * one.max(other)
}
