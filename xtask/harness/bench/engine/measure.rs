//! Measures the time and memory of some work, and holds ratios to goals.

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

/// A measured ratio and what it must be.
pub(crate) struct Goal {
    pub(crate) name: &'static str,
    pub(crate) measured: f64,
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
}

impl Goal {
    pub(crate) fn holds(&self) -> bool {
        self.at_least.is_none_or(|least| self.measured >= least)
            && self.at_most.is_none_or(|most| self.measured <= most)
    }
}

impl std::fmt::Display for Goal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let verdict = if self.holds() { "ok    " } else { "MISSED" };
        write!(f, "{verdict} {:<62} {:>7.2}", self.name, self.measured)?;
        self.at_least.map_or(Ok(()), |least| write!(f, "  (at least {least})"))?;
        self.at_most.map_or(Ok(()), |most| write!(f, "  (at most {most})"))
    }
}

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

pub(crate) fn median(mut samples: Vec<f64>) -> f64 {
    samples.sort_by(f64::total_cmp);
    samples.get(samples.len() / 2).copied().unwrap_or_default()
}

/// The most memory that was in use during some work, beyond what was in use before, in bytes.
pub(crate) fn peak(work: impl FnOnce()) -> usize {
    let before = MEMORY.current_usage();
    MEMORY.reset_peak_usage();
    work();
    MEMORY.peak_usage() - before
}
