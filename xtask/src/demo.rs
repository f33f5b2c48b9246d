//! Builds what the demo needs and starts it.

use anyhow::Result;

use crate::repo::cargo;
use crate::steps::{run, step};

/// Shows the main job on a small real project.
///
/// # Errors
///
/// When something does not build, or the demo saw something it did not expect.
pub(crate) fn demo() -> Result<()> {
    println!("Building the server, the agent and the demo; the first time this takes a few minutes.");
    step("build", || {
        run(cargo().args(["build", "--locked", "--package", "aptix-server", "--package", "aptix-client"]))?;
        run(cargo().args(["build", "--locked", "--package", "xtask", "--example", "demo"]))
    })?;
    step("demo", || run(cargo().args(["run", "--locked", "--quiet", "--package", "xtask", "--example", "demo"])))
}
