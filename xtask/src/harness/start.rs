//! The commands that build and start a harness.

use std::process::Command;

use anyhow::Result;

use crate::repo::cargo;
use crate::steps::{run, step};

/// Builds the program and the server.
pub(crate) fn build() -> Result<()> {
    step("build", || run(cargo().args(["build", "--locked", "--package", "aptix-client", "--package", "aptix-server"])))
}

/// A harness that measures time, as cargo builds benches.
pub(super) fn optimized(name: &str) -> Command {
    let mut harness = cargo();
    harness.args(["bench", "--locked", "--package", "xtask", "--bench", name, "--"]);
    harness
}

/// A harness that measures no time, built as tests are.
pub(super) fn debug(name: &str) -> Command {
    let mut harness = cargo();
    harness.args(["bench", "--locked", "--quiet", "--profile", "dev", "--package", "xtask", "--bench", name, "--"]);
    harness
}
