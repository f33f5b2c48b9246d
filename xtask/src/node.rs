//! The example client in TypeScript: its packages, the protocol's code, and what `tsc` compiles of it.

use std::env;
use std::path::PathBuf;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::repo::{self, capture};
use crate::steps::run;

/// Prepares the example client in `examples/typescript`: `node_modules`, `src/gen` and `dist`. Where there is no Node.js, says
/// so; its tests are skipped then.
///
/// # Errors
///
/// When a package cannot be installed, or the example does not compile.
pub(crate) fn example() -> Result<()> {
    if capture(Command::new("npm").arg("--version")).is_err() {
        ensure!(env::var_os("APTIX_SKIP_NOTHING").is_none(), "npm is missing (Debian: apt-get install nodejs npm)");
        println!("    npm is not installed: the example client in TypeScript is not compiled");
        return Ok(());
    }
    let lock = repo::read("examples/typescript/package-lock.json")?;
    // Written last, so that an installation that was left half made is made again.
    let done = directory().join("node_modules/installed.json");
    if std::fs::read_to_string(&done).is_ok_and(|installed| installed == lock) {
        return npm(&["run", "build"]);
    }
    npm(&["ci"])?;
    repo::write_file(&done, lock.as_bytes())?;
    npm(&["run", "build"])
}

fn directory() -> PathBuf {
    repo::root().join("examples/typescript")
}

fn npm(arguments: &[&str]) -> Result<()> {
    run(Command::new("npm").arg("--silent").args(arguments).current_dir(directory()))
}
