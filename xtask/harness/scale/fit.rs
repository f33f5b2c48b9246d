//! From what cases took with real processes to the costs of the model.

use crate::cases::Measured;
use crate::costs::StoreCosts;
use crate::goal::median;
use crate::simulation::{Layout, Load, Machines, simulate};

/// Simulated seconds of one case, and steps in which a cost is narrowed down.
const SECONDS: f64 = 6.0;
const STEPS: usize = 14;
/// Between which bounds a slowdown is, and how long a wait in seconds.
const SLOWDOWN: (f64, f64) = (0.2, 8.0);
const LONGEST: f64 = 0.05;
/// Bytes a second of the log's disk where it is no bound.
const UNBOUNDED: f64 = 1e12;

/// The costs of a store, and how many times as long its work takes because processors are shared, with as many writers as there are in each of
/// the fitted cases.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitted {
    pub(crate) costs: StoreCosts,
    /// From the fewest writers to the most.
    slowdown: [(usize, f64); 3],
}

impl Fitted {
    /// The slowdown with so many writers, which between two cases is linear in how often their number doubles.
    fn slowdown(&self, writers: usize) -> f64 {
        let doublings = |writers: usize| (writers.max(1) as f64).log2();
        for pair in self.slowdown.windows(2) {
            if let [(few, of_few), (many, of_many)] = *pair
                && writers <= many
            {
                let share = (doublings(many) - doublings(writers.max(few))) / (doublings(many) - doublings(few));
                return of_many + (of_few - of_many) * share;
            }
        }
        let [.., (_, of_most)] = self.slowdown;
        of_most
    }
}

/// Fits the costs of `servers` servers on one store to cases, from few writers to many. The costs of a batch and of a group are the line through
/// what each batch took beside how many shared a group. Each case then leaves one thing open. With the fewest writers it is how much of a group's
/// work no batch waits for, or what a call waits for where even with none of it the simulation is too fast; with more it is the slowdown.
pub(crate) fn fit(cases: [&(usize, Measured); 3], servers: usize, flush: f64) -> Fitted {
    let each = cases.map(|(_, measured)| measured.each());
    let through = |of: fn(&Measured) -> f64| line(each.iter().map(|each| (1.0 / each.groups, of(each))).collect());
    let (author_call, author_group) = through(|each| each.author);
    let (server_submit, server_group) = through(|each| each.server);
    let (database_row, database_group) = through(|each| each.database);
    let costs = |beside: f64, call_wait: f64| StoreCosts {
        author_call,
        author_group,
        server_submit,
        server_group: server_group * (1.0 - beside),
        server_beside: server_group * beside,
        database_row,
        database_group: database_group * (1.0 - beside),
        database_beside: database_group * beside / servers as f64,
        flush,
        call_wait,
        submit_bytes: 0.0,
    };
    let slowdown = cases.map(|(writers, _)| (*writers, 1.0));
    let [few, ..] = cases;
    let is_too_fast = |fitted: Fitted, (writers, measured): &(usize, Measured)| {
        simulate(&small(fitted, servers, *writers)).rate > median(measured.rates.clone())
    };
    let with = |beside: f64, call_wait: f64| Fitted { costs: costs(beside, call_wait), slowdown };
    let mut fitted = if is_too_fast(with(0.0, 0.0), few) {
        with(0.0, narrowed((0.0, LONGEST), |wait| is_too_fast(with(0.0, wait), few)))
    } else {
        with(narrowed((0.0, 1.0), |beside| !is_too_fast(with(beside, 0.0), few)), 0.0)
    };
    for (case, measured) in cases.into_iter().enumerate().skip(1) {
        let slowed = |by: f64| {
            let mut tried = fitted;
            tried.slowdown.iter_mut().skip(case).take(1).for_each(|(_, slowdown)| *slowdown = by);
            tried
        };
        fitted = slowed(narrowed(SLOWDOWN, |by| is_too_fast(slowed(by), measured)));
    }
    fitted
}

/// A small case on this machine.
pub(crate) fn small(fitted: Fitted, servers: usize, writers: usize) -> Layout {
    let processors = std::thread::available_parallelism().map_or(1, usize::from);
    Layout {
        costs: fitted.costs.slowed(fitted.slowdown(writers)),
        agents: None,
        servers,
        machines: Machines::One(processors),
        load: Load::Closed(writers),
        bandwidth: UNBOUNDED,
        seconds: SECONDS,
        seed: 7,
    }
}

/// The least value that is not too little.
fn narrowed((mut low, mut high): (f64, f64), is_too_little: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if is_too_little(middle) {
            low = middle;
        } else {
            high = middle;
        }
    }
    f64::midpoint(low, high)
}

/// The line through points, of least squares: its height at 0 and its slope, neither of which is negative.
fn line(points: Vec<(f64, f64)>) -> (f64, f64) {
    let count = points.len().max(1) as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let spread: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let together: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    let slope = if spread > 0.0 { (together / spread).clamp(0.0, (y / x).max(0.0)) } else { 0.0 };
    (y - slope * x, slope)
}
