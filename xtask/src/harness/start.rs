//! The commands that build and start a harness.

use std::process::Command;

use anyhow::Result;

use crate::repo::{PROGRAM_FEATURES, cargo};
use crate::steps::{run, step};

/// How programs and harnesses that measure no time are compiled: a profile of the workspace.
#[derive(Clone, Copy)]
pub(super) struct Profile(&'static str);

impl Profile {
    /// As tests are.
    pub(super) const DEV: Self = Self("dev");
    /// Optimized, with the checks of a debug build.
    pub(super) const CHECKED: Self = Self("checked");
}

/// The choice of what is built that the tests make: with another one cargo joins the features of crates otherwise, and compiles most
/// of them once more.
const AS_TESTS: [&str; 3] = ["--locked", "--workspace", "--all-features"];

/// Builds the program and the server.
pub(crate) fn build() -> Result<()> {
    programs(Profile::DEV)
}

/// Builds the program and the server in a profile, and the harnesses.
pub(super) fn programs(profile: Profile) -> Result<()> {
    let build = ["build", "--profile", profile.0, "--bins", "--benches"];
    step("build", || run(cargo().args(build).args(AS_TESTS)))
}

/// Builds the program and the server as users have them.
pub(super) fn released() -> Result<()> {
    let bins = ["--package", "aptix-client", "--bin", "aptix", "--package", "aptix-server", "--bin", "aptix-server"];
    let features = ["--features", PROGRAM_FEATURES];
    step("build", || run(cargo().args(["build", "--locked", "--release"]).args(bins).args(features)))
}

/// A harness that measures time, as cargo builds benches.
pub(super) fn optimized(name: &str) -> Command {
    let mut harness = cargo();
    harness.args(["bench", "--locked", "--package", "xtask", "--bench", name, "--"]);
    harness
}

/// A harness that measures no time, built as tests are.
pub(super) fn debug(name: &str) -> Command {
    harness(name, Profile::DEV)
}

/// A harness that measures no time, beside the programs of the same profile.
pub(super) fn harness(name: &str, profile: Profile) -> Command {
    let mut harness = cargo();
    harness.args(["bench", "--quiet", "--profile", profile.0, "--bench", name]).args(AS_TESTS).arg("--");
    harness
}
