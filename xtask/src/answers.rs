//! Starts the corpus of whole answers, with the program that applies them.

use std::ffi::OsStr;

use anyhow::Result;

use crate::repo::{cargo, target};
use crate::steps::{run, step};

/// Builds the program and applies every answer of the corpus.
///
/// # Errors
///
/// When an answer comes to something else than the corpus states.
pub(crate) fn answers(args: &[impl AsRef<OsStr>]) -> Result<()> {
    step("build", || run(cargo().args(["build", "--locked", "--package", "aptix-client"])))?;
    let program = target()?.join("debug").join("aptix");
    let harness =
        ["bench", "--locked", "--quiet", "--profile", "dev", "--package", "xtask", "--bench", "answers", "--"];
    step("answers", || run(cargo().args(harness).arg("--aptix").arg(program).args(args)))
}
