//! Where the repository is, and what it holds.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};
use serde::Deserialize;

/// What released programs are built with beside their default features.
pub(crate) const PROGRAM_FEATURES: &str = "aptix-server/postgres,aptix-server/s3";

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> &'static Path {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask)
}

/// The cargo that runs us, or the one on the search path.
pub(crate) fn cargo() -> Command {
    let mut cargo = Command::new(option_env!("CARGO").filter(|path| Path::new(path).exists()).unwrap_or("cargo"));
    cargo.current_dir(root());
    cargo
}

/// Runs a command and returns what it printed on stdout.
///
/// # Errors
///
/// When it cannot be started, fails, or prints something that is no UTF-8; with its stderr.
pub(crate) fn capture(command: &mut Command) -> Result<String> {
    let output = command.output().with_context(|| format!("failed to start {command:?}"))?;
    if !output.status.success() {
        bail!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    String::from_utf8(output.stdout).with_context(|| format!("{command:?} printed something that is not UTF-8"))
}

/// What cargo knows about the workspace's own packages.
pub(crate) fn metadata() -> Result<serde_json::Value> {
    let text = capture(cargo().args(["metadata", "--format-version", "1", "--no-deps", "--locked"]))?;
    serde_json::from_str(&text).context("failed to read what `cargo metadata` printed")
}

/// What cargo knows about every package that the workspace's own need on these targets, with all features.
pub(crate) fn resolved(targets: &[String]) -> Result<serde_json::Value> {
    let mut metadata = cargo();
    metadata.args(["metadata", "--format-version", "1", "--locked", "--all-features"]);
    metadata.args(targets.iter().flat_map(|target| ["--filter-platform", target]));
    serde_json::from_str(&capture(&mut metadata)?).context("failed to read what `cargo metadata` printed")
}

/// The packages that `cargo metadata` lists.
pub(crate) fn packages<'a, T: Deserialize<'a>>(metadata: &'a serde_json::Value) -> Result<Vec<T>> {
    let packages = metadata.get("packages").context("`cargo metadata` lists no packages")?;
    Vec::deserialize(packages).context("failed to read `cargo metadata`")
}

/// Where cargo puts what it builds.
pub(crate) fn target() -> Result<PathBuf> {
    let metadata = metadata()?;
    let directory = metadata.get("target_directory").and_then(serde_json::Value::as_str);
    let directory = directory.context("`cargo metadata` names no target_directory")?;
    Ok(directory.into())
}

/// A text file of the repository.
pub(crate) struct Text {
    /// Its path from the root, `/` between components.
    pub(crate) path: String,
    /// What it holds.
    pub(crate) content: String,
}

/// Every text file that is committed or could be, by path. Files that git ignores and files that are not UTF-8 are
/// left out.
///
/// # Errors
///
/// When git is missing or this is not its work tree.
pub(crate) fn texts() -> Result<Vec<Text>> {
    let list = capture(
        Command::new("git")
            .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard", "--deduplicate"])
            .current_dir(root()),
    )
    .context("failed to list the repository's files; this needs git (2.31 or later) and a clone")?;
    let mut texts = Vec::new();
    for path in list.split_terminator('\0') {
        // A file that was deleted but is still in the index, or a link that leads nowhere, has no text.
        if let Ok(content) = fs::read_to_string(root().join(path)) {
            texts.push(Text { path: path.to_owned(), content });
        }
    }
    texts.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(texts)
}

/// Reads a text file of the repository, given its path from the root.
pub(crate) fn read(path: &str) -> Result<String> {
    fs::read_to_string(root().join(path)).with_context(|| format!("failed to read {path}"))
}

/// Writes a file of the repository, given its path from the root, and makes the directories it needs.
pub(crate) fn write(path: &str, content: &[u8]) -> Result<()> {
    write_file(&root().join(path), content)
}

/// Writes a file of ours, in the repository or the target directory, and makes the directories it needs.
#[expect(clippy::disallowed_methods, reason = "files of the project itself, never a user's workspace")]
pub(crate) fn write_file(file: &Path, content: &[u8]) -> Result<()> {
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    }
    fs::write(file, content).with_context(|| format!("failed to write {}", file.display()))
}
