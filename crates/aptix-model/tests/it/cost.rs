//! What work costs: processor time of its thread, which is compared with that of other work in the same process and never with a number
//! of seconds, so that a slow or busy machine changes nothing.

use std::time::Duration;

use cpu_time::ThreadTime;

/// How many times the input grows in [`assert_linear`].
const TIMES: usize = 16;
/// How many times the cost may grow with it. Quadratic work costs 256 times as much.
const MOST: f64 = 4.0 * TIMES as f64;
/// How often each input is tried. Other programs only ever add to what one try costs.
const TRIES: usize = 3;

/// What work costs, and what came of it.
pub(crate) fn cost<T>(work: impl FnOnce() -> T) -> (Duration, T) {
    let begun = ThreadTime::now();
    let done = work();
    (begun.elapsed(), done)
}

/// Sixteen times the input costs at most 64 times as much. Inputs are made of their size; making them is not counted.
#[track_caller]
pub(crate) fn assert_linear<I, T>(name: &str, size: usize, make: impl Fn(usize) -> I, work: impl Fn(&I) -> T) {
    let inputs = [make(size), make(TIMES * size)];
    let mut least = [Duration::MAX; 2];
    for _ in 0..TRIES {
        for (least, input) in least.iter_mut().zip(&inputs) {
            *least = cost(|| work(input)).0.min(*least);
        }
    }
    let growth = least[1].as_secs_f64() / least[0].as_secs_f64();
    assert!(growth < MOST, "{name}: the input grows {TIMES} times and its cost {growth:.1} times: {least:?}");
}
