//! What counting takes that no configuration turns off: the metrics of one call, and the uses of its workspace.

use std::time::{Duration, Instant};

use anyhow::Result;
use aptix_model::id::TokenName;
use aptix_server::metrics::Metric;
use aptix_server::quota::{QuotaRules, Quotas};

use crate::goal::median;

/// How much more a row may cost with identity, quotas and metrics than without. What no configuration turns off of these is taken
/// off the cost of the server without them.
pub(crate) const GUARDS_AT_MOST: f64 = 1.05;

const ROUNDS: usize = 21;
const CALLS: u32 = 10_000;

/// Seconds for one submitted batch that has a group of writes for itself; shared groups take less.
pub(crate) fn per_call() -> Result<f64> {
    let quotas = Quotas::new(QuotaRules::default());
    // A name is looked up as a workspace is.
    let name: TokenName = "workspace".parse()?;
    let round = |_| {
        let begin = Instant::now();
        for _ in 0..CALLS {
            count();
            // When the call is made, and for its bytes.
            for _ in 0..2 {
                std::hint::black_box(quotas.of_call(Some(&name)));
            }
        }
        begin.elapsed().as_secs_f64() / f64::from(CALLS)
    };
    Ok(median((0..ROUNDS).map(round).collect()))
}

/// Counts what the server counts of one call, its batch and its group.
fn count() {
    const METHOD: &str = "BatchService/SubmitBatch";
    let took = Duration::from_micros(300);
    let _in_flight = Metric::CallsInFlight.enter([METHOD]);
    Metric::Calls.add(&[METHOD, "OK"], 1.0);
    Metric::ReceivedBytes.add(&[METHOD], 4_000.0);
    Metric::SentBytes.add(&[METHOD], 100.0);
    Metric::CallSeconds.took(&[METHOD], took);
    Metric::BatchSteps.add(&["APPROVED"], 1.0);
    Metric::GroupWrites.observe(&[], 1.0);
    Metric::FlushSeconds.took(&[], took);
    for gauge in [
        Metric::StoreQueue,
        Metric::Compactions,
        Metric::CompactionsActive,
        Metric::CompactionSeconds,
        Metric::Journals,
    ] {
        gauge.set(&[], 1.0);
    }
}
