//! Starts the crash harness, with the programs that it kills.

use std::ffi::OsStr;

use anyhow::Result;

use crate::repo::cargo;
use crate::steps::{run, step};

/// Builds the programs and lets the harness kill them.
///
/// # Errors
///
/// When a tree is torn, something is lost, or a control is not caught.
pub(crate) fn crash(told: &[impl AsRef<OsStr>]) -> Result<()> {
    step("build", || {
        run(cargo().args(["build", "--locked", "--package", "aptix-client", "--package", "aptix-server"]))
    })?;
    // As it is built for tests: what is measured here is damage, not time.
    let harness = ["bench", "--locked", "--quiet", "--profile", "dev", "--package", "xtask", "--bench", "crash", "--"];
    step("crash harness (more of it: cargo xtask crash --long)", || run(cargo().args(harness).args(told)))
}
