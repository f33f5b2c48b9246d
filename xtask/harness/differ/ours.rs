//! Aptix on a tree in memory, and now and then its program on a tree on disk.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use aptix_engine::plan::{Observed, Settings, plan, reads};
use aptix_engine::readings::{Entry, settle};
use aptix_engine::validate::{ValidTarget, validate};
use aptix_model::documents::{self, Dialect};
use aptix_model::failure::Failure;
use aptix_model::limits::Limits;
use aptix_model::path::{WorkspacePath, lowercase};
use aptix_model::report::FileStatus;

use crate::git;
use crate::tree::{File, Tree};

/// What Aptix did.
#[derive(Clone, Debug)]
pub(crate) enum Ours {
    Applied {
        tree: Tree,
        /// The codes of the warnings.
        warnings: Vec<String>,
    },
    Refused(Box<Failure>),
}

impl Ours {
    /// The first failure's reason and detail, in one word.
    pub(crate) fn code(failure: &Failure) -> String {
        match failure.detail {
            Some(detail) => format!("{}.{detail}", failure.reason),
            None => failure.reason.to_string(),
        }
    }
}

/// Applies a diff to a tree.
pub(crate) fn apply(tree: &Tree, diff: &[u8]) -> Result<Ours> {
    let document = match documents::parse(diff, Some(Dialect::GitPatch)) {
        Ok(document) => document,
        Err(failures) => return refused(failures),
    };
    let entry = |path: &str| {
        let under = format!("{path}/");
        match tree.get(path) {
            Some(_) => Entry::File,
            None if tree.keys().any(|other| other.starts_with(&under)) => Entry::Directory,
            None => Entry::Absent,
        }
    };
    let batch = match settle(&document.batch, entry) {
        Ok(batch) => batch,
        Err(failures) => return refused(failures),
    };
    let valid = match validate(&batch, &Limits::DEFAULT) {
        Ok(valid) => valid,
        Err(failures) => return refused(failures),
    };
    let observed = |target: &ValidTarget| -> Result<Observed<'_>> {
        let ValidTarget::Path(path) = target else { anyhow::bail!("a diff names paths") };
        let file = tree.get(path.as_str());
        Ok(Observed {
            doc_path: format!("repo/{}", lowercase(path.as_str())),
            path: WorkspacePath::new(path.as_str())?,
            content: file.map(|file| file.bytes.as_slice()),
            digest: None,
            is_executable: file.is_some_and(|file| file.is_executable),
            other: None,
        })
    };
    let snapshot = reads(&valid).map(|reads| {
        let other = reads.other.map(observed).transpose()?.map(Box::new);
        Ok(Observed { other, ..observed(reads.target)? })
    });
    let snapshot = snapshot.collect::<Result<Vec<_>>>()?;
    let plan = match plan(&valid, &snapshot, &Settings::DEFAULT) {
        Ok(plan) => plan,
        Err(failures) => return refused(failures),
    };
    let mut after = tree.clone();
    let gone = plan.files.iter().filter(|file| matches!(file.status, FileStatus::Deleted | FileStatus::Renamed));
    for file in gone {
        after.remove(file.path.as_str());
    }
    let mut warnings: Vec<String> = document.warnings.into_iter().map(|warning| warning.code).collect();
    for (file, observed) in plan.files.iter().zip(&snapshot) {
        warnings.extend(file.warnings.iter().map(|warning| warning.code.clone()));
        if file.status != FileStatus::Deleted {
            let path = file.moved_to.unwrap_or(file.path).as_str().to_owned();
            let is_executable = file.executable.unwrap_or(observed.is_executable);
            after.insert(path, File { bytes: file.content().into_owned(), is_executable });
        }
    }
    warnings.sort();
    warnings.dedup();
    Ok(Ours::Applied { tree: after, warnings })
}

fn refused(failures: Vec<Failure>) -> Result<Ours> {
    let first = failures.into_iter().next().context("a refusal has a failure")?;
    Ok(Ours::Refused(Box::new(first)))
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
