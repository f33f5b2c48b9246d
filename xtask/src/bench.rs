//! Starts the benches, with the real edits they are measured on: two versions of a few crates.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo::{capture, cargo, root, target, write_file};
use crate::steps::{run, step};

/// What can be measured.
#[derive(Clone, Copy, clap::ValueEnum)]
pub(crate) enum Subject {
    /// Planning and applying line patches, beside `memcpy`, SHA-256 and diffy.
    Engine,
}

/// The crates whose changed files are the corpus: name, version before, version after.
const CORPUS: [(&str, &str, &str); 11] = [
    ("actix-web", "4.5.1", "4.11.0"),
    ("cranelift-codegen", "0.108.0", "0.119.0"),
    ("diesel", "2.1.6", "2.2.10"),
    ("image", "0.24.9", "0.25.6"),
    ("libc", "0.2.155", "0.2.172"),
    ("naga", "0.20.0", "25.0.1"),
    ("nix", "0.28.0", "0.30.1"),
    ("rayon", "1.8.1", "1.10.0"),
    ("rustix", "0.38.34", "0.38.44"),
    ("sqlx-postgres", "0.7.4", "0.8.6"),
    ("tokio", "1.38.0", "1.45.0"),
];

/// Measures.
///
/// # Errors
///
/// When the corpus cannot be fetched, a result is wrong, or a goal is missed.
pub(crate) fn bench(subject: Subject) -> Result<()> {
    let Subject::Engine = subject;
    let mut pairs = Vec::new();
    step("fetch the corpus", || {
        let before = fetch("before", |(_, before, _)| before)?;
        let after = fetch("after", |(_, _, after)| after)?;
        pairs = before.into_iter().zip(after).collect();
        Ok(())
    })?;
    step("bench engine", || {
        let mut bench = cargo();
        bench.args(["bench", "--locked", "--package", "xtask", "--bench", "engine", "--"]);
        for (before, after) in &pairs {
            bench.args([before, after]);
        }
        run(&mut bench)
    })
}

/// Lets cargo fetch one version of each crate, and tells where their sources are.
fn fetch(name: &str, version: impl Fn((&str, &'static str, &'static str)) -> &'static str) -> Result<Vec<PathBuf>> {
    let project = target()?.join("bench-corpus").join(name);
    let dependencies = CORPUS.map(|entry| format!("{} = \"={}\"\n", entry.0, version(entry))).concat();
    // An own workspace, so that cargo does not look for one above.
    let manifest = format!(
        "[package]\nname = \"{name}\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}"
    );
    write_file(&project.join("Cargo.toml"), manifest.as_bytes())?;
    write_file(&project.join("src/lib.rs"), b"")?;
    let metadata = capture(cargo().current_dir(&project).args(["metadata", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cargo metadata is JSON")?;
    CORPUS.iter().map(|entry| source(&metadata, entry.0, version(*entry))).collect()
}

fn source(metadata: &serde_json::Value, name: &str, version: &str) -> Result<PathBuf> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let package = packages.iter().find(|package| package["name"] == name && package["version"] == version);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("{name} {version} was not fetched"))?;
    Ok(Path::new(manifest).parent().unwrap_or(root()).to_path_buf())
}
