//! Aptix on a tree in memory, and now and then its program on a tree on disk.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use aptix_model::documents::Dialect;
use aptix_model::failure::Failure;

use crate::git;
use crate::memory::{self, Applied, Tree};
use crate::program::{private, program};

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

/// Lets the program apply a diff to a tree; the tree afterwards, and whether it was applied.
#[expect(clippy::disallowed_methods, reason = "the program works in a folder of its own")]
pub(crate) fn run(folder: &Path, tree: &Tree, diff: &[u8]) -> Result<(bool, Tree)> {
    let root = folder.join("project");
    git::write(&root, tree)?;
    std::fs::write(folder.join("document.diff"), diff)?;
    let mut command = Command::new(program("aptix")?);
    command.args(["apply", "--yes", "--json", "--dialect", "git-patch", "--root", "project", "document.diff"]);
    private(&mut command, folder);
    let done = command.output()?;
    let found = git::read(&root)?;
    git::clear(folder)?;
    Ok((done.status.success(), found))
}
