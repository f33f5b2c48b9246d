//! Where the repository is, and what it holds.

use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

/// The directory of the workspace's `Cargo.toml`.
pub(crate) fn root() -> PathBuf {
    let xtask = Path::new(env!("CARGO_MANIFEST_DIR"));
    xtask.parent().unwrap_or(xtask).to_path_buf()
}

/// Writes a file of the repository, given its path from the root, and the directories it needs.
#[expect(clippy::disallowed_methods, reason = "generated files of the repository, never a user's workspace")]
pub(crate) fn write(path: &str, content: &[u8]) -> Result<()> {
    let file = root().join(path);
    if let Some(directory) = file.parent() {
        fs::create_dir_all(directory).with_context(|| format!("failed to make {}", directory.display()))?;
    }
    fs::write(&file, content).with_context(|| format!("failed to write {path}"))
}
