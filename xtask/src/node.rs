//! What runs in Node.js: the example client in TypeScript, with what `tsc` compiles of it, and the official MCP clients.

use std::env;
use std::path::Path;
use std::process::Command;

use anyhow::{Result, ensure};

use crate::python;
use crate::repo::{self, capture};
use crate::steps::run;

const EXAMPLE: &str = "examples/typescript";
const CONFORMANCE: &str = "xtask/conformance";

/// Prepares the example client in `examples/typescript`: `node_modules`, `src/gen` and `dist`. Where there is no Node.js, says
/// so; its tests are skipped then.
///
/// # Errors
///
/// When a package cannot be installed, or the example does not compile.
pub(crate) fn example() -> Result<()> {
    if !install(EXAMPLE)? {
        return Ok(());
    }
    let buf = python::buf()?;
    let beside_buf = Path::new(buf.get_program()).parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(beside_buf.into_iter().chain(env::split_paths(&path)))?;
    run(npm(EXAMPLE).args(["run", "build"]).env("PATH", path))
}

/// Installs the official MCP client library of TypeScript and the inspector's command line in `xtask/conformance`. Where there
/// is no Node.js, says so; their tests are skipped then.
///
/// # Errors
///
/// When a package cannot be installed.
pub(crate) fn conformance() -> Result<()> {
    install(CONFORMANCE).map(drop)
}

/// Installs the packages that the lock file of a directory names. Answers whether there is Node.js.
fn install(directory: &str) -> Result<bool> {
    if capture(Command::new("npm").arg("--version")).is_err() {
        ensure!(env::var_os("APTIX_SKIP_NOTHING").is_none(), "npm is missing (Debian: apt-get install nodejs npm)");
        println!("    npm is not installed: what is in {directory} is not tried");
        return Ok(false);
    }
    let lock = repo::read(&format!("{directory}/package-lock.json"))?;
    // Written last, so that an installation that was left half made is made again.
    let done = repo::root().join(directory).join("node_modules/installed.json");
    if !std::fs::read_to_string(&done).is_ok_and(|installed| installed == lock) {
        run(npm(directory).arg("ci"))?;
        repo::write_file(&done, lock.as_bytes())?;
    }
    Ok(true)
}

fn npm(directory: &str) -> Command {
    let mut npm = Command::new("npm");
    npm.arg("--silent").current_dir(repo::root().join(directory));
    npm
}
