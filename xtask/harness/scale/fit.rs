//! From what cases took with real processes to the costs of the model.

use crate::cases::Measured;
use crate::costs::StoreCosts;
use crate::goal::median;
use crate::simulation::{Layout, Load, Machines, simulate};

/// Simulated seconds of one case, and steps in which a cost is narrowed down.
const SECONDS: f64 = 6.0;
const STEPS: usize = 14;
const ROUNDS: usize = 5;
/// Between which bounds a slowdown is, and how long a wait in seconds.
const LEAST: f64 = 0.2;
const MOST: (f64, f64) = (LEAST, 8.0);
const LONGEST: f64 = 0.05;
/// Bytes a second of the log's disk where it is no bound.
const UNBOUNDED: f64 = 1e12;

/// The costs of a store, and how many times as long its work takes because processors are shared, with as many writers as there are in each of
/// the fitted cases: few leave processors idle, so that other programs, and the second thread of a core, slow them less.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Fitted {
    pub(crate) costs: StoreCosts,
    /// From the fewest writers to the most.
    slowdown: [(usize, f64); 3],
}

impl Fitted {
    /// The slowdown with so many writers, which between two cases is linear in the part that each writer has of all.
    fn slowdown(&self, writers: usize) -> f64 {
        let part = |writers: usize| 1.0 / writers.max(1) as f64;
        for pair in self.slowdown.windows(2) {
            if let [(few, of_few), (many, of_many)] = *pair
                && writers <= many
            {
                let share = (part(writers.max(few)) - part(many)) / (part(few) - part(many));
                return of_many + (of_few - of_many) * share;
            }
        }
        let [.., (_, of_most)] = self.slowdown;
        of_most
    }
}

/// Fits the costs of `servers` servers on one store to three cases, from few writers to many; `alone` are those of one server on it. The costs of a batch and of a group are the line through
/// what each batch took beside how many shared a group. Each case then leaves one thing open: that with the most writers the slowdown; the others what
/// a group waits for beside its flush, and what a call waits for, or where even no wait leaves the simulation too slow, how much less than with
/// more writers it is slowed.
pub(crate) fn fit(cases: &[(usize, Measured)], (servers, alone): (usize, Option<&StoreCosts>), flush: f64) -> Fitted {
    let each: Vec<_> = cases.iter().map(|(writers, measured)| (*writers, measured.each())).collect();
    let through = |of: fn(&Measured) -> f64| line(each.iter().map(|(_, each)| (1.0 / each.groups, of(each))).collect());
    let (author, of_group) = through(|each| each.author);
    // An author has no part in groups: what varies is how well its calls share wake-ups.
    let author_call = author + of_group / each.last().map_or(1.0, |(_, each)| each.groups);
    let (server_submit, server_group) = through(|each| each.server);
    let (database_row, database_group) = through(|each| each.database);
    // What a group takes beyond that of a server that is alone is done beside it.
    let beside = |group: f64, of: fn(&StoreCosts) -> f64| alone.map_or(0.0, |alone| (group - of(alone)).max(0.0));
    let server_beside = beside(server_group, |alone| alone.server_group);
    let database_beside = beside(database_group, |alone| alone.database_group);
    let costs = StoreCosts {
        author_call,
        server_submit,
        server_group: server_group - server_beside,
        database_row,
        database_group: database_group - database_beside,
        server_beside,
        database_beside,
        flush,
        ..StoreCosts::default()
    };
    let mut fitted =
        Fitted { costs, slowdown: [0, 1, 2].map(|case| (cases.get(case).map_or(1, |(writers, _)| *writers), 1.0)) };
    for _ in 0..ROUNDS {
        for (case, (writers, measured)) in each.iter().enumerate().rev() {
            let is_too_fast = |fitted: Fitted| simulated(fitted, servers, *writers) > median(measured.rates.clone());
            let slowed = |slowdown: f64, wait: f64| {
                let mut tried = fitted;
                tried.slowdown.iter_mut().skip(case).take(1).for_each(|(_, slowed)| *slowed = slowdown);
                match case {
                    0 => tried.costs.call_wait = wait,
                    1 => tried.costs.group_wait = wait,
                    _ => {}
                }
                tried
            };
            let with_more = fitted.slowdown.get(case + 1).map(|(_, slowdown)| *slowdown);
            fitted = match with_more {
                None => slowed(narrowed(MOST, |slowdown| is_too_fast(slowed(slowdown, 0.0))), 0.0),
                Some(more) if is_too_fast(slowed(more, 0.0)) => {
                    slowed(more, narrowed((0.0, LONGEST), |wait| is_too_fast(slowed(more, wait))))
                }
                Some(more) => slowed(narrowed((LEAST, more), |less| is_too_fast(slowed(less, 0.0))), 0.0),
            };
        }
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
