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

/// The crates whose changed files are the corpus: name, and two neighbouring versions. What changes between them is
/// nearer to an edit than what changes in a year.
const CORPUS: [(&str, &str, &str); 38] = [
    ("actix-web", "4.10.2", "4.11.0"),
    ("arrow-array", "54.2.1", "54.3.1"),
    ("arrow-cast", "54.2.1", "54.3.1"),
    ("aws-sdk-s3", "1.82.0", "1.83.0"),
    ("axum", "0.8.1", "0.8.4"),
    ("cranelift-assembler-x64-meta", "0.118.0", "0.119.0"),
    ("cranelift-codegen", "0.118.0", "0.119.0"),
    ("datafusion-common", "46.0.0", "47.0.0"),
    ("datafusion-functions", "46.0.0", "47.0.0"),
    ("datafusion-functions-nested", "46.0.0", "47.0.0"),
    ("datafusion-optimizer", "46.0.0", "47.0.0"),
    ("datafusion-physical-expr", "46.0.0", "47.0.0"),
    ("gix", "0.70.0", "0.71.0"),
    ("gix-config", "0.43.0", "0.44.0"),
    ("gix-odb", "0.67.0", "0.68.0"),
    ("gix-ref", "0.50.0", "0.51.0"),
    ("hyper", "1.5.2", "1.6.0"),
    ("image", "0.25.5", "0.25.6"),
    ("libc", "0.2.171", "0.2.172"),
    ("parquet", "54.2.1", "54.3.1"),
    ("poem", "3.1.6", "3.1.8"),
    ("polars-arrow", "0.45.1", "0.46.0"),
    ("polars-core", "0.45.1", "0.46.0"),
    ("polars-lazy", "0.45.1", "0.46.0"),
    ("polars-ops", "0.45.1", "0.46.0"),
    ("polars-parquet", "0.45.1", "0.46.0"),
    ("polars-plan", "0.45.1", "0.46.0"),
    ("polars-time", "0.45.1", "0.46.0"),
    ("rav1e", "0.7.0", "0.7.1"),
    ("rustix", "1.0.5", "1.0.7"),
    ("salvo_core", "0.77.0", "0.77.1"),
    ("sea-orm", "1.1.8", "1.1.10"),
    ("sea-query", "0.32.3", "0.32.6"),
    ("serde_with", "3.11.0", "3.12.0"),
    ("tokio", "1.44.2", "1.45.0"),
    ("wasmtime", "31.0.0", "32.0.0"),
    ("wasmtime-wasi", "31.0.0", "32.0.0"),
    ("wast", "226.0.0", "227.0.1"),
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
        let list = target()?.join("bench-corpus").join("folders");
        let lines = pairs.iter().map(|(before, after)| format!("{}\n{}\n", before.display(), after.display()));
        write_file(&list, lines.collect::<String>().as_bytes())?;
        run(cargo().args(["bench", "--locked", "--package", "xtask", "--bench", "engine", "--"]).arg(list))
    })
}

/// Lets cargo fetch one version of each crate, and tells where their sources are.
fn fetch(name: &str, version: impl Fn((&str, &'static str, &'static str)) -> &'static str) -> Result<Vec<PathBuf>> {
    let project = target()?.join("bench-corpus").join(name);
    let dependencies = CORPUS
        .map(|entry| format!("{} = {{ version = \"={}\", default-features = false }}\n", entry.0, version(entry)))
        .concat();
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
