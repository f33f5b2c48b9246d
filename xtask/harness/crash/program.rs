//! The program under test, as a process of its own.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use anyhow::{Context, Result, ensure};

use crate::sequence::Sequence;

/// A command of the program under test.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Action {
    /// `aptix apply`: from a generation to the next.
    Apply,
    /// `aptix undo`: back from it.
    Undo,
}

impl Action {
    /// What it does in a place, by what [`prepare`] put there.
    pub(crate) const fn arguments(self) -> &'static [&'static str] {
        match self {
            Self::Apply => &["apply", "--yes", "--json", "--root", "ws", "document.diff"],
            Self::Undo => &["undo", "--yes", "--json", "--root", "ws"],
        }
    }
}

/// A command that does nothing but look, once it has brought to an end what was left half-way.
pub(crate) const LOOK: [&str; 5] = ["apply", "--dry-run", "--root", "ws", "harmless.json"];

/// Where the program is: cargo puts this one beside it.
pub(crate) fn aptix() -> Result<PathBuf> {
    program("aptix")
}

/// Where a program of ours is.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let directory = own.ancestors().nth(2).context("the harness is not where cargo puts benches")?;
    let program = directory.join(name);
    ensure!(program.exists(), "{} is missing; start this with `cargo xtask crash`, which builds it", program.display());
    Ok(program)
}

/// Puts into a place what the commands read there: the document that leads on from a generation.
pub(crate) fn prepare(place: &Path, sequence: &Sequence, generation: usize) -> Result<()> {
    std::fs::write(place.join("document.diff"), sequence.document(generation))?;
    let harmless = r#"{"files": [{"path": "nothing.txt", "operation": "create", "content": ""}]}"#;
    Ok(std::fs::write(place.join("harmless.json"), harmless)?)
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

/// What a process printed, its answer first.
pub(crate) fn printed(output: &Output) -> String {
    [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text)).concat()
}
