//! Measures the time and memory of some work.

use std::time::Duration;

use anyhow::Result;
use aptix_engine::plan::plan;
use aptix_engine::planning::observed::Observed;
use aptix_engine::planning::settings::Settings;
use aptix_engine::validate::validate;
use aptix_model::batch::Batch;
use aptix_model::limits::Limits;
use cpu_time::ThreadTime;

#[global_allocator]
static MEMORY: peak_alloc::PeakAlloc = peak_alloc::PeakAlloc;

/// How often each row is measured.
pub(crate) const PASSES: usize = 7;

/// Plans and applies one batch, digest and diff left alone.
pub(crate) fn plan_and_apply(batch: &Batch, observed: &[Observed<'_>]) -> Result<Vec<u8>> {
    let valid = validate(batch, &Limits::DEFAULT).map_err(|failures| anyhow::anyhow!("{failures:?}"))?;
    let plan = plan(&valid, observed, &Settings::DEFAULT).map_err(|failures| anyhow::anyhow!("{failures:?}"))?;
    Ok(plan.files.first().map(|file| file.content().into_owned()).unwrap_or_default())
}

/// CPU seconds of this thread.
pub(crate) fn time(work: impl FnOnce()) -> f64 {
    let start = ThreadTime::now();
    work();
    start.elapsed().as_secs_f64().max(Duration::from_nanos(1).as_secs_f64())
}

/// The most memory that was in use during some work, beyond what was in use before, in bytes.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    work();
    MEMORY.peak_usage() - before
}
