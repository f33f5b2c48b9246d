//! The example client in TypeScript: its packages, the protocol's code, and what `tsc` compiles of it.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Result, ensure};

use crate::python;
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
    if !std::fs::read_to_string(&done).is_ok_and(|installed| installed == lock) {
        run(npm().arg("ci"))?;
        repo::write_file(&done, lock.as_bytes())?;
    }
    let buf = python::buf()?;
    let beside_buf = Path::new(buf.get_program()).parent().map(Path::to_owned);
    let path = env::var_os("PATH").unwrap_or_default();
    let path = env::join_paths(beside_buf.into_iter().chain(env::split_paths(&path)))?;
    run(npm().args(["run", "build"]).env("PATH", path))
}

fn directory() -> PathBuf {
    repo::root().join("examples/typescript")
}

fn npm() -> Command {
    let mut npm = Command::new("npm");
    npm.arg("--silent").current_dir(directory());
    npm
}
