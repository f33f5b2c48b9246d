//! Aptix on a tree in memory, and now and then its program on a tree on disk.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;

use crate::git;
use crate::memory::{self, Applied, Tree};

/// What Aptix did.
#[derive(Clone, Debug)]
pub(crate) enum Ours {
    Applied {
        tree: Tree,
        /// The codes of the warnings, sorted, each once.
        warnings: Vec<String>,
    },
    Refused(Box<Failure>),
}

/// Applies a diff to a tree.
pub(crate) fn apply(tree: &Tree, diff: &[u8]) -> Result<Ours> {
    let before = tree.iter().map(|(path, file)| (path.as_str(), file)).collect();
    Ok(match memory::apply(diff, Dialect::GitPatch, &before)? {
        Ok(Applied { tree, warnings }) => {
            let mut warnings: Vec<String> = warnings.into_iter().map(|warning| warning.code).collect();
            warnings.sort();
            warnings.dedup();
            Ours::Applied { tree, warnings }
        }
        Err(failure) => Ours::Refused(failure),
    })
}

/// The program, which cargo puts beside this one.
pub(crate) fn program() -> Result<PathBuf> {
    let own = std::env::current_exe()?;
    let directory = own.ancestors().nth(2).context("the harness is not where cargo puts benches")?;
    let program = directory.join("aptix");
    ensure!(program.exists(), "{} is missing; `cargo xtask differ` builds it", program.display());
    Ok(program)
}

/// Lets the program apply a diff to a tree; the tree afterwards, and whether it was applied.
#[expect(clippy::disallowed_methods, reason = "the program works in a folder of its own")]
pub(crate) fn run(program: &Path, folder: &Path, tree: &Tree, diff: &[u8]) -> Result<(bool, Tree)> {
    let root = folder.join("project");
    git::write(&root, tree)?;
    std::fs::write(folder.join("document.diff"), diff)?;
    let done = Command::new(program)
        .args(["apply", "--yes", "--json", "--dialect", "git-patch", "--root", "project", "document.diff"])
        .current_dir(folder)
        .env("HOME", folder)
        .env("XDG_STATE_HOME", folder.join("state"))
        .env("XDG_CONFIG_HOME", folder.join("config"))
        .stdin(Stdio::null())
        .output()?;
    let found = git::read(&root)?;
    std::fs::remove_dir_all(folder)?;
    Ok((done.status.success(), found))
}
