//! Real edits for the harnesses: neighbouring versions of a few published crates, which cargo fetches.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::repo::{capture, cargo, root, target, write_file};
use crate::steps::step;

/// Versions of each crate of the corpus.
pub(super) const VERSIONS: usize = 5;

/// The crates whose changed files are the corpus, each in a row of versions: the files that differ between neighbours
/// are the edits. They were chosen to be like a developer's commit: files of some 30 KB, changed in a few places.
const CORPUS: [(&str, [&str; VERSIONS]); 12] = [
    ("arrow-array", ["53.2.0", "53.3.0", "54.1.0", "54.2.1", "54.3.1"]),
    ("arrow-cast", ["53.2.0", "53.3.0", "54.1.0", "54.2.1", "54.3.1"]),
    ("cranelift-codegen", ["0.115.0", "0.116.0", "0.117.0", "0.118.0", "0.119.0"]),
    ("datafusion-common", ["43.0.0", "44.0.0", "45.0.0", "46.0.0", "47.0.0"]),
    ("datafusion-expr", ["43.0.0", "44.0.0", "45.0.0", "46.0.0", "47.0.0"]),
    ("datafusion-optimizer", ["43.0.0", "44.0.0", "45.0.0", "46.0.0", "47.0.0"]),
    ("datafusion-physical-plan", ["43.0.0", "44.0.0", "45.0.0", "46.0.0", "47.0.0"]),
    ("h2", ["0.4.5", "0.4.6", "0.4.7", "0.4.8", "0.4.10"]),
    ("parquet", ["53.2.0", "53.3.0", "54.1.0", "54.2.1", "54.3.1"]),
    ("rustls", ["0.23.16", "0.23.19", "0.23.22", "0.23.25", "0.23.27"]),
    ("sea-query", ["0.32.0", "0.32.1", "0.32.2", "0.32.3", "0.32.6"]),
    ("wasmtime", ["28.0.0", "29.0.0", "30.0.0", "31.0.0", "32.0.0"]),
];

/// Fetches so many versions of each crate, at most [`VERSIONS`]; returns a file that lists the folders of neighbours, two
/// lines a pair.
pub(super) fn corpus(versions: usize) -> Result<PathBuf> {
    let list = target()?.join("bench-corpus").join(format!("folders-{versions}"));
    step("fetch the corpus", || {
        let rows = (0..versions).map(fetch).collect::<Result<Vec<_>>>()?;
        let pairs = rows.iter().zip(rows.iter().skip(1)).flat_map(|(before, after)| before.iter().zip(after));
        let lines = pairs.map(|(before, after)| format!("{}\n{}\n", before.display(), after.display()));
        write_file(&list, lines.collect::<String>().as_bytes())
    })?;
    Ok(list)
}

/// Lets cargo fetch one version of each crate, and returns where their sources are.
fn fetch(row: usize) -> Result<Vec<PathBuf>> {
    let versions = CORPUS.iter().filter_map(|(name, versions)| Some((*name, *versions.get(row)?)));
    let project = target()?.join("bench-corpus").join(row.to_string());
    let dependency = |(name, version)| format!("{name} = {{ version = \"={version}\", default-features = false }}\n");
    let dependencies: String = versions.clone().map(dependency).collect();
    // An own workspace, so that cargo does not look for one above.
    let manifest = format!(
        "[package]\nname = \"corpus\"\nversion = \"0.0.0\"\nedition = \"2024\"\n[workspace]\n[dependencies]\n{dependencies}"
    );
    write_file(&project.join("Cargo.toml"), manifest.as_bytes())?;
    write_file(&project.join("src/lib.rs"), b"")?;
    let metadata = capture(cargo().current_dir(&project).args(["metadata", "--format-version", "1"]))?;
    let metadata: serde_json::Value = serde_json::from_str(&metadata).context("cargo metadata is JSON")?;
    versions.map(|(name, version)| source(&metadata, name, version)).collect()
}

fn source(metadata: &serde_json::Value, name: &str, version: &str) -> Result<PathBuf> {
    let packages = metadata["packages"].as_array().context("cargo metadata lists packages")?;
    let package = packages.iter().find(|package| package["name"] == name && package["version"] == version);
    let manifest = package.and_then(|package| package["manifest_path"].as_str());
    let manifest = manifest.with_context(|| format!("{name} {version} was not fetched"))?;
    Ok(Path::new(manifest).parent().unwrap_or(root()).to_path_buf())
}
