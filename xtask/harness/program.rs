//! The programs under test, and directories in which they know no home but that.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use tempfile::TempDir;

/// Where a program of ours is: cargo puts this one beside it.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let directory = own.ancestors().nth(2).context("the harness is not where cargo puts benches")?;
    let program = directory.join(name);
    ensure!(program.exists(), "{} is missing; start this with `cargo xtask`, which builds it", program.display());
    Ok(program)
}

/// Lets a process work in a place, and know no home but it.
pub(crate) fn private(command: &mut Command, place: &Path) {
    command
        .current_dir(place)
        .env("HOME", place)
        .env("XDG_STATE_HOME", place.join("state"))
        .env("XDG_CONFIG_HOME", place.join("config"))
        .stdin(Stdio::null());
}

/// A directory of its own, in memory where there is such a file system: what thousands of cases write need not last.
pub(crate) fn place() -> Result<TempDir> {
    let memory = Path::new("/dev/shm");
    Ok(if memory.is_dir() { tempfile::tempdir_in(memory)? } else { tempfile::tempdir()? })
}
