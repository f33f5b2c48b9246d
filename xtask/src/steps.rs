//! Runs the commands of a longer job, prints which is running, how long each took, and what to do when one fails.

use std::process::Command;
use std::time::Instant;

use anyhow::{Context, Result, bail};

/// Does one named part of a job and prints how long it took.
///
/// # Errors
///
/// Those of the part, with its name in front.
pub(crate) fn step(name: &str, part: impl FnOnce() -> Result<()>) -> Result<()> {
    println!("==> {name}");
    let start = Instant::now();
    part().with_context(|| format!("{name} failed after {:.1} s", start.elapsed().as_secs_f64()))?;
    println!("    {name}: ok in {:.1} s", start.elapsed().as_secs_f64());
    Ok(())
}

/// Runs a command that talks to the terminal itself.
///
/// # Errors
///
/// When it cannot be started, or fails; with the line to run it again.
pub(crate) fn run(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("failed to start {}", line(command)))?;
    if !status.success() {
        bail!("{status} from: {}", line(command));
    }
    Ok(())
}

/// The command as one would type it.
fn line(command: &Command) -> String {
    let mut words = vec![command.get_program().to_string_lossy().into_owned()];
    words.extend(command.get_args().map(|word| word.to_string_lossy().into_owned()));
    words.join(" ")
}
