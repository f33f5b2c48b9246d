//! From what cases took with real processes to the costs of the model.

use crate::cases::Measured;
use crate::costs::StoreCosts;
use crate::goal::median;
use crate::simulation::{Layout, Load, Machines, simulate};

/// Simulated seconds of one case, and steps in which a cost is narrowed down.
const SECONDS: f64 = 6.0;
const STEPS: usize = 14;
const ROUNDS: usize = 5;
/// Bytes a second of the log's disk where it is no bound.
const UNBOUNDED: f64 = 1e12;

/// The costs of a store, and how many times as long its work takes because processors are shared, with few writers and with many: few leave
/// processors idle, so that other programs, and the second thread of a core, slow them less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitted {
    pub(crate) costs: StoreCosts,
    slowdown: [f64; 2],
}

/// Between how many writers the slowdown changes.
const FEW: f64 = 2.0;
const MANY: f64 = 32.0;

impl Fitted {
    /// The slowdown with so many writers, which is linear in the part that each has of all.
    fn slowdown(&self, writers: usize) -> f64 {
        let part = |writers: f64| 1.0 / writers.clamp(FEW, MANY);
        let [few, many] = self.slowdown;
        many + (few - many) * (part(writers as f64) - part(MANY)) / (part(FEW) - part(MANY))
    }
}

/// Fits the costs of `servers` servers on one store to three cases, from few writers to many. The costs of a batch and of a group are the line through
/// what each batch took beside how many shared a group; the slowdown follows from the case with the most writers, what a group waits
/// for from the one between (less than a flush where the disk was busier when flushes were timed), and what a call waits for from that with the fewest.
pub(crate) fn fit(cases: &[(usize, Measured)], servers: usize, flush: f64) -> Fitted {
    let each: Vec<_> = cases.iter().map(|(writers, measured)| (*writers, measured.each())).collect();
    let through = |of: fn(&Measured) -> f64| line(each.iter().map(|(_, each)| (1.0 / each.groups, of(each))).collect());
    let (author, of_group) = through(|each| each.author);
    // An author has no part in groups: what varies is how well its calls share wake-ups.
    let author_call = author + of_group / each.last().map_or(1.0, |(_, each)| each.groups);
    let (server_submit, server_group) = through(|each| each.server);
    let (database_row, database_group) = through(|each| each.database);
    let costs = StoreCosts {
        author_call,
        server_submit,
        server_group,
        database_row,
        database_group,
        flush,
        ..StoreCosts::default()
    };
    let mut fitted = Fitted { costs, slowdown: [1.0; 2] };
    let [(few, of_few), (some, of_some), (many, of_many)] = each.as_slice() else { return fitted };
    for _ in 0..ROUNDS {
        let [few_slowdown, _] = fitted.slowdown;
        let of_many_writers = |slowdown| Fitted { slowdown: [few_slowdown, slowdown], ..fitted };
        let slowdown = narrowed((0.2, 8.0), |slowdown| {
            simulated(of_many_writers(slowdown), servers, *many) > median(of_many.rates.clone())
        });
        fitted = of_many_writers(slowdown);
        let of_group = |time: f64| {
            let costs = StoreCosts { flush: flush.min(time), group_wait: (time - flush).max(0.0), ..fitted.costs };
            Fitted { costs, ..fitted }
        };
        let time =
            narrowed((0.0, 0.05), |time| simulated(of_group(time), servers, *some) > median(of_some.rates.clone()));
        fitted = of_group(time);
        // Few are slowed as much as many, and wait beside; or they are slowed less.
        let of_few_writers = |(less, call_wait)| {
            let costs = StoreCosts { call_wait, ..fitted.costs };
            Fitted { costs, slowdown: [less, slowdown] }
        };
        let is_too_fast =
            |few_writers| simulated(of_few_writers(few_writers), servers, *few) > median(of_few.rates.clone());
        let few_writers = if is_too_fast((slowdown, 0.0)) {
            (slowdown, narrowed((0.0, 0.05), |wait| is_too_fast((slowdown, wait))))
        } else {
            (narrowed((0.2, slowdown), |less| is_too_fast((less, 0.0))), 0.0)
        };
        fitted = of_few_writers(few_writers);
    }
    fitted
}

/// Batches a second of so many writers on this machine, as simulated.
fn simulated(fitted: Fitted, servers: usize, writers: usize) -> f64 {
    simulate(&small(fitted, servers, writers)).rate
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

/// The value from which on a simulation is not too fast any more.
fn narrowed((mut low, mut high): (f64, f64), is_too_fast: impl Fn(f64) -> bool) -> f64 {
    for _ in 0..STEPS {
        let middle = f64::midpoint(low, high);
        if is_too_fast(middle) {
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
