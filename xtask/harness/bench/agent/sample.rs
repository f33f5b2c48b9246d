//! The files that are measured, and how times are taken.

use std::time::Instant;

use anyhow::Result;

/// Bytes of each file.
pub(crate) const BYTES: usize = 10_000;

/// What a file holds in a pass.
pub(crate) fn content(pass: usize, file: usize) -> String {
    let line = format!("line of file {file} in pass {pass}, as long as lines of source code usually are\n");
    line.chars().cycle().take(BYTES).collect()
}

/// Wall seconds.
pub(crate) fn time(work: impl FnOnce() -> Result<()>) -> Result<f64> {
    let start = Instant::now();
    work()?;
    Ok(start.elapsed().as_secs_f64())
}
